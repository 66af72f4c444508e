//! One HTTP/2 stream as [`Source`] and [`Sink`]: bytes within the peer's window, resets as resets.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};

use super::{Outbox, Sink, Source};

/// An HTTP/2 failure as an I/O error: a peer's reset is a reset, never an end.
#[must_use]
pub fn reset_error(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into());
    }
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

/// The HTTP/2 code of a failure that [`reset_error`] made of a stream's reset.
#[must_use]
pub fn reset_code(error: &io::Error) -> Option<u32> {
    let error = error.get_ref()?.downcast_ref::<h2::Error>()?;
    error.is_reset().then(|| error.reason().map(u32::from)).flatten()
}

/// The receiving half. The window opens again when the next chunk is asked for, that is when the
/// one before has been dealt with.
#[derive(Debug)]
pub struct H2Source {
    stream: RecvStream,
    taken: usize,
}

impl H2Source {
    #[must_use]
    pub fn new(stream: RecvStream) -> Self {
        Self { stream, taken: 0 }
    }
}

impl Source for H2Source {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if self.taken > 0 {
            // Fails only on a stream that has ended, where windows no longer matter.
            let _ended = self.stream.flow_control().release_capacity(self.taken);
            self.taken = 0;
        }
        loop {
            return Poll::Ready(match ready!(self.stream.poll_data(cx)) {
                None => Ok(Bytes::new()),
                Some(Err(error)) => Err(reset_error(error)),
                // An empty frame says nothing, not even the end.
                Some(Ok(chunk)) if chunk.is_empty() => continue,
                Some(Ok(chunk)) => {
                    self.taken = chunk.len();
                    Ok(chunk)
                }
            });
        }
    }
}

/// The sending half. Sends only what the peer's window takes.
#[derive(Debug)]
pub struct H2Sink {
    stream: SendStream<Bytes>,
    ended: bool,
}

impl H2Sink {
    #[must_use]
    pub fn new(stream: SendStream<Bytes>) -> Self {
        Self { stream, ended: false }
    }

    /// Sends `data` as far as it goes; the rest is given back with `Pending`.
    pub fn poll_send_bytes(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<io::Result<()>> {
        while !data.is_empty() {
            let room = match self.stream.capacity() {
                0 => ready!(self.poll_capacity(cx, data.len()))?,
                room => room,
            };
            let piece = if room >= data.len() { std::mem::take(data) } else { data.split_to(room) };
            self.stream.send_data(piece, false).map_err(reset_error)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_capacity(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<io::Result<usize>> {
        self.stream.reserve_capacity(wanted);
        loop {
            let room = self.stream.capacity();
            if room > 0 {
                return Poll::Ready(Ok(room));
            }
            match ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(reset_error(error))),
                None => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        }
    }

    /// Sends `data` and the end, in one frame where the window allows.
    pub fn poll_send_last(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<io::Result<()>> {
        if !data.is_empty() {
            self.stream.reserve_capacity(data.len());
        }
        loop {
            let room = self.stream.capacity();
            if room >= data.len() {
                return Poll::Ready(self.send_last(std::mem::take(data)));
            }
            let mut piece = data.split_to(room);
            if piece.is_empty() {
                ready!(self.poll_capacity(cx, data.len()))?;
            } else {
                ready!(self.poll_send_bytes(cx, &mut piece))?;
            }
        }
    }

    /// The last bytes and the end in one frame; the window must have room.
    fn send_last(&mut self, data: Bytes) -> io::Result<()> {
        self.ended = true;
        self.stream.send_data(data, true).map_err(reset_error)
    }

    pub fn send_trailers(&mut self, trailers: http::HeaderMap) -> io::Result<()> {
        self.ended = true;
        self.stream.send_trailers(trailers).map_err(reset_error)
    }

    pub fn reset_with(&mut self, reason: Reason) {
        self.stream.send_reset(reason);
    }
}

impl Sink for H2Sink {
    fn poll_send(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> Poll<io::Result<()>> {
        while let Some(mut data) = out.pop() {
            let sent = self.poll_send_bytes(cx, &mut data);
            out.unpop(data);
            ready!(sent)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_end(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(if self.ended { Ok(()) } else { self.send_last(Bytes::new()) })
    }

    fn reset(&mut self) {
        self.stream.send_reset(Reason::CONNECT_ERROR);
    }

    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_reset(cx).map(drop)
    }
}
