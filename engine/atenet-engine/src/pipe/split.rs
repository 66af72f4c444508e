//! The two halves of a client's socket or TLS stream. Unlike tokio's, they reach the socket beneath,
//! and dropping one does nothing of its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::io::Reset;
use super::{Duplex, Sink, Source};
use crate::tls::{ClientStream, ServerStream};

/// A stream that ends in a TCP socket, however deep beneath.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send {
    /// Dropping the socket then sends RST instead of FIN.
    fn reset_on_close(&mut self);
}

impl Socket for TcpStream {
    fn reset_on_close(&mut self) {
        if let Err(error) = socket2::SockRef::from(&*self).set_linger(Some(std::time::Duration::ZERO)) {
            tracing::debug!(%error, "cannot ask for a reset");
        }
    }
}

impl<T: Socket> Socket for ServerStream<T> {
    fn reset_on_close(&mut self) {
        self.get_mut().0.reset_on_close();
    }
}

impl<T: Socket> Socket for ClientStream<T> {
    fn reset_on_close(&mut self) {
        self.get_mut().0.reset_on_close();
    }
}

impl<T: Socket + ?Sized> Socket for Box<T> {
    fn reset_on_close(&mut self) {
        (**self).reset_on_close();
    }
}

/// A stream inside another one.
impl<S: Source + Unpin, K: Sink + Unpin> Socket for Duplex<S, K> {
    fn reset_on_close(&mut self) {
        self.reset();
    }
}

#[derive(Debug)]
pub struct ReadHalf<T>(Arc<Mutex<T>>);
#[derive(Debug)]
pub struct WriteHalf<T>(Arc<Mutex<T>>);

/// Both halves are used by one task, so the lock is never contended.
#[must_use]
pub fn split<T: Socket>(stream: T) -> (ReadHalf<T>, WriteHalf<T>) {
    let shared = Arc::new(Mutex::new(stream));
    (ReadHalf(shared.clone()), WriteHalf(shared))
}

/// The stream that both halves came from; none when they came from different ones.
#[must_use]
pub fn reunite<T: Socket>(read: ReadHalf<T>, write: WriteHalf<T>) -> Option<T> {
    drop(write);
    Arc::into_inner(read.0).map(Mutex::into_inner)
}

impl<T: Socket> AsyncRead for ReadHalf<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(cx, buf)
    }
}

impl<T: Socket> AsyncWrite for WriteHalf<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(cx)
    }
}

impl<T: Socket> WriteHalf<T> {
    /// The stream for whoever ends it from outside, and for as long as the handle lives.
    #[must_use]
    pub fn handle(&self) -> Handle<T> {
        Handle(self.0.clone())
    }
}

/// A stream whose halves are elsewhere.
#[derive(Debug)]
pub struct Handle<T>(Arc<Mutex<T>>);

impl<T: Socket> Reset for Handle<T> {
    fn reset_on_close(&self) {
        self.0.lock().reset_on_close();
    }
}

impl<T: Socket> Reset for WriteHalf<T> {
    /// Dropping the socket then sends RST instead of FIN.
    fn reset_on_close(&self) {
        self.0.lock().reset_on_close();
    }
}
