//! What Envoy asks: the head of one request, and which of its filter chains it came in by. Pure.

use std::collections::HashMap;

use prost_types::{Struct, value::Kind};

use crate::actor_ref::{ActorRef, TARGET_HEADER};
use crate::authority::connect_port;
use crate::envoy_proto::{HeaderValue, ProcessingRequest};
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
    /// Reads a message; `None` when it holds no request headers.
    pub(super) fn read(message: &'a ProcessingRequest) -> Option<Self> {
        let headers = message.request_headers.as_ref()?.headers.as_ref()?;
        let mut question = Self::default();
        for header in &headers.headers {
            question.header(header);
        }
        question.attributes(&message.attributes);
        Some(question)
    }

    fn header(&mut self, header: &'a HeaderValue) {
        let bytes = if header.raw_value.is_empty() { header.value.as_bytes() } else { &header.raw_value };
        if header.key == TARGET_HEADER {
            self.targets.push(bytes);
            return;
        }
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        match header.key.as_str() {
            ":method" => self.method = text,
            ":authority" | "host" => self.authority = text,
            ":path" => self.path = text.split('?').next().unwrap_or_default(),
            "content-type" => self.grpc = is_grpc(text),
            "traceparent" => self.trace = Some(text),
            _ => {}
        }
    }

    fn attributes(&mut self, attributes: &'a HashMap<String, Struct>) {
        for (name, value) in attributes.values().flat_map(|values| &values.fields) {
            let Some(Kind::StringValue(text)) = &value.kind else { continue };
            match name.as_str() {
                CHAIN => self.chain = text,
                OUTER_ACTOR => self.outer_actor = text,
                OUTER_PORT => self.outer_port = text,
                _ => {}
            }
        }
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

/// As Envoy's own gRPC route matches, so that the call and its refusal speak the same protocol.
fn is_grpc(content_type: &str) -> bool {
    content_type.strip_prefix("application/grpc").is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
