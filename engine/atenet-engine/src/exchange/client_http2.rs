//! The client's side over HTTP/2: one stream.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Response, StatusCode};

use super::frames_http2::{Receive, Transmit};
use super::headers::{push_length, to_map};
use super::party::{ClientError, RequestBody, Responder};
use crate::http1::{Fields, Frame, Framing, Kind, ResponseHead};
use crate::pipe::{H2Sink, reset_error};

pub(crate) struct Body {
    receive: Receive,
    untouched: bool,
}

impl Body {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self { receive: Receive::new(stream), untouched: true }
    }
}

impl RequestBody for Body {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ClientError>> {
        // An error: reset by the client, or by the library because the length lied.
        let frame = self.receive.poll_frame(cx).map_err(|_| ClientError::Gone);
        if matches!(frame, Poll::Ready(Ok(Frame::Data(_) | Frame::End(Some(_))))) {
            self.untouched = false;
        }
        frame
    }

    fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// A reset shows on the responding side.
    fn poll_gone(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

pub(crate) struct Respond {
    respond: SendResponse<Bytes>,
    transmit: Option<Transmit>,
    failed: bool,
}

impl Respond {
    pub(crate) fn new(respond: SendResponse<Bytes>) -> Self {
        Self { respond, transmit: None, failed: false }
    }

    /// Accepts a CONNECT: from here the stream is the protocol's own.
    pub(crate) fn accept(&mut self, head: &ResponseHead) -> io::Result<H2Sink> {
        let mut response = response(head);
        *response.status_mut() = StatusCode::OK;
        self.respond.send_response(response, false).map(H2Sink::new).map_err(reset_error)
    }
}

fn response(head: &ResponseHead) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = head.status;
    *response.headers_mut() = to_map(&head.fields);
    response
}

impl Responder for Respond {
    fn inform(&mut self, head: &ResponseHead) {
        // A stream that is gone shows at the next real write.
        let _gone = self.respond.send_informational(response(head));
    }

    fn start(&mut self, head: &mut ResponseHead, framing: Framing) {
        if let Framing::Length(n) = framing
            && !head.fields.has(Kind::ContentLength)
        {
            push_length(&mut head.fields, n);
        }
        let bodiless = framing == Framing::Empty;
        match self.respond.send_response(response(head), bodiless).map(H2Sink::new) {
            Ok(sink) => self.transmit = Some(if bodiless { Transmit::ended(sink) } else { Transmit::new(sink) }),
            Err(_) => self.failed = true,
        }
    }

    fn data(&mut self, data: Bytes) {
        if let Some(transmit) = &mut self.transmit {
            transmit.data(data);
        }
    }

    fn end(&mut self, trailers: Option<Box<Fields>>) {
        if let Some(transmit) = &mut self.transmit {
            transmit.end(trailers);
        }
    }

    fn cut(&mut self, code: Option<u32>) {
        let reason = code.map_or(Reason::INTERNAL_ERROR, Reason::from);
        match &mut self.transmit {
            Some(transmit) => transmit.reset(reason),
            None => self.respond.send_reset(reason),
        }
    }

    fn queued(&self) -> usize {
        self.transmit.as_ref().map_or(0, Transmit::queued)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.failed {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        self.transmit.as_mut().map_or(Poll::Ready(Ok(())), |transmit| transmit.poll_flush(cx))
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.transmit {
            Some(transmit) => transmit.poll_broken(cx),
            None => self.respond.poll_reset(cx).map(drop),
        }
    }
}
