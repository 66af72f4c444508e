//! What the first bytes inside a CONNECT are. Pure.

/// What a client inside a CONNECT speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    Http1,
    Http2,
    /// Anything else: TLS, SSH, a database.
    Other,
    /// Too little to tell.
    Unclear,
}

/// What an HTTP/2 client says first; no HTTP/1.1 request begins so.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// No registered method is longer.
const MAX_METHOD: usize = 20;

/// Tells HTTP from the rest: a request line begins with a method in capitals, a space, and a path,
/// an absolute URI, or an asterisk. Protocols that begin with a word (`PING\r\n`, `SSH-2.0`) differ there.
pub(crate) fn spoken(first: &[u8]) -> Spoken {
    let common = first.len().min(PREFACE.len());
    if common >= 3 && first[..common] == PREFACE[..common] {
        return Spoken::Http2;
    }
    let method = first.iter().take_while(|b| b.is_ascii_uppercase() || matches!(b, b'-' | b'_')).count();
    match first.get(method) {
        None if method <= MAX_METHOD => Spoken::Unclear,
        Some(b' ') if (1..=MAX_METHOD).contains(&method) => target(&first[method + 1..]),
        _ => Spoken::Other,
    }
}

fn target(rest: &[u8]) -> Spoken {
    match rest.first() {
        None => Spoken::Unclear,
        Some(b'/' | b'*') => Spoken::Http1,
        Some(_) => {
            let absolute = [&b"http://"[..], b"https://"].into_iter().map(|scheme| {
                let n = rest.len().min(scheme.len());
                (rest[..n].eq_ignore_ascii_case(&scheme[..n]), n == scheme.len())
            });
            match absolute.fold((false, false), |(may, is), (fits, whole)| (may || fits, is || (fits && whole))) {
                (_, true) => Spoken::Http1,
                (true, false) => Spoken::Unclear,
                _ => Spoken::Other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_told_from_the_rest() {
        for (first, want) in [
            (&b"GET / HTTP/1.1\r\n"[..], Spoken::Http1),
            (b"OPTIONS * HTTP/1.1", Spoken::Http1),
            (b"PROPFIND /x", Spoken::Http1),
            (b"M-SEARCH * HTTP/1.1", Spoken::Http1),
            (b"GET http://a/ HTTP/1.1", Spoken::Http1),
            (PREFACE, Spoken::Http2),
            (b"PRI", Spoken::Http2),
            (b"\x16\x03\x01\x02\x00", Spoken::Other),
            (b"\x16", Spoken::Other),
            (b"SSH-2.0-OpenSSH", Spoken::Other),
            (b"PING\r\n", Spoken::Other),
            (b"SET key value\r\n", Spoken::Other),
            (b"*1\r\n$4\r\nPING\r\n", Spoken::Other),
            (b"get / HTTP/1.1", Spoken::Other),
            (b" GET /", Spoken::Other),
            (b"CONNECT a:80 HTTP/1.1", Spoken::Other),
            (b"HELO there", Spoken::Other),
            (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", Spoken::Other),
            (b"", Spoken::Unclear),
            (b"P", Spoken::Unclear),
            (b"PR", Spoken::Unclear),
            (b"GET", Spoken::Unclear),
            (b"GET ", Spoken::Unclear),
            (b"GET ht", Spoken::Unclear),
        ] {
            let text = String::from_utf8_lossy(first);
            assert_eq!(spoken(first), want, "{text:?}");
        }
    }

    #[test]
    fn more_bytes_never_change_a_verdict() {
        for text in [&b"GET / HTTP/1.1"[..], PREFACE, b"\x16\x03\x01", b"PATCH https://a", b"QUIT\r\n"] {
            let mut settled = None;
            for n in 0..=text.len() {
                let now = spoken(&text[..n]);
                if let Some(before) = settled {
                    assert_eq!(now, before, "at {n} of {:?}", String::from_utf8_lossy(text));
                } else if now != Spoken::Unclear {
                    settled = Some(now);
                }
            }
            assert!(settled.is_some());
        }
    }
}
