//! Header hygiene: what crosses the router and what does not. Pure.

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::http1::{Fields, Framing, Kind, list_members};

/// The one upgrade that is carried (row I-09).
const WEBSOCKET: &[u8] = b"websocket";

/// Whether the client asks for a WebSocket: `Connection` lists `upgrade` and `Upgrade` is `websocket` alone.
pub(crate) fn asks_for_websocket(method: &Method, fields: &Fields) -> bool {
    let listed = fields.all(Kind::Connection).flat_map(list_members).any(|m| m.eq_ignore_ascii_case(b"upgrade"));
    let mut upgrades = fields.all(Kind::Upgrade);
    let only = upgrades.next().is_some_and(|u| u.eq_ignore_ascii_case(WEBSOCKET)) && upgrades.next().is_none();
    method == Method::GET && listed && only
}

/// Whether an actor's 101 is the WebSocket that was asked for.
pub(crate) fn confirms_websocket(fields: &Fields) -> bool {
    fields.get(Kind::Upgrade).is_some_and(|u| u.eq_ignore_ascii_case(WEBSOCKET))
}

pub(crate) fn is_grpc(fields: &Fields) -> bool {
    fields.get(Kind::ContentType).is_some_and(|value| {
        let media = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        let (start, rest) = media.split_at_checked(16).unwrap_or_default();
        start.eq_ignore_ascii_case(b"application/grpc") && matches!(rest.first(), None | Some(b'+'))
    })
}

pub(crate) fn accepts_trailers(fields: &Fields) -> bool {
    fields.all(Kind::Te).flat_map(list_members).any(|m| m.eq_ignore_ascii_case(b"trailers"))
}

/// A request's fields for the actor: the client's hop removed first, ours set afterwards.
pub(crate) fn to_actor(fields: &mut Fields, framing: Framing, websocket: bool) {
    let trailers = accepts_trailers(fields);
    remove_hop(fields);
    fields.retain(|kind, _, _| !matches!(kind, Kind::TargetActor | Kind::ContentLength));
    join_cookies(fields);
    match framing {
        Framing::Length(n) => push_length(fields, n),
        Framing::Chunked | Framing::UntilClose => fields.push(b"transfer-encoding", b"chunked"),
        Framing::Empty => {}
    }
    if websocket {
        fields.push(b"connection", b"Upgrade");
        fields.push(b"upgrade", WEBSOCKET);
    } else if trailers {
        // Trailers do pass through us, so the client's wish is ours on this hop.
        fields.push(b"connection", b"te");
        fields.push(b"te", b"trailers");
    }
}

/// A request's fields, ready for an HTTP/1.1 actor, as HTTP/2 wants them: no hop's fields but `te`.
pub(crate) fn for_http2(fields: &mut Fields) {
    fields.retain(|kind, _, _| !matches!(kind, Kind::Host | Kind::Connection | Kind::TransferEncoding | Kind::Upgrade));
}

/// A response's fields for the client, its framing left to whoever writes it.
pub(crate) fn to_client(fields: &mut Fields) {
    remove_hop(fields);
    fields.remove(Kind::TargetActor);
}

/// Trailers may not change what was said before the body.
pub(crate) fn trailers(fields: &mut Fields) {
    remove_hop(fields);
    fields.retain(|kind, _, _| {
        !matches!(
            kind,
            Kind::TargetActor | Kind::ContentLength | Kind::ContentType | Kind::Host | Kind::Expect | Kind::Cookie
        )
    });
}

/// Removes what belongs to one hop: the fixed set, everything any `Connection` line names, and names
/// that only our own parts may use. Host is no hop's property whatever a client says.
fn remove_hop(fields: &mut Fields) {
    if fields.has(Kind::Connection) {
        let named: Vec<Vec<u8>> =
            fields.all(Kind::Connection).flat_map(list_members).map(<[u8]>::to_ascii_lowercase).collect();
        fields.retain(|kind, name, _| kind == Kind::Host || !named.iter().any(|n| n.eq_ignore_ascii_case(name)));
    }
    fields.retain(|kind, _, _| {
        !matches!(
            kind,
            Kind::Connection
                | Kind::Http2Settings
                | Kind::Internal
                | Kind::KeepAlive
                | Kind::ProxyAuthenticate
                | Kind::ProxyAuthorization
                | Kind::ProxyConnection
                | Kind::Te
                | Kind::TransferEncoding
                | Kind::Upgrade
        )
    });
}

/// HTTP/2 splits cookies into fields of their own; HTTP/1.1 knows one (RFC 9113, 8.2.3).
fn join_cookies(fields: &mut Fields) {
    if fields.all(Kind::Cookie).count() > 1 {
        let given = fields.all(Kind::Cookie).filter(|cookie| !cookie.is_empty());
        let joined = given.collect::<Vec<_>>().join(&b"; "[..]);
        fields.set(b"cookie", &joined);
    }
}

pub(crate) fn push_length(fields: &mut Fields, length: u64) {
    fields.push(b"content-length", itoa::Buffer::new().format(length).as_bytes());
}

/// HTTP/2 fields, in order, names in lower case already.
pub(crate) fn from_map(map: &HeaderMap, into: &mut Fields) {
    into.clear();
    for (name, value) in map {
        into.push(name.as_str().as_bytes(), value.as_bytes());
    }
}

/// Fields for HTTP/2. What is no valid HTTP/2 field (nothing that was parsed here) is left out.
pub(crate) fn to_map(fields: &Fields) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(fields.len());
    for (_, name, value) in fields.iter() {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            map.append(name, value);
        }
    }
    map
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
