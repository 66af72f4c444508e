//! The WebSocket handshake towards an actor on behalf of an HTTP/2 client (RFC 8441, 5).

use aws_lc_rs::{digest, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::http1::{Fields, RequestHead, ResponseHead};

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const ACCEPT: &[u8] = b"sec-websocket-accept";

/// Turns an extended CONNECT's head into an HTTP/1.1 upgrade; returns what the actor must accept it with.
/// `None`: the system has no randomness.
pub(super) fn upgrade(head: &mut RequestHead) -> Option<String> {
    let mut nonce = [0_u8; 16];
    rand::fill(&mut nonce).ok()?;
    let key = STANDARD.encode(nonce);
    let fields = &mut head.fields;
    fields.set(b"sec-websocket-key", key.as_bytes());
    if fields.named(b"sec-websocket-version").is_none() {
        fields.push(b"sec-websocket-version", b"13");
    }
    fields.push(b"connection", b"Upgrade");
    fields.push(b"upgrade", b"websocket");
    Some(accept(key.as_bytes()))
}

/// Whether the actor proved that it understood, and the fields that HTTP/2 has no use for gone.
pub(super) fn confirm(head: &mut ResponseHead, expected: &str) -> bool {
    let proved = head.fields.named(ACCEPT) == Some(expected.as_bytes());
    remove(&mut head.fields, ACCEPT);
    proved
}

fn remove(fields: &mut Fields, name: &[u8]) {
    fields.retain(|_, n, _| !n.eq_ignore_ascii_case(name));
}

fn accept(key: &[u8]) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(GUID);
    STANDARD.encode(context.finish())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::ingress) fn accept_for(key: &str) -> String {
        accept(key.as_bytes())
    }

    #[test]
    fn the_accept_hash_is_the_standards_own_example() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn an_actor_that_cannot_prove_it_is_not_believed() {
        let mut head = RequestHead::default();
        head.fields.push(b"sec-websocket-key", b"the client's");
        let expected = upgrade(&mut head).unwrap();
        assert_ne!(head.fields.named(b"sec-websocket-key"), Some(&b"the client's"[..]));
        for (value, want) in [(expected.as_str(), true), ("AAAA", false)] {
            let mut answer = ResponseHead::default();
            answer.fields.push(b"Sec-WebSocket-Accept", value.as_bytes());
            assert_eq!(confirm(&mut answer, &expected), want);
            assert!(answer.fields.is_empty());
        }
    }
}
