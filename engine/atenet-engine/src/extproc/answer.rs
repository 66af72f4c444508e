//! What Envoy is answered: an assignment as dynamic metadata, or a refusal to give at once. Pure.

use std::time::Duration;

use bytes::Bytes;
use prost_types::{Struct, Value, value::Kind};

use super::routed::Values;
use crate::actor_ref::ActorRef;
use crate::assignment::{Disposition, Resolved};
use crate::envoy_proto::{
    GrpcStatus, HeaderMutation, HeaderValue, HeaderValueOption, HttpStatus, ImmediateResponse, ProcessingResponse,
    processing_response::Response,
};
use crate::exchange::refuse::Answer;
use crate::grpc::framed;
use crate::refusal::{Dataplane, Refusal};
use crate::telemetry::resume_label;

/// The namespace of the metadata; python/atenet/router/resources/names.py says the same.
pub(super) const ASSIGNMENT: &str = "x-ate-assignment";
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

    /// The same of a request that goes on.
    fn begin(&self) -> Values {
        let mut values = Values::new();
        values.text("resume", resume_label(self.disposition));
        values.number("route_ms", milliseconds(self.took));
        if let Some(actor) = self.actor {
            values.text("atespace", actor.atespace());
            values.text("name", actor.name());
        }
        values
    }
}

/// The request goes on to the worker.
pub(super) fn routed(resolved: &Resolved, port: u16, noted: &Noted<'_>) -> Bytes {
    let to = &*resolved.assignment;
    let worker = to.worker.to_string();
    // IPv6 in brackets, as everywhere before a port.
    let host = worker.rsplit_once(':').map_or("", |(host, _)| host);
    let mut number = itoa::Buffer::new();
    let mut values = noted.begin();
    values.text("actor", to.actor.as_str());
    // Equal only for one activation of one actor: what may share a connection to the actor.
    let activation = [
        to.actor.as_str(),
        &to.actor_uid,
        itoa::Buffer::new().format(to.version),
        &worker,
        itoa::Buffer::new().format(to.worker_epoch),
        &to.worker_spiffe_id,
        itoa::Buffer::new().format(port),
    ]
    .join("|");
    values.text("activation", &activation);
    values.text("authority", &[host, ":", number.format(port)].concat());
    values.text("worker", &worker);
    values.text("worker_ip", host);
    values.text("worker_port", number.format(to.worker.port()));
    values.text("worker_spiffe_id", &to.worker_spiffe_id);
    values.framed()
}

/// The CONNECT is accepted.
pub(super) fn opened(actor: &ActorRef, port: u16, noted: &Noted<'_>) -> Bytes {
    let mut values = noted.begin();
    values.text("actor", actor.as_str());
    values.text("port", itoa::Buffer::new().format(port));
    values.framed()
}

/// The client is told why not.
pub(super) fn refused(refusal: Refusal, grpc: bool, noted: &Noted<'_>) -> Bytes {
    let answer = Answer {
        status: refusal.status(Dataplane::Envoy),
        grpc_status: refusal.grpc_status(Dataplane::Envoy),
        ..Answer::from(refusal)
    };
    framed(&refuse(&answer, grpc, metadata(ASSIGNMENT, noted.values())))
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
