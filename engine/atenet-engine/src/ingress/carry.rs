//! One request, from its head to its record: plan, reach, pump, answer.

use std::future::poll_fn;

use http::{Method, StatusCode};
use tokio::time::Instant;

use super::gateway::{Front, Reached};
use super::grpc;
use super::route::{Plan, Scope, is_idempotent, plan};
use crate::actor_ref::ActorRef;
use crate::assignment::{Disposition, Resolved};
use crate::exchange::party::{ActorError, RequestBody, Responder, gone};
use crate::exchange::pump::{End, Pump, Tally};
use crate::exchange::refuse::{Asked, refusal_of, refuse};
use crate::exchange::{actor_http1, headers};
use crate::http1::{Framing, HeadError, Kind, RequestHead, ResponseHead};
use crate::pipe::{Ending, Idle};
use crate::refusal::Refusal;
use crate::telemetry::{Outcome, RequestRecord};
use crate::trace::Trace;
use crate::tunnel::client::ActorConn;

/// Exchanges tried on kept connections that turned out dead, before any byte of an answer.
const REPEATS: u32 = 2;

/// A worker's code for tunnels that outlast the grace of a suspend (CANCEL).
const SUSPENDED: u32 = 8;

/// What a connection keeps from one request to the next.
pub(super) struct Scratch {
    pub(super) response: ResponseHead,
    pub(super) idle: Idle,
}

impl Scratch {
    pub(super) fn new(front: &Front) -> Self {
        Self { response: ResponseHead::default(), idle: Idle::new(front.gateway.limits.stream_idle) }
    }
}

/// How a request went, for whoever owns the client's connection.
pub(super) enum Carried {
    /// An answer is complete and sent.
    Answered,
    /// The actor accepted the WebSocket; the head waits in the scratch.
    Switched(Box<ActorConn>, Box<Record>),
    /// The client left, or the answer had to be cut.
    Over,
}

/// What is known of a request so far.
pub(super) struct Record {
    start: Instant,
    pub(super) actor: Option<ActorRef>,
    method: Method,
    pub(super) resolved: Option<Resolved>,
    pub(super) routed: Option<Instant>,
    trace: Trace,
    pub(super) tally: Tally,
}

impl Record {
    /// `incoming`: the request's W3C trace context, if any.
    pub(super) fn new(front: &Front, method: &Method, incoming: Option<&[u8]>) -> Self {
        let incoming = incoming.and_then(|value| std::str::from_utf8(value).ok());
        let trace = front.gateway.telemetry.trace(incoming);
        let (start, method) = (Instant::now(), method.clone());
        Self { start, actor: None, method, resolved: None, routed: None, trace, tally: Tally::default() }
    }

    /// Tells telemetry how it ended.
    pub(super) fn close(self, front: &Front, outcome: Outcome) {
        let (disposition, cached, upstream) = match &self.resolved {
            Some(r) => (r.disposition, r.cached, Some(r.assignment.worker)),
            None => (Disposition::None, false, None),
        };
        front.gateway.telemetry.request(RequestRecord {
            actor: self.actor,
            listener: front.listener.clone(),
            method: self.method,
            status: self.tally.status,
            outcome,
            disposition,
            cached,
            route: self.routed.map_or_else(|| self.start.elapsed(), |at| at - self.start),
            total: self.start.elapsed(),
            bytes_in: self.tally.bytes_in,
            bytes_out: self.tally.bytes_out,
            upstream,
            trace: self.trace,
        });
    }
}

/// Carries one request. The refusal of a head that could not be read goes the same way.
pub(super) async fn carry<B: RequestBody, R: Responder>(
    front: &Front,
    request: &mut RequestHead,
    framing: Result<Framing, HeadError>,
    client: (&mut B, &mut R),
    scratch: &mut Scratch,
) -> Carried {
    let mut record = Record::new(front, &request.method, request.fields.get(Kind::Traceparent));
    let (body, responder) = client;
    let asked = Asked { method: &record.method.clone(), grpc: headers::is_grpc(&request.fields), allow: allow(front) };
    let planned = framing.map_err(refusal_of).and_then(|framing| plan(&front.scope, request, framing));
    let ended = match planned {
        Err(refusal) => Ended::Refused(refusal),
        Ok(mut plan) => {
            record.actor = Some(plan.actor.clone());
            plan.trace.clone_from(&record.trace);
            headers::to_actor(&mut request.fields, plan.framing, plan.websocket);
            if let Some(header) = plan.trace.header() {
                // After the client's hop is gone: naming it in `Connection` does not end the trace.
                request.fields.set(b"traceparent", header.as_bytes());
            }
            let client = (body, &mut *responder);
            if plan.grpc {
                Box::pin(grpc::attempt(front, &plan, request, client, scratch, &mut record)).await
            } else {
                attempt(front, &plan, request, client, scratch, &mut record).await
            }
        }
    };
    settle(front, ended, responder, asked, record).await
}

/// How the attempts at a request ended.
pub(super) enum Ended {
    Served,
    Switched(Box<ActorConn>),
    Refused(Refusal),
    Gone,
    Cut(Option<u32>),
    /// Cut because nothing moved for too long.
    Silent,
}

async fn settle<R: Responder>(
    front: &Front,
    ended: Ended,
    responder: &mut R,
    asked: Asked<'_>,
    mut record: Record,
) -> Carried {
    match ended {
        Ended::Served => {
            record.close(front, Outcome::Served);
            Carried::Answered
        }
        Ended::Switched(conn) => Carried::Switched(conn, Box::new(record)),
        Ended::Refused(refusal) => {
            record.tally.status = Some(refuse(responder, refusal, asked));
            let flushed = poll_fn(|cx| responder.poll_flush(cx)).await;
            record.close(front, Outcome::Refused(refusal));
            if flushed.is_ok() { Carried::Answered } else { Carried::Over }
        }
        Ended::Gone => {
            record.close(front, Outcome::ClientGone);
            Carried::Over
        }
        Ended::Cut(code) => {
            responder.cut(code);
            record.close(front, Outcome::UpstreamReset);
            Carried::Over
        }
        Ended::Silent => {
            responder.cut(None);
            record.close(front, Outcome::IdleTimeout);
            Carried::Over
        }
    }
}

/// What the end of a relay is called in the record.
pub(super) fn outcome(ending: Ending) -> Outcome {
    match ending {
        Ending::Clean => Outcome::Served,
        Ending::ClientBroke => Outcome::ClientGone,
        Ending::ActorBroke => Outcome::UpstreamReset,
        Ending::Idle => Outcome::IdleTimeout,
    }
}

async fn attempt<B: RequestBody, R: Responder>(
    front: &Front,
    plan: &Plan,
    request: &RequestHead,
    client: (&mut B, &mut R),
    scratch: &mut Scratch,
    record: &mut Record,
) -> Ended {
    let (body, responder) = client;
    for repeat in 0.. {
        let reached = tokio::select! {
            biased;
            reached = front.gateway.reach_http1(plan, &request.method, repeat > 0, &mut record.resolved) => reached,
            () = gone(body, responder) => return Ended::Gone,
        };
        record.routed.get_or_insert_with(Instant::now);
        let Reached { to: mut conn, resolved } = match reached {
            Ok(reached) => reached,
            Err(refusal) => return Ended::Refused(refusal),
        };
        let (mut reusable, dead_before) = (false, conn.reused);
        let far = (&mut conn.reader, &mut conn.sink, &mut conn.out);
        let halves = actor_http1::begin(far, request, plan.framing, &mut reusable);
        let mut pump = Pump::new((body, responder), halves, &request.method, &mut scratch.response, &scratch.idle);
        if plan.expects_continue {
            pump.expect_continue();
        }
        let end = pump.run().await;
        record.tally = std::mem::take(&mut pump.tally);
        drop(pump);
        if let End::Failed(ActorError::Broken { silent, code }) = end {
            front.gateway.routes.forget(&plan.actor, resolved.generation);
            let safe = !record.tally.sent || is_idempotent(&request.method);
            let worth_it = dead_before || code == Some(SUSPENDED) || !conn.worker_lives();
            if silent && safe && worth_it && body.is_untouched() && repeat < REPEATS {
                continue;
            }
        }
        return conclude(front, plan, end, conn, reusable, &scratch.response);
    }
    Ended::Gone
}

fn conclude(front: &Front, plan: &Plan, end: End, conn: Box<ActorConn>, reusable: bool, head: &ResponseHead) -> Ended {
    match end {
        End::Done { whole } => {
            match whole {
                true if reusable && !front.gateway.drain.is_draining() => front.gateway.tunnels.put_idle(conn),
                // What the actor was sent may still be on its way to it: an end, not a reset.
                true => conn.finish(),
                false => {}
            }
            Ended::Served
        }
        End::Switched if plan.websocket && headers::confirms_websocket(&head.fields) => Ended::Switched(conn),
        other => unserved(other),
    }
}

/// What the other ends mean to the client, whatever the actor's protocol.
pub(super) fn unserved(end: End) -> Ended {
    match end {
        End::Done { .. } => Ended::Served,
        End::ClientGone => Ended::Gone,
        End::BadRequest => Ended::Refused(Refusal::BadRequest),
        End::Failed(ActorError::Broken { silent: true, code: Some(SUSPENDED) }) => {
            Ended::Refused(Refusal::ActorUnavailable)
        }
        End::Switched | End::Failed(_) => Ended::Refused(Refusal::ActorConnectFailed),
        End::Cut(code) => Ended::Cut(code),
        End::Idle { answered: true } => Ended::Silent,
        End::Idle { answered: false } => Ended::Refused(Refusal::IdleTimeout),
    }
}

fn allow(front: &Front) -> &'static str {
    match front.scope {
        Scope::Direct | Scope::Tunnel { .. } => "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS",
    }
}

/// The status of a switch, once its head is sent.
pub(super) fn switched(record: &mut Record) {
    record.tally.status = Some(StatusCode::SWITCHING_PROTOCOLS);
}
