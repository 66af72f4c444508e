//! What Envoy is answered. Pure.

use std::net::{IpAddr, SocketAddr};

use prost_types::{Struct, Value};

use super::tunnels::Open;
use crate::egress::denial::Denial;
use crate::egress::plan::Plan;
use crate::egress::tunnel::Tunnel;
use crate::envoy_proto::processing_response::Response;
use crate::envoy_proto::{
    CommonResponse, HeaderMutation, HeadersResponse, ProcessingMode, ProcessingResponse, TrailersResponse,
};
use crate::exchange::refuse::Answer;
use crate::extproc::answer::{self, header, metadata, string};
use crate::http1::{Fields, Framing, Kind};
use crate::policy::{Effect, Host};

/// The namespace of the metadata; python/atenet/router/resources/egress/names.py says the same.
const VERDICT: &str = "x-ate-egress";
/// How Envoy's API calls them.
const SEND: i32 = 1;
const SKIP: i32 = 2;

type Values = Vec<(&'static str, Value)>;

/// What is known of what is asked about, for the access log.
#[derive(Default)]
pub(super) struct Noted(Values);

impl Noted {
    pub(super) fn tunnel(mut self, tunnel: &Tunnel) -> Self {
        self.0.extend([
            ("actor", string(tunnel.actor.as_str())),
            ("atespace", string(tunnel.actor.atespace())),
            ("name", string(tunnel.actor.name())),
            ("dialled", string(&tunnel.dialled.to_string())),
            ("port", string(itoa::Buffer::new().format(tunnel.port()))),
        ]);
        self
    }

    pub(super) fn rule(mut self, host: &Host, rule: usize) -> Self {
        self.0.push(("host", string(&host.to_string())));
        self.0.push(("rule", string(itoa::Buffer::new().format(rule))));
        self
    }

    fn and<const N: usize>(mut self, values: [(&'static str, &str); N]) -> Struct {
        self.0.extend(values.map(|(key, value)| (key, string(value))));
        metadata(VERDICT, self.0)
    }
}

pub(super) fn refused(denial: Denial, grpc: bool, noted: Noted) -> ProcessingResponse {
    answer::refuse(&Answer::from(denial), grpc, noted.and([]))
}

fn go_on(mutation: Option<HeaderMutation>, metadata: Struct) -> ProcessingResponse {
    let response = mutation.map(|mutation| CommonResponse { header_mutation: Some(mutation) });
    ProcessingResponse {
        response: Some(Response::RequestHeaders(HeadersResponse { response })),
        dynamic_metadata: Some(metadata),
        mode_override: None,
    }
}

/// The tunnel is open.
pub(super) fn opened(open: &Open) -> ProcessingResponse {
    go_on(None, Noted::default().tunnel(&open.tunnel).and([("tunnel", &open.id)]))
}

/// The connection goes to this filter chain.
pub(super) fn chain(chain: &str, noted: Noted) -> ProcessingResponse {
    go_on(None, noted.and([("chain", chain)]))
}

/// The connection passes to this address, its bytes untouched.
pub(super) fn passes(to: SocketAddr, noted: Noted) -> ProcessingResponse {
    let (address, port) = spelled(to);
    go_on(None, noted.and([("chain", "passthrough"), ("address", &address), ("port", &port)]))
}

/// The request goes to this address, as `after` says.
pub(super) fn carried(
    plan: &Plan,
    to: SocketAddr,
    (before, after): (&Fields, &Fields),
    noted: Noted,
) -> ProcessingResponse {
    let (address, port) = spelled(to);
    let name = match &plan.host {
        Host::Name(name) => name.to_string(),
        Host::Address(ip) => ip.to_string(),
    };
    // An address is no server name (RFC 6066, section 3); what is empty is not set.
    let server_name = plan.host.name().unwrap_or_default();
    let values = [("address", &*address), ("port", &port), ("server_name", server_name), ("certificate_name", &name)];
    let mut answer = go_on(Some(mutation(before, after)), noted.and(values));
    // A body of no bytes may have trailers all the same.
    if !plan.effects.is_empty() && plan.framing != Framing::Empty {
        let trailers = ProcessingMode {
            request_header_mode: SEND,
            response_header_mode: SKIP,
            request_trailer_mode: SEND,
            response_trailer_mode: SKIP,
        };
        answer.mode_override = Some(trailers);
    }
    answer
}

/// Trailers cannot bring back what a rule replaced.
pub(super) fn trailers(effects: &[Effect]) -> ProcessingResponse {
    let remove_headers = effects.iter().map(|effect| effect.header.clone()).collect();
    let header_mutation = Some(HeaderMutation { set_headers: Vec::new(), remove_headers });
    ProcessingResponse {
        response: Some(Response::RequestTrailers(TrailersResponse { header_mutation })),
        dynamic_metadata: None,
        mode_override: None,
    }
}

/// As Envoy's filters read them.
fn spelled(to: SocketAddr) -> (String, String) {
    let address = match to.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    (address, to.port().to_string())
}

/// What Envoy itself frames and removes is left to it.
fn is_framing(kind: Kind) -> bool {
    matches!(kind, Kind::Connection | Kind::ContentLength | Kind::Te | Kind::TransferEncoding | Kind::Upgrade)
}

fn mutation(before: &Fields, after: &Fields) -> HeaderMutation {
    let gone = before.iter().filter(|(kind, name, _)| !is_framing(*kind) && after.named(name).is_none());
    let changed = after.iter().filter(|(kind, name, _)| !is_framing(*kind) && differ(before, after, name));
    let set = changed.map(|(_, name, value)| {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        header(if name == "host" { ":authority" } else { &name }, value)
    });
    HeaderMutation {
        set_headers: set.collect(),
        remove_headers: gone.map(|(_, name, _)| String::from_utf8_lossy(name).into_owned()).collect(),
    }
}

fn differ(before: &Fields, after: &Fields, name: &[u8]) -> bool {
    fn values<'a>(fields: &'a Fields, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        fields.iter().filter(move |(_, n, _)| n.eq_ignore_ascii_case(name)).map(|(_, _, value)| value)
    }
    !values(before, name).eq(values(after, name))
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
