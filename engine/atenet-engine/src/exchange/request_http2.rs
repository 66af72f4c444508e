//! An HTTP/2 request as the one form of request head that the rest knows. Pure.

use h2::ext::Protocol;
use http::request::Parts;
use http::{Method, Version as HttpVersion};

use super::headers::from_map;
use crate::http1::{Framing, HeadError, Kind, RequestHead, Version, host_is_sane};

/// What a stream asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Request(Framing),
    /// Extended CONNECT with `:protocol` websocket (RFC 8441).
    WebSocket,
    /// Plain CONNECT, or extended with a protocol that we do not carry.
    Connect {
        extended: bool,
    },
}

/// Fills `head`. `ended`: the stream ended with its head; `fields`: how many it may have.
pub(crate) fn read(parts: &Parts, ended: bool, fields: usize, head: &mut RequestHead) -> Result<Ask, HeadError> {
    debug_assert_eq!(parts.version, HttpVersion::HTTP_2);
    head.version = Version::Http11;
    head.method = parts.method.clone();
    if parts.headers.len() > fields {
        return Err(HeadError::TooLarge);
    }
    from_map(&parts.headers, &mut head.fields);
    head.target.clear();
    if parts.method == Method::CONNECT {
        return connect(parts, ended, head);
    }
    let path = parts.uri.path_and_query().ok_or(HeadError::Target)?.as_str();
    let asterisk = path == "*" && parts.method == Method::OPTIONS;
    if !path.starts_with('/') && !asterisk {
        return Err(HeadError::Target);
    }
    head.target.extend_from_slice(path.as_bytes());
    set_host(parts, head)?;
    framing(head, ended).map(Ask::Request)
}

fn connect(parts: &Parts, ended: bool, head: &mut RequestHead) -> Result<Ask, HeadError> {
    let Some(protocol) = parts.extensions.get::<Protocol>() else {
        let authority = parts.uri.authority().ok_or(HeadError::Target)?;
        head.target.extend_from_slice(authority.as_str().as_bytes());
        return Ok(Ask::Connect { extended: false });
    };
    if !protocol.as_str().eq_ignore_ascii_case("websocket") {
        return Ok(Ask::Connect { extended: true });
    }
    let path = parts.uri.path_and_query().ok_or(HeadError::Target)?.as_str();
    if !path.starts_with('/') || ended || head.fields.has(Kind::ContentLength) {
        return Err(HeadError::Target);
    }
    head.target.extend_from_slice(path.as_bytes());
    head.method = Method::GET;
    set_host(parts, head)?;
    Ok(Ask::WebSocket)
}

/// `:authority` is the Host; a Host beside it must say the same.
fn set_host(parts: &Parts, head: &mut RequestHead) -> Result<(), HeadError> {
    let authority = parts.uri.authority().map(|a| a.as_str().as_bytes());
    let mut hosts = head.fields.all(Kind::Host);
    let host = match (authority, hosts.next(), hosts.next()) {
        (Some(authority), None, _) => authority.to_vec(),
        (Some(authority), Some(host), None) if authority.eq_ignore_ascii_case(host) => authority.to_vec(),
        (None, Some(host), None) => host.to_vec(),
        _ => return Err(HeadError::Host),
    };
    drop(hosts);
    if !host_is_sane(&host) {
        return Err(HeadError::Host);
    }
    head.fields.set(b"host", &host);
    Ok(())
}

fn framing(head: &RequestHead, ended: bool) -> Result<Framing, HeadError> {
    match (crate::http1::request_framing(head)?, ended) {
        (Framing::Length(1..), true) | (Framing::Chunked | Framing::UntilClose, _) => Err(HeadError::Framing),
        (Framing::Length(n), _) => Ok(Framing::Length(n)),
        (Framing::Empty, false) => Ok(Framing::Chunked),
        // Said aloud, since HTTP/1.1 servers may refuse these methods without a length.
        (Framing::Empty, true) if matches!(head.method, Method::POST | Method::PUT | Method::PATCH) => {
            Ok(Framing::Length(0))
        }
        (Framing::Empty, true) => Ok(Framing::Empty),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn ask(request: http::request::Builder, ended: bool) -> (Result<Ask, HeadError>, RequestHead) {
        let (parts, ()) = request.version(HttpVersion::HTTP_2).body(()).unwrap().into_parts();
        let mut head = RequestHead::default();
        (read(&parts, ended, 4, &mut head), head)
    }

    #[test]
    fn the_authority_becomes_the_host_port_and_all() {
        let (asked, head) = ask(Request::get("https://app:8443/a?b").header("x", "y"), true);
        assert_eq!(asked, Ok(Ask::Request(Framing::Empty)));
        assert_eq!((head.target.as_slice(), head.fields.get(Kind::Host)), (&b"/a?b"[..], Some(&b"app:8443"[..])));
    }

    #[test]
    fn a_host_that_differs_from_the_authority_is_refused() {
        assert!(ask(Request::get("https://a/").header("host", "A"), true).0.is_ok());
        assert_eq!(ask(Request::get("https://a/").header("host", "b"), true).0, Err(HeadError::Host));
        let twice = Request::get("https://a/").header("host", "a").header("host", "a");
        assert_eq!(ask(twice, true).0, Err(HeadError::Host));
        assert_eq!(ask(Request::get("/"), true).0, Err(HeadError::Host));
    }

    #[test]
    fn more_fields_than_allowed_are_too_many() {
        let with =
            |n: usize| (0..n).fold(Request::get("https://a/"), |request, i| request.header(format!("x-{i}"), "y"));
        assert!(ask(with(4), true).0.is_ok());
        assert_eq!(ask(with(5), true).0, Err(HeadError::TooLarge));
    }

    #[test]
    fn lengths_follow_the_stream() {
        let post = || Request::post("https://a/");
        assert_eq!(ask(post(), false).0, Ok(Ask::Request(Framing::Chunked)));
        assert_eq!(ask(post(), true).0, Ok(Ask::Request(Framing::Length(0))));
        assert_eq!(ask(post().header("content-length", "3"), false).0, Ok(Ask::Request(Framing::Length(3))));
        assert_eq!(ask(post().header("content-length", "3"), true).0, Err(HeadError::Framing));
        assert_eq!(ask(post().header("transfer-encoding", "chunked"), false).0, Err(HeadError::Framing));
        let twice = post().header("content-length", "3").header("content-length", "3");
        assert_eq!(ask(twice, false).0, Err(HeadError::Framing));
    }

    #[test]
    fn an_extended_connect_is_a_websocket_or_nothing() {
        let with = |protocol: &'static str| {
            Request::builder().method("CONNECT").uri("https://a/chat").extension(Protocol::from_static(protocol))
        };
        let (asked, head) = ask(with("websocket"), false);
        assert_eq!((asked, head.method), (Ok(Ask::WebSocket), Method::GET));
        assert_eq!(ask(with("connect-udp"), false).0, Ok(Ask::Connect { extended: true }));
        let (asked, head) = ask(Request::builder().method("CONNECT").uri("a:81"), false);
        assert_eq!((asked, head.target.as_slice()), (Ok(Ask::Connect { extended: false }), &b"a:81"[..]));
    }
}
