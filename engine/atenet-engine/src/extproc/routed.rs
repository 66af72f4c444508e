//! An answer that lets a request go on, as the bytes of its gRPC message: every request has one, so it is written in one
//! go. The metadata is `{ASSIGNMENT: {key: value, ...}}`, a `google.protobuf.Struct`.

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{encode_varint, encoded_len_varint};

use super::answer::ASSIGNMENT;
use crate::grpc::PREFIX;

/// Tags of what is written: a field's number and how it is spelled.
const RESPONSE_REQUEST_HEADERS: u8 = (1 << 3) | LENGTH;
const RESPONSE_DYNAMIC_METADATA: u8 = (8 << 3) | LENGTH;
const STRUCT_FIELDS: u8 = (1 << 3) | LENGTH;
const ENTRY_KEY: u8 = (1 << 3) | LENGTH;
const ENTRY_VALUE: u8 = (2 << 3) | LENGTH;
const VALUE_NUMBER: u8 = (2 << 3) | FIXED;
const VALUE_STRING: u8 = (3 << 3) | LENGTH;
const VALUE_STRUCT: u8 = (5 << 3) | LENGTH;
const LENGTH: u8 = 2;
const FIXED: u8 = 1;

/// A number's value: its tag and eight bytes.
const NUMBER: usize = 9;
/// As long as answers are, mostly.
const USUAL: usize = 640;

/// The values of one answer, while they are gathered.
pub(super) struct Values(BytesMut);

impl Values {
    pub(super) fn new() -> Self {
        Self(BytesMut::with_capacity(USUAL))
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        let value = field(text.len());
        self.entry(key, value);
        self.0.put_u8(VALUE_STRING);
        put(&mut self.0, text.as_bytes());
    }

    pub(super) fn number(&mut self, key: &str, number: f64) {
        self.entry(key, NUMBER);
        self.0.put_u8(VALUE_NUMBER);
        self.0.put_f64_le(number);
    }

    /// All of an entry but its value, which has so many bytes.
    fn entry(&mut self, key: &str, value: usize) {
        self.0.put_u8(STRUCT_FIELDS);
        encode_varint((field(key.len()) + field(value)) as u64, &mut self.0);
        self.0.put_u8(ENTRY_KEY);
        put(&mut self.0, key.as_bytes());
        self.0.put_u8(ENTRY_VALUE);
        encode_varint(value as u64, &mut self.0);
    }

    /// The whole message in its frame.
    pub(super) fn framed(self) -> Bytes {
        let values = self.0;
        let value = field(values.len());
        let entry = field(ASSIGNMENT.len()) + field(value);
        let metadata = field(entry);
        let message = field(0) + field(metadata);
        let mut out = BytesMut::with_capacity(PREFIX + message);
        out.put_u8(0);
        out.put_u32(u32::try_from(message).unwrap_or(u32::MAX));
        out.put_u8(RESPONSE_REQUEST_HEADERS);
        out.put_u8(0);
        for (tag, length) in [(RESPONSE_DYNAMIC_METADATA, metadata), (STRUCT_FIELDS, entry)] {
            out.put_u8(tag);
            encode_varint(length as u64, &mut out);
        }
        out.put_u8(ENTRY_KEY);
        put(&mut out, ASSIGNMENT.as_bytes());
        for (tag, length) in [(ENTRY_VALUE, value), (VALUE_STRUCT, values.len())] {
            out.put_u8(tag);
            encode_varint(length as u64, &mut out);
        }
        out.put_slice(&values);
        out.freeze()
    }
}

/// How long a field with a tag of one byte is that holds so many bytes.
fn field(bytes: usize) -> usize {
    1 + encoded_len_varint(bytes as u64) + bytes
}

fn put(out: &mut BytesMut, bytes: &[u8]) {
    encode_varint(bytes.len() as u64, out);
    out.put_slice(bytes);
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::value::Kind;

    use super::*;
    use crate::envoy_proto::{ProcessingResponse, processing_response::Response};
    use crate::grpc::extent;

    #[test]
    fn what_is_written_reads_as_the_message_that_is_meant() {
        for length in [0, 1, 127, 128, 300, 20_000] {
            let mut values = Values::new();
            values.text("actor", &"x".repeat(length));
            values.number("route_ms", 1.25);
            let framed = values.framed();
            assert_eq!(extent(&framed), Ok(Some(framed.len())));
            let read = ProcessingResponse::decode(&framed[PREFIX..]).unwrap();
            assert!(matches!(read.response, Some(Response::RequestHeaders(_))));
            let mut all = read.dynamic_metadata.unwrap().fields;
            let Some(Kind::StructValue(values)) = all.remove(ASSIGNMENT).unwrap().kind else { panic!("no struct") };
            assert!(all.is_empty());
            assert_eq!(values.fields["actor"].kind, Some(Kind::StringValue("x".repeat(length))));
            assert_eq!(values.fields["route_ms"].kind, Some(Kind::NumberValue(1.25)));
            assert_eq!(values.fields.len(), 2);
        }
    }
}
