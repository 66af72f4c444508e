//! From a request's head to the actor, the port and the kind of exchange. Pure.

use http::Method;

use crate::actor_ref::ActorRef;
use crate::authority;
use crate::exchange::headers;
use crate::http1::{Framing, Kind, RequestHead, Version};
use crate::refusal::Refusal;
use crate::trace::Trace;

/// The port of a request that came by no CONNECT (row I-05).
pub(super) const DEFAULT_PORT: u16 = 80;

/// What names the actor of a request.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    /// The request's own header.
    Direct,
    /// The CONNECT around it; a header inside changes nothing (row I-06).
    Tunnel { actor: ActorRef, port: u16 },
}

/// What is to be done with a request.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) actor: ActorRef,
    pub(super) port: u16,
    pub(super) framing: Framing,
    pub(super) websocket: bool,
    pub(super) grpc: bool,
    pub(super) expects_continue: bool,
    /// Filled in by whoever carries the request.
    pub(super) trace: Trace,
}

/// Decides on a request. `framing` has been judged by whoever read it.
pub(super) fn plan(scope: &Scope, head: &RequestHead, framing: Framing) -> Result<Plan, Refusal> {
    if head.method == Method::CONNECT {
        return Err(Refusal::MethodNotAllowed);
    }
    let (actor, port) = match scope {
        Scope::Direct => (target(head)?, DEFAULT_PORT),
        Scope::Tunnel { actor, port } => (actor.clone(), *port),
    };
    let fields = &head.fields;
    let expects = fields.get(Kind::Expect).is_some_and(|e| e.eq_ignore_ascii_case(b"100-continue"));
    let websocket = head.version == Version::Http11 && headers::asks_for_websocket(&head.method, fields);
    if websocket && framing.has_body() {
        return Err(Refusal::BadRequest);
    }
    Ok(Plan {
        actor,
        port,
        framing,
        websocket,
        grpc: headers::is_grpc(fields),
        expects_continue: expects && head.version == Version::Http11 && framing.has_body(),
        trace: Trace::default(),
    })
}

/// The one header, exactly once (rows I-01 and I-02).
pub(super) fn target(head: &RequestHead) -> Result<ActorRef, Refusal> {
    let mut values = head.fields.all(Kind::TargetActor);
    match (values.next(), values.next()) {
        (Some(value), None) => ActorRef::parse(value).map_err(|_| Refusal::BadTarget),
        _ => Err(Refusal::BadTarget),
    }
}

/// The port of a CONNECT's authority: `host:port`, whatever the host.
pub(super) fn connect_port(authority: &[u8]) -> Result<u16, Refusal> {
    let named = authority.first().is_some_and(|b| *b != b':');
    authority::connect_port(authority).filter(|_| named).ok_or(Refusal::BadConnectPort)
}

/// Whether sending it twice is the same as sending it once.
pub(super) fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> RequestHead {
        let mut head = RequestHead::default();
        for (name, value) in fields {
            head.fields.push(name.as_bytes(), value.as_bytes());
        }
        head
    }

    #[test]
    fn the_header_alone_names_the_actor() {
        let one = plan(&Scope::Direct, &head(&[("Host", "c.d:8000"), ("Ate-Target-Actor", "a/b")]), Framing::Empty);
        let one = one.unwrap();
        assert_eq!((one.actor.as_str(), one.port), ("a/b", 80));
        for fields in [
            &[("Host", "a")][..],
            &[("ate-target-actor", "a/b"), ("ate-target-actor", "a/b")],
            &[("ate-target-actor", "a/b"), ("ate-target-actor", "a/c")],
            &[("ate-target-actor", "demo")],
            &[("ate-target-actor", "a/b, a/b")],
        ] {
            assert_eq!(
                plan(&Scope::Direct, &head(fields), Framing::Empty).err(),
                Some(Refusal::BadTarget),
                "{fields:?}"
            );
        }
    }

    #[test]
    fn the_connect_around_a_request_decides_for_it() {
        let scope = Scope::Tunnel { actor: ActorRef::parse(b"x/y").unwrap(), port: 8080 };
        let inner = plan(&scope, &head(&[("ate-target-actor", "a/b")]), Framing::Empty).unwrap();
        assert_eq!((inner.actor.as_str(), inner.port), ("x/y", 8080));
    }

    #[test]
    fn a_connect_is_not_for_a_plain_listener() {
        let head = RequestHead { method: Method::CONNECT, ..head(&[("ate-target-actor", "a/b")]) };
        assert_eq!(plan(&Scope::Direct, &head, Framing::Empty).err(), Some(Refusal::MethodNotAllowed));
    }

    #[test]
    fn only_a_whole_port_counts() {
        for (text, want) in [("a:80", Some(80)), ("[::1]:65535", Some(65535)), ("anything.at.all:1", Some(1))] {
            assert_eq!(connect_port(text.as_bytes()).ok(), want, "{text}");
        }
        for text in
            ["a", "a:", ":80", "a:0", "a:65536", "a:+80", "a:80x", "a:8 0", "::1:80", "a:000080", "a:00080x", ""]
        {
            assert_eq!(connect_port(text.as_bytes()), Err(Refusal::BadConnectPort), "{text}");
        }
    }
}
