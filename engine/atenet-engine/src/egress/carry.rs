//! One request out: judged by its own host, given its credentials, carried to the origin that the policy named.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Method;
use http::uri::Scheme;

use super::denial::Denial;
use super::plan::{CLIENT_CERT, Plan, prepare};
use super::pool::{Http1, Http2, Origin};
use super::tunnel::Tunnel;
use super::{Gateway, Refused};
use crate::exchange::party::{ActorError, ClientError, RequestBody, Responder, gone};
use crate::exchange::pump::{End, Pump, Tally};
use crate::exchange::refuse::{Asked, refuse};
use crate::exchange::{actor_http1, actor_http2, headers};
use crate::http1::{Frame, Framing, RequestHead, ResponseHead};
use crate::pipe::Idle;
use crate::policy::{Effect, Layer};

/// Exchanges tried on kept connections that turned out dead, before any byte of an answer.
const REPEATS: u32 = 2;

/// An actor's connection inside its tunnel: cleartext, or intercepted TLS.
pub(super) struct Leg {
    pub(super) gateway: Arc<Gateway>,
    pub(super) tunnel: Arc<Tunnel>,
    pub(super) layer: Layer,
}

impl Leg {
    pub(super) fn note(&self, what: Refused) {
        self.gateway.denied(&self.tunnel, &what.on(self.layer));
    }
}

/// What a connection keeps from one request to the next.
pub(super) struct Scratch {
    response: ResponseHead,
    idle: Idle,
}

impl Scratch {
    pub(super) fn new(leg: &Leg) -> Self {
        Self { response: ResponseHead::default(), idle: Idle::new(leg.gateway.limits.stream_idle) }
    }
}

/// How a request went, for whoever owns the actor's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    /// An answer is complete and sent.
    Answered,
    /// The actor left, or the answer had to be cut.
    Over,
}

enum Ended {
    Served,
    Refused(Denial),
    Gone,
    Cut(Option<u32>),
}

/// Carries one request. `judged`: its framing, or why whoever read it refuses it.
pub(super) async fn carry<B: RequestBody, R: Responder>(
    leg: &Leg,
    request: &mut RequestHead,
    judged: Result<Framing, Denial>,
    (body, responder): (&mut B, &mut R),
    scratch: &mut Scratch,
) -> Carried {
    let (method, grpc) = (request.method.clone(), headers::is_grpc(&request.fields));
    let asked = Asked { method: &method, grpc, allow: "" };
    let planned = tokio::select! {
        biased;
        planned = prepare(leg, request, judged) => planned,
        () = gone(body, responder) => return Carried::Over,
    };
    let plan = match planned {
        Ok(plan) => plan,
        Err(refused) => {
            let denial = refused.denial;
            leg.note(refused);
            return answer(responder, denial, asked).await;
        }
    };
    let _used = leg.tunnel.uses(leg.layer, &plan.host, plan.kind);
    let mut guarded = Guarded { body, effects: &plan.effects };
    match attempt(leg, &plan, request, (&mut guarded, &mut *responder), scratch).await {
        Ended::Served => {
            leg.gateway.telemetry.egress_decision("ok");
            Carried::Answered
        }
        Ended::Refused(denial) => {
            leg.note(Refused::new(denial).of(&plan.host).by(plan.rule));
            answer(responder, denial, asked).await
        }
        Ended::Gone => Carried::Over,
        Ended::Cut(code) => {
            responder.cut(code);
            Carried::Over
        }
    }
}

async fn answer<R: Responder>(responder: &mut R, denial: Denial, asked: Asked<'_>) -> Carried {
    refuse(responder, denial, asked);
    let flushed = poll_fn(|cx| responder.poll_flush(cx)).await;
    if flushed.is_ok() { Carried::Answered } else { Carried::Over }
}

async fn attempt<B: RequestBody, R: Responder>(
    leg: &Leg,
    plan: &Plan,
    request: &RequestHead,
    client: (&mut B, &mut R),
    scratch: &mut Scratch,
) -> Ended {
    let (body, responder) = client;
    for repeat in 0..=REPEATS {
        let to = leg.tunnel.target(&plan.host);
        let reached = tokio::select! {
            biased;
            reached = leg.tunnel.pool.reach(&leg.gateway.origins, leg.layer, to, (repeat > 0, plan.grpc)) => reached,
            () = gone(body, responder) => return Ended::Gone,
        };
        let again = match reached {
            Err(denial) => return Ended::Refused(denial),
            Ok(Origin::Http1(_)) if plan.grpc => return Ended::Refused(Denial::ProtocolUnsupported),
            Ok(Origin::Http1(conn)) => over_http1(leg, plan, request, (body, responder), *conn, scratch).await,
            Ok(Origin::Http2(conn)) => over_http2(leg, plan, request, (body, responder), conn, scratch).await,
        };
        if let Some(ended) = again {
            return ended;
        }
    }
    Ended::Refused(Denial::Broken)
}

/// `None`: the connection was dead before, and the request can be sent once more.
async fn over_http1<B: RequestBody, R: Responder>(
    leg: &Leg,
    plan: &Plan,
    request: &RequestHead,
    (body, responder): (&mut B, &mut R),
    mut conn: Http1,
    scratch: &mut Scratch,
) -> Option<Ended> {
    let (mut reusable, reused) = (false, conn.reused);
    let far = (&mut conn.reader, &mut conn.sink, &mut conn.out);
    let halves = actor_http1::begin(far, request, plan.framing, &mut reusable);
    let mut pump = Pump::new((&mut *body, responder), halves, &request.method, &mut scratch.response, &scratch.idle);
    if plan.expects_continue {
        pump.expect_continue();
    }
    let end = pump.run().await;
    let Tally { sent, .. } = std::mem::take(&mut pump.tally);
    drop(pump);
    if let End::Failed(ActorError::Broken { silent: true, .. }) = end
        && reused
        && body.is_untouched()
        && (!sent || is_idempotent(&request.method))
    {
        return None;
    }
    if let End::Done { whole: true } = end
        && reusable
        && !leg.gateway.drain.is_draining()
    {
        leg.tunnel.pool.put(&plan.host, conn);
    }
    Some(ended(end))
}

async fn over_http2<B: RequestBody, R: Responder>(
    leg: &Leg,
    plan: &Plan,
    request: &RequestHead,
    (body, responder): (&mut B, &mut R),
    mut conn: Http2,
    scratch: &mut Scratch,
) -> Option<Ended> {
    let scheme = match leg.layer {
        Layer::Http => Scheme::HTTP,
        Layer::Tls => Scheme::HTTPS,
    };
    let Some(head) = actor_http2::request(request, scheme) else { return Some(Ended::Refused(Denial::BadRequest)) };
    let bodiless = !plan.framing.has_body();
    let sent = tokio::select! {
        biased;
        sent = conn.request(head, bodiless) => sent,
        () = gone(body, responder) => return Some(Ended::Gone),
    };
    // Nothing was sent: the connection had ended since it was kept.
    let (response, sink) = sent.ok()?;
    let far = (actor_http2::Send::new(sink, bodiless), actor_http2::Recv::new(response, conn.heard.clone()));
    let mut pump = Pump::new((body, responder), far, &request.method, &mut scratch.response, &scratch.idle);
    if plan.expects_continue {
        pump.expect_continue();
    }
    Some(ended(pump.run().await))
}

fn ended(end: End) -> Ended {
    match end {
        End::Done { .. } => Ended::Served,
        End::ClientGone => Ended::Gone,
        End::BadRequest => Ended::Refused(Denial::BadRequest),
        // Nobody asked for a switch.
        End::Switched | End::Failed(ActorError::Protocol) => Ended::Refused(Denial::ProtocolUnsupported),
        End::Failed(ActorError::Broken { .. }) => Ended::Refused(Denial::Broken),
        End::Cut(code) => Ended::Cut(code),
        End::Idle { answered: true } => Ended::Cut(None),
        End::Idle { answered: false } => Ended::Refused(Denial::Idle),
    }
}

fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE)
}

/// A request's body whose trailers cannot bring back what a rule replaced, or what would speak for us.
struct Guarded<'a, B> {
    body: &'a mut B,
    effects: &'a [Effect],
}

impl<B: RequestBody> RequestBody for Guarded<'_, B> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ClientError>> {
        let mut frame = self.body.poll_frame(cx);
        if let Poll::Ready(Ok(Frame::End(Some(fields)))) = &mut frame {
            let replaced = |name: &[u8]| self.effects.iter().any(|e| name.eq_ignore_ascii_case(e.header.as_bytes()));
            fields.retain(|_, name, _| !replaced(name) && !name.eq_ignore_ascii_case(CLIENT_CERT));
        }
        frame
    }

    fn is_untouched(&self) -> bool {
        self.body.is_untouched()
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.body.poll_gone(cx)
    }
}
