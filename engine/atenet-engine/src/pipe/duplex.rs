//! A [`Source`] and a [`Sink`] as one [`AsyncRead`] and [`AsyncWrite`], for protocols that want a socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{H2Sink, H2Source, Outbox, Sink, Source};

/// One HTTP/2 stream as a socket.
pub type H2Duplex = Duplex<H2Source, H2Sink>;

/// Beyond this a write waits for what was written before.
const WRITE_AHEAD: usize = 64 * 1024;

#[derive(Debug)]
pub struct Duplex<S, K> {
    source: S,
    sink: K,
    chunk: Bytes,
    out: Outbox,
}

impl<S: Source, K: Sink> Duplex<S, K> {
    pub fn new(source: S, sink: K) -> Self {
        Self::with_chunk(source, sink, Bytes::new())
    }

    /// A stream of which the first bytes were already read.
    pub fn with_chunk(source: S, sink: K, chunk: Bytes) -> Self {
        Self { source, sink, chunk, out: Outbox::default() }
    }

    pub(super) fn reset(&mut self) {
        self.sink.reset();
    }
}

impl<S: Source + Unpin, K: Sink + Unpin> AsyncRead for Duplex<S, K> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.chunk.is_empty() {
            self.chunk = ready!(self.source.poll_chunk(cx))?;
        }
        let n = self.chunk.len().min(buf.remaining());
        buf.put_slice(&self.chunk[..n]);
        self.chunk.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl<S: Source + Unpin, K: Sink + Unpin> AsyncWrite for Duplex<S, K> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.out.len() >= WRITE_AHEAD {
            ready!(this.sink.poll_send(cx, &mut this.out))?;
        }
        let n = buf.len().min(WRITE_AHEAD);
        this.out.tail().extend_from_slice(&buf[..n]);
        match this.sink.poll_send(cx, &mut this.out) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(n)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.sink.poll_send(cx, &mut this.out)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.sink.poll_send(cx, &mut this.out))?;
        this.sink.poll_end(cx)
    }
}
