//! Sockets and TLS streams as [`Source`] and [`Sink`].

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::{Outbox, Sink, Source};

/// How much is read at once: grows while reads come back full, so bulk needs few calls and an
/// idle or chatty connection little memory.
const READ_MIN: usize = 8 * 1024;
pub(crate) const READ_MAX: usize = 128 * 1024;

/// Reads chunks off an [`AsyncRead`].
#[derive(Debug)]
pub struct IoSource<R> {
    io: R,
    buf: BytesMut,
    want: usize,
}

impl<R> IoSource<R> {
    pub fn new(io: R) -> Self {
        Self { io, buf: BytesMut::new(), want: READ_MIN }
    }

    pub fn into_inner(self) -> R {
        self.io
    }
}

impl<R: AsyncRead + Unpin + Send> Source for IoSource<R> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        self.buf.reserve(self.want);
        match pin!(self.io.read_buf(&mut self.buf)).poll(cx) {
            Poll::Ready(Ok(n)) => {
                self.want = if n >= self.want { n * 2 } else { n.next_power_of_two() }.clamp(READ_MIN, READ_MAX);
                Poll::Ready(Ok(self.buf.split().freeze()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                // Nothing to hold on to while the peer is silent: an idle client costs no buffer.
                self.buf = BytesMut::new();
                Poll::Pending
            }
        }
    }
}

/// Half of a connection that can be told to end with a TCP reset.
pub trait Reset {
    fn reset_on_close(&self);
}

/// Writes to an [`AsyncWrite`].
#[derive(Debug)]
pub struct IoSink<W> {
    io: W,
}

impl<W> IoSink<W> {
    pub fn new(io: W) -> Self {
        Self { io }
    }

    pub fn into_inner(self) -> W {
        self.io
    }
}

impl<W: AsyncWrite + Reset + Unpin + Send> Sink for IoSink<W> {
    fn poll_send(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> Poll<io::Result<()>> {
        out.poll_write(&mut self.io, cx)
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn reset(&mut self) {
        self.io.reset_on_close();
    }
}

/// A stream of which some bytes were already read.
#[derive(Debug)]
pub struct Prefixed<T> {
    first: Bytes,
    io: T,
}

impl<T> Prefixed<T> {
    pub fn new(first: Bytes, io: T) -> Self {
        Self { first, io }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Prefixed<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let n = self.first.len().min(buf.remaining());
        buf.put_slice(&self.first[..n]);
        self.first.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Prefixed<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
