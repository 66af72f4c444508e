//! One request, from its head to its record: plan, reach, pump, answer.

use std::future::poll_fn;
use std::task::Poll;

use http::{Method, StatusCode};
use tokio::time::Instant;

use super::actor_http1;
use super::gateway::{Front, Reached};
use super::headers;
use super::party::{ActorError, RequestBody, Responder};
use super::pump::{End, Pump, Tally};
use super::refuse::{Asked, refuse};
use super::route::{Plan, Scope, is_idempotent, plan};
use crate::assignment::{Disposition, Resolved};
use crate::http1::{Framing, HeadError, Kind, RequestHead, ResponseHead};
use crate::pipe::Idle;
use crate::refusal::Refusal;
use crate::telemetry::{Outcome, RequestRecord};
use crate::trace::Trace;
use crate::tunnel::client::ActorConn;

/// Exchanges tried on kept connections that turned out dead, before any byte of an answer.
const REPEATS: u32 = 2;

/// What a connection keeps from one request to the next.
pub(super) struct Scratch {
    pub(super) response: ResponseHead,
    pub(super) idle: Idle,
}

/// How a request went, for whoever owns the client's connection.
pub(super) enum Carried {
    /// An answer is complete and queued. `whole`: the request's body was carried to its end.
    Answered { whole: bool },
    /// The actor accepted the WebSocket; the head waits in the scratch.
    Switched(Box<(ActorConn, Record)>),
    /// The client left, or the answer had to be cut.
    Over,
}

/// What is known of a request so far.
pub(super) struct Record {
    start: Instant,
    actor: Option<crate::actor_ref::ActorRef>,
    method: Method,
    resolved: Option<Resolved>,
    routed: Option<Instant>,
    trace: Trace,
    pub(super) tally: Tally,
}

impl Record {
    fn new(front: &Front, request: &RequestHead) -> Self {
        let incoming = request.fields.get(Kind::Traceparent).and_then(|value| std::str::from_utf8(value).ok());
        let trace = front.gateway.telemetry.trace(incoming);
        let (start, method) = (Instant::now(), request.method.clone());
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
    let mut record = Record::new(front, request);
    let (body, responder) = client;
    let asked = Asked { method: &record.method.clone(), grpc: headers::is_grpc(&request.fields), allow: allow(front) };
    let planned = framing.map_err(|_| Refusal::BadRequest).and_then(|framing| plan(&front.scope, request, framing));
    let ended = match planned {
        Err(refusal) => Ended::Refused(refusal, true),
        Ok(mut plan) => {
            record.actor = Some(plan.actor.clone());
            plan.trace = record.trace.clone();
            headers::to_actor(&mut request.fields, plan.framing, plan.websocket);
            if let Some(header) = plan.trace.header() {
                // After the client's hop is gone: naming it in `Connection` does not end the trace.
                request.fields.set(b"traceparent", header.as_bytes());
            }
            attempt(front, &plan, request, (body, responder), scratch, &mut record).await
        }
    };
    settle(front, ended, responder, asked, record).await
}

/// How the attempts at a request ended.
enum Ended {
    Served {
        whole: bool,
    },
    Switched(ActorConn),
    /// `whole`: nothing of the request's body is left unread.
    Refused(Refusal, bool),
    Gone,
    Cut,
}

async fn settle<R: Responder>(
    front: &Front,
    ended: Ended,
    responder: &mut R,
    asked: Asked<'_>,
    mut record: Record,
) -> Carried {
    match ended {
        Ended::Served { whole } => {
            record.close(front, Outcome::Served);
            Carried::Answered { whole }
        }
        Ended::Switched(conn) => Carried::Switched(Box::new((conn, record))),
        Ended::Refused(refusal, whole) => {
            record.tally.status = Some(refuse(responder, refusal, asked));
            let flushed = poll_fn(|cx| responder.poll_flush(cx)).await;
            record.close(front, Outcome::Refused(refusal));
            if flushed.is_ok() { Carried::Answered { whole } } else { Carried::Over }
        }
        Ended::Gone => {
            record.close(front, Outcome::ClientGone);
            Carried::Over
        }
        Ended::Cut => {
            responder.cut();
            record.close(front, Outcome::UpstreamReset);
            Carried::Over
        }
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
            Err(refusal) => return Ended::Refused(refusal, !plan.framing.has_body()),
        };
        let (mut reusable, dead_before) = (false, conn.reused);
        let halves = actor_http1::begin(&mut conn, request, plan.framing, &mut reusable);
        let mut pump = Pump::new((body, responder), halves, &request.method, &mut scratch.response, &scratch.idle);
        if plan.expects_continue {
            pump.expect_continue();
        }
        let end = pump.run().await;
        record.tally = std::mem::take(&mut pump.tally);
        drop(pump);
        if let End::Failed(ActorError::Broken { silent }) = end {
            front.gateway.routes.forget(&plan.actor, resolved.generation);
            let safe = !record.tally.sent || is_idempotent(&request.method);
            let worth_it = dead_before || !conn.worker_lives();
            if silent && safe && worth_it && body.is_untouched() && repeat < REPEATS {
                continue;
            }
        }
        return conclude(front, plan, end, conn, reusable, &scratch.response);
    }
    Ended::Gone
}

fn conclude(front: &Front, plan: &Plan, end: End, conn: ActorConn, reusable: bool, head: &ResponseHead) -> Ended {
    let bodiless = !plan.framing.has_body();
    match end {
        End::Done { whole } => {
            if whole && reusable && !front.gateway.drain.is_draining() {
                front.gateway.tunnels.put_idle(conn);
            }
            Ended::Served { whole }
        }
        End::Switched if plan.websocket && headers::confirms_websocket(&head.fields) => Ended::Switched(conn),
        End::Switched => Ended::Refused(Refusal::ActorConnectFailed, bodiless),
        End::ClientGone => Ended::Gone,
        End::BadRequest => Ended::Refused(Refusal::BadRequest, false),
        End::Failed(_) => Ended::Refused(Refusal::ActorConnectFailed, bodiless),
        End::Cut | End::Idle { answered: true } => Ended::Cut,
        End::Idle { answered: false } => Ended::Refused(Refusal::IdleTimeout, bodiless),
    }
}

/// Resolves when the client leaves while its request is being routed.
async fn gone<B: RequestBody, R: Responder>(body: &mut B, responder: &mut R) {
    poll_fn(|cx| {
        let left = body.poll_gone(cx).is_ready() || responder.poll_gone(cx).is_ready();
        if left { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
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
