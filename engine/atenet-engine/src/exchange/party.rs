//! The four parties of an exchange: what a client sends and is sent, what an actor is sent and sends.
//! HTTP/1.1 and HTTP/2 each implement them; the pump knows neither.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Method;

use crate::http1::{Fields, Frame, Framing, ResponseHead};

/// Why a request's body stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientError {
    Gone,
    /// Its framing is broken.
    Malformed,
}

/// The client's side, inbound.
pub(crate) trait RequestBody: Send {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ClientError>>;

    /// Whether nothing of the body was taken yet, so that the request can be sent anew.
    fn is_untouched(&self) -> bool;

    /// Ready when the client has left; reads ahead a bounded amount meanwhile.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// The client's side, outbound. Calls queue; `poll_flush` sends.
pub(crate) trait Responder: Send {
    /// An interim answer.
    fn inform(&mut self, head: &ResponseHead);

    /// The final head. Its fields are clean of the actor's hop; framing fields are the responder's to set.
    fn start(&mut self, head: &mut ResponseHead, framing: Framing);

    fn data(&mut self, data: Bytes);

    fn end(&mut self, trailers: Option<Box<Fields>>);

    /// The response will not be completed: its end must not look clean. `code`: the HTTP/2 error to pass on.
    fn cut(&mut self, code: Option<u32>);

    /// Bytes that wait to be sent.
    fn queued(&self) -> usize;

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready when the client has left, where that is learnt on this side.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// Why an actor's answer stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActorError {
    /// The stream broke or ended; `silent`: before any byte of an answer; `code`: the HTTP/2 error that it gave.
    Broken { silent: bool, code: Option<u32> },
    /// It answered, but not in the protocol that the request needs.
    Protocol,
}

/// The actor's side, outbound.
pub(crate) trait ActorSend: Send {
    fn data(&mut self, data: Bytes);
    fn end(&mut self, trailers: Option<Box<Fields>>);
    fn queued(&self) -> usize;
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// The actor's side, inbound.
pub(crate) trait ActorRecv: Send {
    /// The next head, interim or final.
    fn poll_head(&mut self, cx: &mut Context<'_>, into: &mut ResponseHead) -> Poll<Result<(), ActorError>>;

    /// The final head's body begins.
    fn begin_body(&mut self, method: &Method, head: &ResponseHead) -> Result<Framing, ActorError>;

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ActorError>>;
}

/// Resolves when the client leaves while its request is being routed.
pub(crate) async fn gone<B: RequestBody, R: Responder>(body: &mut B, responder: &mut R) {
    poll_fn(|cx| {
        let left = body.poll_gone(cx).is_ready() || responder.poll_gone(cx).is_ready();
        if left { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
