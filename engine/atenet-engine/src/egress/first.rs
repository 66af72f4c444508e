//! What an actor's first bytes are: cleartext HTTP, TLS, or something that is not carried (row E-07). Pure.

use super::hello::{self, Hello, HelloError, client_hello};
use crate::exchange::sniff::{Spoken, spoken};

/// A handshake record.
const TLS: u8 = 22;
/// Refused, but in HTTP: an actor that uses us as a proxy shall be told so.
const CONNECT: &[u8] = b"CONNECT ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum First {
    Http1,
    Http2,
    Tls(Hello),
    /// It began as TLS.
    Malformed(HelloError),
    Other,
    /// Too little to tell.
    Unclear,
}

/// The most bytes that are looked at.
pub(super) const MAX_BYTES: usize = hello::MAX_BYTES;

/// Whether an alert would be understood.
pub(super) fn began_as_tls(bytes: &[u8]) -> bool {
    bytes.first() == Some(&TLS)
}

pub(super) fn first(bytes: &[u8]) -> First {
    if began_as_tls(bytes) {
        return match client_hello(bytes) {
            Ok(Some(hello)) => First::Tls(hello),
            Ok(None) => First::Unclear,
            Err(error) => First::Malformed(error),
        };
    }
    let common = bytes.len().min(CONNECT.len());
    if bytes[..common] == CONNECT[..common] {
        return if common == CONNECT.len() { First::Http1 } else { First::Unclear };
    }
    match spoken(bytes) {
        Spoken::Http1 => First::Http1,
        Spoken::Http2 => First::Http2,
        Spoken::Other => First::Other,
        Spoken::Unclear => First::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        for (bytes, want) in [
            (&b"GET / HTTP/1.1\r\n"[..], First::Http1),
            (b"PROPFIND /x HTTP/1.1\r\n", First::Http1),
            (b"GET http://a.example/ HTTP/1.1\r\n", First::Http1),
            (b"CONNECT a.example:443 HTTP/1.1\r\n", First::Http1),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", First::Http2),
            (b"SSH-2.0-OpenSSH", First::Other),
            (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", First::Other),
            (b"\x80\x2e\x01\x03\x01", First::Other),
            (b"", First::Unclear),
            (b"CONNEC", First::Unclear),
            (b"\x16\x03\x01", First::Unclear),
            (b"\x16\x02", First::Malformed(HelloError::Record)),
        ] {
            assert_eq!(first(bytes), want, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_verdict_stands_whatever_follows(bytes in proptest::collection::vec(any::<u8>(), 0..64), at in 0usize..64) {
            let (early, late) = (first(&bytes[..at.min(bytes.len())]), first(&bytes));
            prop_assert!(early == First::Unclear || early == late, "{early:?} became {late:?}");
        }

        #[test]
        fn words_keep_their_verdict(text in "([A-OQ-Z][A-Z]{0,21})?[ ]?[a-z:/* ]{0,12}", at in 0usize..36) {
            let bytes = text.as_bytes();
            let (early, late) = (first(&bytes[..at.min(bytes.len())]), first(bytes));
            prop_assert!(early == First::Unclear || early == late, "{early:?} became {late:?}");
        }
    }
}
