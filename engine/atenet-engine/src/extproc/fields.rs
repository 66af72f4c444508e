//! A protobuf message's fields as they stand on the wire: what is read of a question is read in place.

use prost::encoding::{WireType, decode_key, decode_varint};
use thiserror::Error;

/// The bytes are no message.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("is malformed")]
pub(super) struct Malformed;

/// Texts, bytes and messages, in order: a field's number and its bytes. Numbers are passed over.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn step(&mut self) -> Result<Option<(u32, &'a [u8])>, Malformed> {
        let (number, kind) = decode_key(&mut self.0).map_err(|_| Malformed)?;
        let over = match kind {
            WireType::LengthDelimited => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                let (field, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
                self.0 = rest;
                return Ok(Some((number, field)));
            }
            WireType::Varint => self.varint().map(|_| 0)?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            // Nobody writes these any more.
            WireType::StartGroup | WireType::EndGroup => return Err(Malformed),
        };
        self.0 = self.0.get(over..).ok_or(Malformed)?;
        Ok(None)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        decode_varint(&mut self.0).map_err(|_| Malformed)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            match self.step() {
                Ok(None) => {}
                Ok(Some(field)) => return Some(Ok(field)),
                Err(malformed) => {
                    self.0 = &[];
                    return Some(Err(malformed));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::envoy_proto::HeaderValue;

    #[test]
    fn texts_and_bytes_come_in_order_and_numbers_are_passed_over() {
        // 1: "ab", 2: varint 300, 3: eight bytes, 4: four bytes, 5: "".
        let wire = [&b"\x0a\x02ab\x10\xac\x02\x19"[..], &[0; 8], b"\x25", &[0; 4], b"\x2a\x00"].concat();
        let read: Result<Vec<_>, _> = Fields::of(&wire).collect();
        assert_eq!(read, Ok(vec![(1, &b"ab"[..]), (5, &b""[..])]));
        for cut in [1, 2, 3, 5, 6, 8, 15, 17, 20, 22] {
            assert!(Fields::of(&wire[..cut]).any(|field| field.is_err()), "cut at {cut}");
        }
        assert_eq!(Fields::of(b"\x0b").collect::<Vec<_>>(), [Err(Malformed)]);
    }

    proptest! {
        #[test]
        fn a_message_reads_as_it_was_written_and_garbage_ends(key in ".{0,200}", raw in prop::collection::vec(any::<u8>(), 0..300)) {
            let wire = HeaderValue { key: key.clone(), value: String::new(), raw_value: raw.clone() }.encode_to_vec();
            let read: Vec<_> = Fields::of(&wire).map(Result::unwrap).collect();
            let all = [(1, key.as_bytes()), (3, &raw[..])];
            let wanted: Vec<_> = all.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
            prop_assert_eq!(read, wanted);
            prop_assert!(Fields::of(&raw).count() <= raw.len());
        }
    }
}
