//! The actor's side over HTTP/2: gRPC.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::ResponseFuture;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri};
use tokio::time::{Sleep, sleep};

use super::frames_http2::{Receive, Transmit};
use super::headers::{self, from_map, to_map};
use super::party::{ActorError, ActorRecv, ActorSend};
use crate::http1::{Fields, Frame, Framing, Kind, RequestHead, ResponseHead, Version};
use crate::pipe::H2Sink;
use crate::tunnel::client::{Heard, Spoken};

/// A server of HTTP/2 speaks first; one that says nothing for this long does not speak it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The request for an actor; `None` where its head cannot be put so.
pub(crate) fn request(head: &RequestHead, scheme: Scheme) -> Option<Request<()>> {
    let authority = Authority::try_from(head.fields.get(Kind::Host)?).ok()?;
    let path = PathAndQuery::try_from(head.target.as_slice()).ok()?;
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().ok()?;
    let mut fields = head.fields.clone();
    headers::for_http2(&mut fields);
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = to_map(&fields);
    Some(request)
}

pub(crate) struct Send(Transmit);

impl Send {
    pub(crate) fn new(sink: H2Sink, ended: bool) -> Self {
        Self(if ended { Transmit::ended(sink) } else { Transmit::new(sink) })
    }
}

impl ActorSend for Send {
    fn data(&mut self, data: Bytes) {
        self.0.data(data);
    }

    fn end(&mut self, trailers: Option<Box<Fields>>) {
        self.0.end(trailers);
    }

    fn queued(&self) -> usize {
        self.0.queued()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }
}

pub(crate) struct Recv {
    response: ResponseFuture,
    heard: Arc<Heard>,
    patience: Pin<Box<Sleep>>,
    body: Option<h2::RecvStream>,
    receive: Option<Receive>,
}

impl Recv {
    pub(crate) fn new(response: ResponseFuture, heard: Arc<Heard>) -> Self {
        Self { response, heard, patience: Box::pin(sleep(PATIENCE)), body: None, receive: None }
    }

    fn broken(&self, error: &h2::Error) -> ActorError {
        match self.heard.spoken() {
            Spoken::Other => ActorError::Protocol,
            spoken => ActorError::Broken {
                silent: spoken == Spoken::Nothing,
                code: error.is_reset().then(|| error.reason().map(u32::from)).flatten(),
            },
        }
    }
}

impl ActorRecv for Recv {
    fn poll_head(&mut self, cx: &mut Context<'_>, into: &mut ResponseHead) -> Poll<Result<(), ActorError>> {
        match self.response.poll_informational(cx) {
            Poll::Ready(Some(Ok(interim))) => {
                into.status = interim.status();
                from_map(interim.headers(), &mut into.fields);
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(self.broken(&error))),
            Poll::Ready(None) | Poll::Pending => {}
        }
        match Pin::new(&mut self.response).poll(cx) {
            Poll::Ready(Ok(response)) => {
                let (parts, body) = response.into_parts();
                into.status = parts.status;
                into.version = Version::Http11;
                into.reason.clear();
                from_map(&parts.headers, &mut into.fields);
                self.body = Some(body);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.broken(&error))),
            Poll::Pending if self.heard.spoken() == Spoken::Nothing => {
                self.patience.as_mut().poll(cx).map(|()| Err(ActorError::Protocol))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn begin_body(&mut self, method: &Method, head: &ResponseHead) -> Result<Framing, ActorError> {
        let body = self.body.take().ok_or(ActorError::Protocol)?;
        let ended = body.is_end_stream();
        self.receive = Some(Receive::new(body));
        if ended {
            return Ok(Framing::Empty);
        }
        Ok(match crate::http1::response_framing(method, head).map_err(|_| ActorError::Protocol)? {
            Framing::UntilClose => Framing::Chunked,
            framing => framing,
        })
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ActorError>> {
        let Some(receive) = &mut self.receive else { return Poll::Ready(Err(ActorError::Protocol)) };
        receive.poll_frame(cx).map_err(|error| self.broken(&error))
    }
}
