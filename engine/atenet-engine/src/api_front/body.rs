//! Bodies in both directions: what was read already and the rest of it; answers of our own; answers passed on.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::forward::GONE;
use super::locate::{Located, Next};

/// A request body of which the front has already read the beginning.
pub(super) struct Resumed {
    first: Option<Bytes>,
    rest: Incoming,
}

impl Resumed {
    pub(super) fn new(first: Bytes, rest: Incoming) -> Self {
        Self { first: Some(first).filter(|first| !first.is_empty()), rest }
    }
}

impl Body for Resumed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        match this.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Pin::new(&mut this.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }
}

/// What a caller gets.
pub(super) enum Reply {
    /// One message, then the trailers of an OK.
    Answer(Option<Bytes>),
    /// The control plane's own.
    Passed(Incoming),
    /// A router's look-ups, for as long as it asks.
    Located(Box<Located>),
    /// Nothing (more).
    Over,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = match this {
            Self::Answer(message) => match message.take() {
                Some(message) => return Poll::Ready(Some(Ok(Frame::data(message)))),
                None => Frame::trailers(status(HeaderValue::from_static("0"))),
            },
            Self::Passed(body) => match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                None => return Poll::Ready(None),
                // The control plane ended in the middle of it: callers know that status, and retry.
                Some(Err(error)) => {
                    tracing::debug!(%error, "an answer of the control plane broke off");
                    Frame::trailers(status(GONE))
                }
            },
            Self::Located(located) => match ready!(located.poll_next(cx)) {
                Next::Answers(answers) => return Poll::Ready(Some(Ok(Frame::data(answers)))),
                Next::End(code) => Frame::trailers(status(code)),
            },
            Self::Over => return Poll::Ready(None),
        };
        *this = Self::Over;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Answer(_) | Self::Located(_) => false,
            Self::Passed(body) => body.is_end_stream(),
            Self::Over => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

fn status(code: HeaderValue) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", code);
    trailers
}
