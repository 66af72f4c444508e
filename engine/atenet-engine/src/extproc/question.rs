//! What Envoy asks: the head of one request, and which of its filter chains it came in by. Pure.

use super::fields::{Fields, Malformed};
use crate::actor_ref::{ActorRef, TARGET_HEADER};
use crate::authority::connect_port;
use crate::refusal::Refusal;

/// The port of a plain request, whatever its Host says.
const DEFAULT_PORT: u16 = 80;

const CHAIN: &str = "xds.filter_chain_name";
const OUTER_ACTOR: &str = "filter_state['x-ate-outer-actor']";
const OUTER_PORT: &str = "filter_state['x-ate-outer-port']";

/// What the request's answer needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Find the actor and carry the request to this port.
    Route { actor: ActorRef, port: u16 },
    /// A CONNECT that names both; the requests inside it are asked about one by one.
    Open { actor: ActorRef, port: u16 },
}

/// One request, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Question<'a> {
    pub(super) method: &'a str,
    pub(super) authority: &'a str,
    /// Without the query string.
    pub(super) path: &'a str,
    pub(super) grpc: bool,
    pub(super) trace: Option<&'a str>,
    targets: Vec<&'a [u8]>,
    chain: &'a str,
    outer_actor: &'a str,
    outer_port: &'a str,
}

impl<'a> Question<'a> {
    /// Reads a `ProcessingRequest`; `None` when it holds no request headers. Every request has one, so it is read where
    /// it lies. The numbers are those of proto/envoy-ext-proc/external_processor.proto.
    pub(super) fn read(message: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let (mut question, mut found) = (Self::default(), false);
        for field in Fields::of(message) {
            match field? {
                (2, request_headers) => found |= question.headers(request_headers)?,
                (9, attributes) => question.attributes(attributes)?,
                _ => {}
            }
        }
        Ok(found.then_some(question))
    }

    /// Whether there were any.
    fn headers(&mut self, request_headers: &'a [u8]) -> Result<bool, Malformed> {
        let mut found = false;
        for field in Fields::of(request_headers) {
            let (1, map) = field? else { continue };
            found = true;
            for field in Fields::of(map) {
                if let (1, header) = field? {
                    self.header(header)?;
                }
            }
        }
        Ok(found)
    }

    fn header(&mut self, header: &'a [u8]) -> Result<(), Malformed> {
        let [key, value, raw] = three(header)?;
        let bytes = if raw.is_empty() { value } else { raw };
        if key == TARGET_HEADER.as_bytes() {
            self.targets.push(bytes);
            return Ok(());
        }
        match key {
            b":method" => self.method = text(bytes),
            b":authority" | b"host" => self.authority = text(bytes),
            b":path" => self.path = text(bytes).split('?').next().unwrap_or_default(),
            b"content-type" => self.grpc = is_grpc(text(bytes)),
            b"traceparent" => self.trace = Some(text(bytes)),
            _ => {}
        }
        Ok(())
    }

    /// One filter's attributes: its name, and a struct of values of which texts matter.
    fn attributes(&mut self, entry: &'a [u8]) -> Result<(), Malformed> {
        let [_, values, _] = three(entry)?;
        for field in Fields::of(values) {
            let (1, entry) = field? else { continue };
            let [name, value, _] = three(entry)?;
            let [_, _, value] = three(value)?;
            match std::str::from_utf8(name) {
                Ok(CHAIN) => self.chain = text(value),
                Ok(OUTER_ACTOR) => self.outer_actor = text(value),
                Ok(OUTER_PORT) => self.outer_port = text(value),
                _ => {}
            }
        }
        Ok(())
    }

    /// What is to be done, or why nothing is.
    pub(super) fn ask(&self) -> Result<Ask, Refusal> {
        let connect = self.method == "CONNECT";
        match self.chain {
            "connect" if !connect => Err(Refusal::MethodNotAllowed),
            "connect" => {
                let actor = self.target()?;
                let port = connect_port(self.authority.as_bytes()).ok_or(Refusal::BadConnectPort)?;
                Ok(Ask::Open { actor, port })
            }
            "ingress" | "connected" if connect => Err(Refusal::MethodNotAllowed),
            "ingress" | "connected" if !self.one_host() => Err(Refusal::BadRequest),
            "ingress" => Ok(Ask::Route { actor: self.target()?, port: DEFAULT_PORT }),
            "connected" => self.outer(),
            // A chain that nobody here knows must not be taken for an open door.
            _ => Err(Refusal::Internal),
        }
    }

    /// The one target header. Two are refused even if they agree: another hop might pick the other one.
    fn target(&self) -> Result<ActorRef, Refusal> {
        match self.targets.as_slice() {
            [value] => ActorRef::parse(value).map_err(|_| Refusal::BadTarget),
            _ => Err(Refusal::BadTarget),
        }
    }

    /// Inside a CONNECT only what the CONNECT named counts.
    fn outer(&self) -> Result<Ask, Refusal> {
        let actor = ActorRef::parse(self.outer_actor.as_bytes()).map_err(|_| Refusal::Internal)?;
        let port = self.outer_port.parse().ok().filter(|port| *port != 0).ok_or(Refusal::Internal)?;
        Ok(Ask::Route { actor, port })
    }

    /// Envoy joins several Host fields with commas.
    fn one_host(&self) -> bool {
        !self.authority.is_empty() && !self.authority.contains(|c: char| c == ',' || c.is_whitespace())
    }
}

/// The fields 1 to 3 of a message; empty where there is none.
fn three(message: &[u8]) -> Result<[&[u8]; 3], Malformed> {
    let mut found = [&[][..]; 3];
    for field in Fields::of(message) {
        if let (number @ 1..=3, bytes) = field? {
            found[number as usize - 1] = bytes;
        }
    }
    Ok(found)
}

/// What is no text is nothing that is known here.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// As Envoy's own gRPC route matches, so that the call and its refusal speak the same protocol.
fn is_grpc(content_type: &str) -> bool {
    content_type.strip_prefix("application/grpc").is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
