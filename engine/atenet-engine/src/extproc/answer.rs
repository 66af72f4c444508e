//! What Envoy is answered: an assignment as dynamic metadata, or a refusal to give at once. Pure.

use std::net::IpAddr;
use std::time::Duration;

use prost_types::{Struct, Value, value::Kind};

use crate::actor_ref::ActorRef;
use crate::assignment::{Disposition, Resolved};
use crate::envoy_proto::{
    GrpcStatus, HeaderMutation, HeaderValue, HeaderValueOption, HeadersResponse, HttpStatus, ImmediateResponse,
    ProcessingResponse, processing_response::Response,
};
use crate::exchange::refuse::Answer;
use crate::refusal::{Dataplane, Refusal};
use crate::telemetry::resume_label;

/// The namespace of the metadata; python/atenet/router/resources/names.py says the same.
const ASSIGNMENT: &str = "x-ate-assignment";
/// How our refusals' details begin, so that Envoy's own can be told from them.
const DETAILS: &str = "ate_";
const OVERWRITE: i32 = 2;

/// What the access log says of a request, whatever became of it.
pub(super) struct Noted<'a> {
    pub(super) actor: Option<&'a ActorRef>,
    pub(super) disposition: Disposition,
    pub(super) took: Duration,
}

impl Noted<'_> {
    fn values(&self) -> Vec<(&'static str, Value)> {
        let mut values = vec![
            ("resume", string(resume_label(self.disposition))),
            ("route_ms", Value { kind: Some(Kind::NumberValue(milliseconds(self.took))) }),
        ];
        if let Some(actor) = self.actor {
            values.push(("atespace", string(actor.atespace())));
            values.push(("name", string(actor.name())));
        }
        values
    }
}

/// The request goes on to the worker.
pub(super) fn routed(resolved: &Resolved, port: u16, noted: &Noted<'_>) -> ProcessingResponse {
    let to = &*resolved.assignment;
    let host = match to.worker.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    // Equal only for one activation of one actor: what may share a connection to the actor.
    let activation = format!(
        "{}|{}|{}|{}|{}|{}|{port}",
        to.actor, to.actor_uid, to.version, to.worker, to.worker_epoch, to.worker_spiffe_id
    );
    go_on(
        noted,
        [
            ("actor", to.actor.as_str()),
            ("activation", &activation),
            ("authority", &format!("{host}:{port}")),
            ("worker", &to.worker.to_string()),
            ("worker_ip", &host),
            ("worker_port", itoa::Buffer::new().format(to.worker.port())),
            ("worker_spiffe_id", &to.worker_spiffe_id),
        ],
    )
}

/// The CONNECT is accepted.
pub(super) fn opened(actor: &ActorRef, port: u16, noted: &Noted<'_>) -> ProcessingResponse {
    go_on(noted, [("actor", actor.as_str()), ("port", itoa::Buffer::new().format(port))])
}

/// The client is told why not.
pub(super) fn refused(refusal: Refusal, grpc: bool, noted: &Noted<'_>) -> ProcessingResponse {
    let answer = Answer {
        status: refusal.status(Dataplane::Envoy),
        grpc_status: refusal.grpc_status(Dataplane::Envoy),
        ..Answer::from(refusal)
    };
    refuse(&answer, grpc, metadata(ASSIGNMENT, noted.values()))
}

/// An answer that Envoy gives at once.
pub(crate) fn refuse(answer: &Answer, grpc: bool, metadata: Struct) -> ProcessingResponse {
    let mut headers = vec![header("ate-reason", answer.reason.as_bytes()), header("content-type", b"text/plain")];
    if let Some(seconds) = answer.retry_after {
        headers.push(header("retry-after", seconds.to_string().as_bytes()));
    }
    // gRPC callers read the text from grpc-message, where a newline would be spelled out.
    let body = if grpc { answer.body.to_string() } else { format!("{}\n", answer.body) };
    let response = ImmediateResponse {
        status: Some(HttpStatus { code: answer.status.as_u16().into() }),
        headers: Some(HeaderMutation { set_headers: headers, remove_headers: Vec::new() }),
        body: body.into_bytes(),
        grpc_status: Some(GrpcStatus { status: answer.grpc_status.into() }),
        details: format!("{DETAILS}{}", answer.reason.replace('-', "_")),
    };
    ProcessingResponse {
        response: Some(Response::ImmediateResponse(response)),
        dynamic_metadata: Some(metadata),
        mode_override: None,
    }
}

/// A header that replaces all of its name.
pub(crate) fn header(name: &str, value: &[u8]) -> HeaderValueOption {
    let header = HeaderValue { key: name.into(), value: String::new(), raw_value: value.to_vec() };
    HeaderValueOption { header: Some(header), append_action: OVERWRITE }
}

fn go_on<const N: usize>(noted: &Noted<'_>, values: [(&'static str, &str); N]) -> ProcessingResponse {
    let mut all = noted.values();
    all.extend(values.map(|(key, value)| (key, string(value))));
    ProcessingResponse {
        response: Some(Response::RequestHeaders(HeadersResponse { response: None })),
        dynamic_metadata: Some(metadata(ASSIGNMENT, all)),
        mode_override: None,
    }
}

/// Values below the namespace that Envoy's filters read them from.
pub(crate) fn metadata(namespace: &str, values: Vec<(&'static str, Value)>) -> Struct {
    let fields = values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let all = Value { kind: Some(Kind::StructValue(Struct { fields })) };
    Struct { fields: [(namespace.to_owned(), all)].into() }
}

pub(crate) fn string(value: &str) -> Value {
    Value { kind: Some(Kind::StringValue(value.to_owned())) }
}

/// With three digits behind the point.
fn milliseconds(time: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)] // exact up to 285 years
    let micros = time.as_micros() as f64;
    micros / 1_000.0
}
