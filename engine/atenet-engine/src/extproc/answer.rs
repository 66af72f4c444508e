//! What Envoy is answered: an assignment as dynamic metadata, or a refusal to give at once. Pure.

use std::net::IpAddr;

use prost_types::{Struct, Value, value::Kind};

use crate::actor_ref::ActorRef;
use crate::assignment::Resolved;
use crate::envoy_proto::{
    GrpcStatus, HeaderMutation, HeaderValue, HeaderValueOption, HeadersResponse, HttpStatus, ImmediateResponse,
    ProcessingResponse, processing_response::Response,
};
use crate::refusal::{Dataplane, Refusal};
use crate::telemetry::resume_label;

/// The namespace of the metadata; python/atenet/router/resources/names.py says the same.
const ASSIGNMENT: &str = "x-ate-assignment";
/// How our refusals' details begin, so that Envoy's own can be told from them.
const DETAILS: &str = "ate_";
const OVERWRITE: i32 = 2;

/// The request goes on to the worker.
pub(super) fn routed(resolved: &Resolved, port: u16) -> ProcessingResponse {
    let to = &*resolved.assignment;
    let host = match to.worker.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    // Equal only for one activation of one actor: what may share a connection to the actor.
    let activation = format!("{}|{}|{}|{}|{}", to.actor, to.actor_uid, to.version, to.worker, to.worker_epoch);
    go_on([
        ("actor", to.actor.to_string()),
        ("activation", format!("{activation}|{}|{port}", to.worker_spiffe_id)),
        ("authority", format!("{host}:{port}")),
        ("port", port.to_string()),
        ("resume", resume_label(resolved.disposition).to_owned()),
        ("worker_ip", host),
        ("worker_port", to.worker.port().to_string()),
        ("worker_spiffe_id", to.worker_spiffe_id.to_string()),
    ])
}

/// The CONNECT is accepted.
pub(super) fn opened(actor: &ActorRef, port: u16) -> ProcessingResponse {
    go_on([("actor", actor.to_string()), ("port", port.to_string())])
}

/// The client is told why not.
pub(super) fn refused(refusal: Refusal, grpc: bool) -> ProcessingResponse {
    let mut headers = vec![header("ate-reason", refusal.reason()), header("content-type", "text/plain")];
    if let Some(seconds) = refusal.retry_after() {
        headers.push(header("retry-after", &seconds.to_string()));
    }
    // gRPC callers read the text from grpc-message, where a newline would be spelled out.
    let body = if grpc { refusal.body().to_owned() } else { format!("{}\n", refusal.body()) };
    let response = ImmediateResponse {
        status: Some(HttpStatus { code: refusal.status(Dataplane::Envoy).as_u16().into() }),
        headers: Some(HeaderMutation { set_headers: headers }),
        body: body.into_bytes(),
        grpc_status: Some(GrpcStatus { status: refusal.grpc_status(Dataplane::Envoy).into() }),
        details: format!("{DETAILS}{}", refusal.reason().replace('-', "_")),
    };
    ProcessingResponse { response: Some(Response::ImmediateResponse(response)), dynamic_metadata: None }
}

fn header(name: &str, value: &str) -> HeaderValueOption {
    let header = HeaderValue { key: name.into(), value: String::new(), raw_value: value.as_bytes().to_vec() };
    HeaderValueOption { header: Some(header), append_action: OVERWRITE }
}

fn go_on<const N: usize>(values: [(&str, String); N]) -> ProcessingResponse {
    let fields = values.into_iter().map(|(key, value)| (key.to_owned(), string(value))).collect();
    let assignment = Value { kind: Some(Kind::StructValue(Struct { fields })) };
    ProcessingResponse {
        response: Some(Response::RequestHeaders(HeadersResponse {})),
        dynamic_metadata: Some(Struct { fields: [(ASSIGNMENT.to_owned(), assignment)].into() }),
    }
}

fn string(value: String) -> Value {
    Value { kind: Some(Kind::StringValue(value)) }
}
