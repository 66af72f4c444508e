//! Heads and chunk framing, written.

use bytes::{BufMut, BytesMut};
use http::StatusCode;

use super::fields::Fields;
use super::head::{RequestHead, ResponseHead};

const CRLF: &[u8] = b"\r\n";

/// Writes a request's head, always as HTTP/1.1.
pub fn request_head(head: &RequestHead, out: &mut BytesMut) {
    let method = head.method.as_str().as_bytes();
    out.reserve(method.len() + head.target.len() + 16 + fields_len(&head.fields));
    out.put_slice(method);
    out.put_u8(b' ');
    out.put_slice(&head.target);
    out.put_slice(b" HTTP/1.1\r\n");
    fields(&head.fields, out);
}

/// Writes a response's head, always as HTTP/1.1 (RFC 9112, 2.3: a proxy states its own version).
pub fn response_head(head: &ResponseHead, out: &mut BytesMut) {
    out.reserve(32 + head.reason.len() + fields_len(&head.fields));
    out.put_slice(b"HTTP/1.1 ");
    out.put_slice(head.status.as_str().as_bytes());
    out.put_u8(b' ');
    if head.reason.is_empty() {
        out.put_slice(reason(head.status));
    } else {
        out.put_slice(&head.reason);
    }
    out.put_slice(CRLF);
    fields(&head.fields, out);
}

/// `<size>` CRLF.
pub fn chunk_head(len: usize, out: &mut BytesMut) {
    let mut text = [0_u8; 16];
    let mut at = text.len();
    let mut rest = len;
    loop {
        at -= 1;
        text[at] = b"0123456789abcdef"[rest & 15];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.put_slice(&text[at..]);
    out.put_slice(CRLF);
}

/// The CRLF that closes a chunk.
pub fn chunk_end(out: &mut BytesMut) {
    out.put_slice(CRLF);
}

/// The last chunk and the trailers.
pub fn last_chunk(trailers: Option<&Fields>, out: &mut BytesMut) {
    out.put_slice(b"0\r\n");
    match trailers {
        Some(trailers) => fields(trailers, out),
        None => out.put_slice(CRLF),
    }
}

/// The fields and the empty line.
fn fields(fields: &Fields, out: &mut BytesMut) {
    out.reserve(fields_len(fields));
    for (_, name, value) in fields.iter() {
        out.put_slice(name);
        out.put_slice(b": ");
        out.put_slice(value);
        out.put_slice(CRLF);
    }
    out.put_slice(CRLF);
}

fn fields_len(fields: &Fields) -> usize {
    fields.text_len() + 4 * fields.len() + 2
}

fn reason(status: StatusCode) -> &'static [u8] {
    status.canonical_reason().unwrap_or_default().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::head::{head_end, parse_request, parse_response};
    use super::*;

    #[test]
    fn a_request_head_reads_back_as_written() {
        let text = b"PUT /a HTTP/1.1\r\nHost: b:81\r\nX-Empty: \r\n\r\n";
        let mut head = RequestHead::default();
        parse_request(text, &mut head).unwrap();
        let mut out = BytesMut::new();
        request_head(&head, &mut out);
        assert_eq!(out, &text[..]);
    }

    #[test]
    fn a_response_head_gets_a_reason_when_it_had_none() {
        let text = b"HTTP/1.0 404 \r\nX: y\r\n\r\n";
        let mut head = ResponseHead::default();
        assert_eq!(head_end(text, 0), Ok(Some(text.len())));
        parse_response(text, &mut head).unwrap();
        let mut out = BytesMut::new();
        response_head(&head, &mut out);
        assert_eq!(out, &b"HTTP/1.1 404 Not Found\r\nX: y\r\n\r\n"[..]);
    }

    #[test]
    fn chunk_sizes_are_hexadecimal() {
        for (len, want) in [(0, "0\r\n"), (1, "1\r\n"), (255, "ff\r\n"), (0x10_0000, "100000\r\n")] {
            let mut out = BytesMut::new();
            chunk_head(len, &mut out);
            assert_eq!(out, want.as_bytes());
        }
    }
}
