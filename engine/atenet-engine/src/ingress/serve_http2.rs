//! A client's HTTP/2 connection: each stream a request of its own.

use http::{Method, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::carry::{Carried, Record, Scratch, carry, outcome, switched};
use super::gateway::Front;
use super::websocket;
use crate::exchange::client_http2::{Body, Respond};
use crate::exchange::headers;
use crate::exchange::http2_conn::{self, Stream};
use crate::exchange::party::{ClientError, RequestBody, Responder};
use crate::exchange::refuse::{Asked, refuse};
use crate::exchange::request_http2::{Ask, read};
use crate::http1::{Frame, Framing, HeadError, RequestHead};
use crate::pipe::{H2Source, relay};
use crate::refusal::Refusal;
use crate::telemetry::Outcome;
use crate::tunnel::client::ActorConn;

const ASKED: Asked<'static> = Asked { method: &Method::CONNECT, grpc: false, allow: "" };

/// Serves a connection to its end.
pub(super) async fn serve<T: AsyncRead + AsyncWrite + Unpin + Send>(front: Front, io: T) {
    let (limits, drain) = (front.gateway.limits.http2(), front.gateway.drain.clone());
    http2_conn::serve(limits, &drain, io, true, |stream, counted| {
        let (front, guard) = (front.clone(), front.gateway.drain.guard());
        tokio::spawn(async move {
            // A task is moved several times on its way to the runtime; a box is small.
            tokio::select! {
                () = Box::pin(request(&front, stream)) => {}
                () = front.gateway.drain.forced() => {}
            }
            drop((counted, guard));
        });
    })
    .await;
}

async fn request(front: &Front, (request, respond): Stream) {
    let (parts, stream) = request.into_parts();
    let mut head = RequestHead::default();
    let asked = read(&parts, stream.is_end_stream(), front.gateway.limits.headers, &mut head);
    drop(parts);
    let mut respond = Respond::new(respond);
    let mut scratch = Scratch::new(front);
    let framing = match asked {
        Ok(Ask::WebSocket) => return Box::pin(websocket(front, head, stream, respond, scratch)).await,
        Ok(Ask::Connect { .. }) => {
            head.method = Method::CONNECT;
            Ok(Framing::Empty)
        }
        Ok(Ask::Request(framing)) => Ok(framing),
        Err(error) => Err(error),
    };
    plain(front, &mut head, framing, stream, (&mut respond, &mut scratch)).await;
}

async fn plain(
    front: &Front,
    head: &mut RequestHead,
    framing: Result<Framing, HeadError>,
    stream: h2::RecvStream,
    (respond, scratch): (&mut Respond, &mut Scratch),
) {
    let mut body = Body::new(stream);
    let carried = carry(front, head, framing, (&mut body, respond), scratch).await;
    // An HTTP/2 request cannot ask for a switch, so there is none to follow.
    if let Carried::Switched(_, record) = carried {
        record.close(front, Outcome::Refused(Refusal::ActorConnectFailed));
    }
}

/// The head of an upgrade has no body; what the client sends is the protocol's own, for later.
struct Nothing;

impl RequestBody for Nothing {
    fn poll_frame(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<Frame, ClientError>> {
        std::task::Poll::Ready(Ok(Frame::End(None)))
    }

    fn is_untouched(&self) -> bool {
        true
    }

    fn poll_gone(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        std::task::Poll::Pending
    }
}

/// Bridges an extended CONNECT to an HTTP/1.1 upgrade at the actor (row I-10).
async fn websocket(
    front: &Front,
    mut head: RequestHead,
    stream: h2::RecvStream,
    mut respond: Respond,
    mut scratch: Scratch,
) {
    let Some(expected) = websocket::upgrade(&mut head) else {
        return respond.refuse_plainly(Refusal::Internal, ASKED).await;
    };
    let carried = carry(front, &mut head, Ok(Framing::Empty), (&mut Nothing, &mut respond), &mut scratch).await;
    let Carried::Switched(actor, mut record) = carried else { return };
    headers::to_client(&mut scratch.response.fields);
    if !websocket::confirm(&mut scratch.response, &expected) {
        record.tally.status = Some(StatusCode::BAD_GATEWAY);
        respond.refuse_plainly(Refusal::ActorConnectFailed, ASKED).await;
        return record.close(front, Outcome::Refused(Refusal::ActorConnectFailed));
    }
    switched(&mut record);
    bridge(front, *actor, stream, respond, (scratch, *record)).await;
}

async fn bridge(
    front: &Front,
    mut actor: ActorConn,
    stream: h2::RecvStream,
    mut respond: Respond,
    (scratch, mut record): (Scratch, Record),
) {
    let Ok(mut sink) = respond.accept(&scratch.response) else {
        return record.close(front, Outcome::ClientGone);
    };
    let mut source = H2Source::new(stream);
    let relayed = relay((&mut source, &mut sink), (&mut actor.reader, &mut actor.sink), &scratch.idle).await;
    record.tally.bytes_in = relayed.bytes_in;
    record.tally.bytes_out = relayed.bytes_out;
    record.close(front, outcome(relayed.ending));
}

impl Respond {
    /// Refuses outside of an exchange.
    pub(super) async fn refuse_plainly(&mut self, refusal: Refusal, asked: Asked<'_>) {
        refuse(self, refusal, asked);
        // A client that is gone needs no answer.
        let _gone = std::future::poll_fn(|cx| self.poll_flush(cx)).await;
    }
}
