//! Which calls the front answers by itself: a known caller, a warm method, one small plain message, and an actor that
//! the store has an answer for. Whatever is not exactly so is the control plane's to judge.

use std::collections::{HashMap, HashSet};

use bytes::{Buf, Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;

use crate::actor_ref::ActorRef;
use crate::config::WarmMethod;
use crate::proto::{GetActorEgressPolicyRequest, GetActorRequest, LocateRequest, ObjectRef, ResumeActorRequest};

/// More than two names of full length need, with what gRPC puts around them.
pub(super) const LONGEST: usize = 512;

/// The part of the table of roles that the front needs.
pub(super) struct Grants(HashMap<String, HashSet<WarmMethod>>);

impl Grants {
    pub(super) fn new(grants: &HashMap<String, HashSet<WarmMethod>>) -> Self {
        Self(grants.clone())
    }

    /// The warm method that this head calls, if the caller may.
    pub(super) fn warm(&self, peer: Option<&str>, head: &request::Parts) -> Option<WarmMethod> {
        let method = match head.uri.path() {
            "/ateapi.Control/ResumeActor" => WarmMethod::ResumeActor,
            "/ateapi.Control/GetActor" => WarmMethod::GetActor,
            "/ateapi.Control/GetActorEgressPolicy" => WarmMethod::GetActorEgressPolicy,
            "/ateapi.RouterSupport/Locate" => WarmMethod::Locate,
            _ => return None,
        };
        let granted = self.0.get(peer?)?.contains(&method);
        (granted && head.method == Method::POST && plain(&head.headers)).then_some(method)
    }
}

/// gRPC without compression, and nothing besides the certificate that says who calls.
fn plain(headers: &HeaderMap) -> bool {
    let grpc = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/grpc");
    let encoded = headers.get("grpc-encoding").is_some_and(|encoding| encoding != "identity");
    grpc && !encoded && !headers.contains_key(AUTHORIZATION)
}

/// What was read of a request's body.
pub(super) enum Read {
    /// All of it.
    Whole(Bytes),
    /// More than a warm call has, or its end did not come.
    Part(Bytes),
}

impl Read {
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Whole(bytes) | Self::Part(bytes) => bytes,
        }
    }
}

/// Reads a body that may be a warm call's. An error that it ends with comes again to whoever reads on.
pub(super) async fn read(body: &mut Incoming) -> Read {
    let mut first = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(drop).and_then(|frame| frame.into_data().map_err(drop)) else {
            return Read::Part(first);
        };
        first = joined(first, data);
        if first.len() > LONGEST {
            return Read::Part(first);
        }
    }
    Read::Whole(first)
}

fn joined(first: Bytes, more: Bytes) -> Bytes {
    if first.is_empty() {
        return more;
    }
    let mut both = BytesMut::with_capacity(first.len() + more.len());
    both.extend_from_slice(&first);
    both.extend_from_slice(&more);
    both.freeze()
}

/// The actor that a whole body names; none unless it is one uncompressed message that names one well.
pub(super) fn named(method: WarmMethod, body: &Bytes) -> Option<ActorRef> {
    let mut message = body.clone();
    if message.len() < 5 || message.get_u8() != 0 || message.get_u32() as usize != message.remaining() {
        return None;
    }
    actor_in(method, message)
}

/// The actor that a message names, if it names one well.
pub(super) fn actor_in(method: WarmMethod, message: Bytes) -> Option<ActorRef> {
    let actor: ObjectRef = match method {
        WarmMethod::GetActor => GetActorRequest::decode(message).ok()?.actor?,
        WarmMethod::GetActorEgressPolicy => GetActorEgressPolicyRequest::decode(message).ok()?.actor?,
        WarmMethod::ResumeActor => ResumeActorRequest::decode(message).ok()?.actor?,
        WarmMethod::Locate => LocateRequest::decode(message).ok()?.actor?,
    };
    ActorRef::new(&actor.atespace, &actor.name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: &str = "spiffe://cluster.local/ns/ate-system/sa/atenet-router";

    fn head(path: &str, more: &[(&'static str, &'static str)]) -> request::Parts {
        let mut request = http::Request::post(path).header("content-type", "application/grpc");
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn warm(peer: Option<&str>, head: &request::Parts) -> Option<WarmMethod> {
        let grants = HashMap::from([(ROUTER.to_owned(), HashSet::from([WarmMethod::ResumeActor]))]);
        Grants::new(&grants).warm(peer, head)
    }

    #[test]
    fn only_a_granted_method_of_a_known_caller_is_warm() {
        let resume = head("/ateapi.Control/ResumeActor", &[]);
        assert_eq!(warm(Some(ROUTER), &resume), Some(WarmMethod::ResumeActor));
        assert_eq!(warm(None, &resume), None);
        assert_eq!(warm(Some("spiffe://cluster.local/ns/default/sa/local"), &resume), None);
        assert_eq!(warm(Some(ROUTER), &head("/ateapi.Control/GetActor", &[])), None);
        assert_eq!(warm(Some(ROUTER), &head("/ateapi.Control/ResumeActor/", &[])), None);
    }

    #[test]
    fn what_is_not_plain_is_not_warm() {
        for header in
            [("authorization", "Bearer x"), ("grpc-encoding", "gzip"), ("content-type", "application/grpc-web")]
        {
            let mut head = head("/ateapi.Control/ResumeActor", &[]);
            head.headers.insert(header.0, header.1.parse().unwrap());
            assert_eq!(warm(Some(ROUTER), &head), None, "{header:?}");
        }
    }

    fn message(atespace: &str, name: &str) -> Vec<u8> {
        let actor = Some(ObjectRef { atespace: atespace.into(), name: name.into() });
        let message = ResumeActorRequest { actor }.encode_to_vec();
        let mut framed = vec![0];
        framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        framed.extend_from_slice(&message);
        framed
    }

    #[test]
    fn only_one_whole_message_with_good_names_names_an_actor() {
        let read = |bytes: &[u8]| named(WarmMethod::ResumeActor, &Bytes::copy_from_slice(bytes));
        let good = message("team-a", "a");
        assert_eq!(read(&good), ActorRef::new("team-a", "a").ok());
        for cut in 0..good.len() {
            assert_eq!(read(&good[..cut]), None, "cut at {cut}");
        }
        assert_eq!(read(&[good.clone(), vec![0]].concat()), None);
        assert_eq!(read(&[&[1], &good[1..]].concat()), None);
        assert_eq!(read(&message("team-a", "")), None);
        assert_eq!(read(&message("team-a", "A")), None);
        assert_eq!(read(&message("team-a/b", "c")), None);
        assert_eq!(read(&[0, 0, 0, 0, 0]), None);
    }
}
