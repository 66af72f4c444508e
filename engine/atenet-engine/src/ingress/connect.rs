//! CONNECT listeners: the CONNECT is ours; what is inside is carried request by request (row I-06).

use std::future::poll_fn;

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::carry::Record;
use super::gateway::Front;
use super::route::{Scope, connect_port, target};
use super::serve_http1::Conn;
use super::tunnelled;
use crate::exchange::client_http2::Respond;
use crate::exchange::http2_conn::{self, Stream};
use crate::exchange::refuse::Asked;
use crate::exchange::request_http2::{Ask, read};
use crate::http1::{Framing, HeadError, Kind, Reader, RequestHead, ResponseHead, request_framing};
use crate::pipe::{H2Source, Outbox, Sink, Source};
use crate::refusal::Refusal;
use crate::telemetry::Outcome;
use crate::trace::Trace;

const OPENED: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const ASKED: Asked<'static> = Asked { method: &Method::GET, grpc: false, allow: "CONNECT" };

/// The actor and port that a CONNECT names.
fn scope(head: &RequestHead) -> Result<Scope, Refusal> {
    if head.method != Method::CONNECT {
        return Err(Refusal::MethodNotAllowed);
    }
    let actor = target(head)?;
    let port = connect_port(&head.target)?;
    match request_framing(head) {
        Ok(framing) if !framing.has_body() => Ok(Scope::Tunnel { actor, port }),
        _ => Err(Refusal::BadRequest),
    }
}

/// An HTTP/1.1 connection: one CONNECT, then what it carries.
pub(super) async fn serve_http1<S: Source + Unpin, K: Sink + Unpin>(front: Front, reader: Reader<S>, sink: K) {
    let mut conn = Conn::new(&front, reader, sink);
    if let Err(then) = conn.read_request(&front).await {
        return conn.finish(then).await;
    }
    let scope = match scope(&conn.request) {
        Ok(scope) => scope,
        Err(refusal) => {
            let method = conn.request.method.clone();
            let then = conn.refuse(&front, refusal, Asked { method: &method, ..ASKED }).await;
            return conn.finish(then).await;
        }
    };
    let (reader, mut sink) = conn.into_parts();
    let mut out = Outbox::default();
    out.push(Bytes::from_static(OPENED));
    let opened = timeout(front.gateway.limits.header, poll_fn(|cx| sink.poll_send(cx, &mut out))).await;
    if matches!(opened, Ok(Ok(()))) {
        tunnelled::serve(Front { scope, ..front }, reader, sink).await;
    }
}

/// An HTTP/2 connection: each stream a CONNECT of its own.
pub(super) async fn serve_http2<T: AsyncRead + AsyncWrite + Unpin + Send>(front: Front, io: T) {
    let (limits, drain) = (front.gateway.limits.http2(), front.gateway.drain.clone());
    http2_conn::serve(limits, &drain, io, false, |stream, counted| {
        let (front, guard) = (front.clone(), front.gateway.drain.guard());
        tokio::spawn(async move {
            tokio::select! {
                () = connect(&front, stream) => {}
                () = front.gateway.drain.forced() => {}
            }
            drop((counted, guard));
        });
    })
    .await;
}

async fn connect(front: &Front, (request, respond): Stream) {
    let (parts, stream) = request.into_parts();
    let mut head = RequestHead::default();
    let mut respond = Respond::new(respond);
    let scope = match read(&parts, stream.is_end_stream(), front.gateway.limits.headers, &mut head) {
        Ok(Ask::Connect { extended: false }) => scope(&head),
        Ok(_) => Err(Refusal::MethodNotAllowed),
        Err(HeadError::TooLarge) => Err(Refusal::HeadTooLarge),
        Err(_) if head.method == Method::CONNECT => Err(Refusal::BadConnectPort),
        Err(_) => Err(Refusal::BadRequest),
    };
    match scope {
        Err(refusal) => {
            note(front, &head, refusal);
            respond.refuse_plainly(refusal, ASKED).await;
        }
        Ok(scope) => {
            let Ok(sink) = respond.accept(&ResponseHead::default()) else { return };
            let front = Front { scope, ..front.clone() };
            tunnelled::serve(front, Reader::new(H2Source::new(stream)), sink).await;
        }
    }
}

fn note(front: &Front, head: &RequestHead, refusal: Refusal) {
    let mut record = Record::new(front, &head.method, head.fields.get(Kind::Traceparent));
    record.tally.status = Some(refusal.status(crate::refusal::Dataplane::Agentgateway));
    record.close(front, Outcome::Refused(refusal));
}

/// The plan of a tunnel whose content is not HTTP.
pub(super) fn raw_plan(scope: &Scope) -> Option<super::route::Plan> {
    let Scope::Tunnel { actor, port } = scope else { return None };
    Some(super::route::Plan {
        actor: actor.clone(),
        port: *port,
        framing: Framing::Empty,
        websocket: false,
        grpc: false,
        expects_continue: false,
        trace: Trace::default(),
    })
}

/// The status that a CONNECT was answered with.
pub(super) const OPENED_STATUS: StatusCode = StatusCode::OK;
