//! One direction of an HTTP/2 stream as frames: what both a client's and an actor's side need.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::HeaderMap;

use super::headers::{from_map, to_map};
use crate::http1::{Fields, Frame};
use crate::pipe::{H2Sink, Outbox, Sink};

/// Receives. The window opens again when the next frame is asked for, that is when the one before
/// has been dealt with.
pub(crate) struct Receive {
    stream: RecvStream,
    taken: usize,
    ended: bool,
}

impl Receive {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self { ended: stream.is_end_stream(), stream, taken: 0 }
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, h2::Error>> {
        if self.ended {
            return Poll::Ready(Ok(Frame::End(None)));
        }
        if self.taken > 0 {
            // Fails only on a stream that has ended, where windows no longer matter.
            let _ended = self.stream.flow_control().release_capacity(std::mem::take(&mut self.taken));
        }
        if let Some(data) = ready!(self.stream.poll_data(cx)?) {
            self.taken = data.len();
            return Poll::Ready(Ok(Frame::Data(data)));
        }
        let trailers = ready!(self.stream.poll_trailers(cx))?;
        self.ended = true;
        Poll::Ready(Ok(Frame::End(trailers.map(|map| {
            let mut fields = Fields::new();
            from_map(&map, &mut fields);
            Box::new(fields)
        }))))
    }
}

/// What still has to go out after the queued bytes.
enum Ending {
    No,
    Plain,
    Trailers(HeaderMap),
    Sent,
}

/// Sends what is queued, within the window, and the end with the last of it.
pub(crate) struct Transmit {
    sink: H2Sink,
    out: Outbox,
    ending: Ending,
}

impl Transmit {
    pub(crate) fn new(sink: H2Sink) -> Self {
        Self { sink, out: Outbox::default(), ending: Ending::No }
    }

    /// For a message that ended with its head.
    pub(crate) fn ended(sink: H2Sink) -> Self {
        Self { ending: Ending::Sent, ..Self::new(sink) }
    }

    pub(crate) fn data(&mut self, data: Bytes) {
        self.out.push(data);
    }

    pub(crate) fn end(&mut self, trailers: Option<Box<Fields>>) {
        if matches!(self.ending, Ending::No) {
            self.ending = match trailers {
                Some(fields) if !fields.is_empty() => Ending::Trailers(to_map(&fields)),
                _ => Ending::Plain,
            };
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(mut data) = self.out.pop() {
            let last = self.out.is_empty() && matches!(self.ending, Ending::Plain);
            let sent =
                if last { self.sink.poll_send_last(cx, &mut data) } else { self.sink.poll_send_bytes(cx, &mut data) };
            self.out.unpop(data);
            ready!(sent)?;
            if last {
                self.ending = Ending::Sent;
            }
        }
        match std::mem::replace(&mut self.ending, Ending::Sent) {
            Ending::Plain => self.sink.poll_end(cx),
            Ending::Trailers(map) => Poll::Ready(self.sink.send_trailers(map)),
            state => {
                self.ending = state;
                Poll::Ready(Ok(()))
            }
        }
    }

    pub(crate) fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sink.poll_broken(cx)
    }

    pub(crate) fn reset(&mut self, reason: Reason) {
        self.out.clear();
        self.sink.reset_with(reason);
    }
}
