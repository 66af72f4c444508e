//! The two halves of a client's TLS stream. Unlike tokio's, they reach the socket beneath.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::io::{Reset, linger_zero};
use crate::tls::ServerStream;

type Shared = Arc<Mutex<ServerStream<TcpStream>>>;

pub struct TlsReadHalf(Shared);
pub struct TlsWriteHalf(Shared);

/// Both halves are used by one task, so the lock is never contended.
#[must_use]
pub fn split_tls(stream: ServerStream<TcpStream>) -> (TlsReadHalf, TlsWriteHalf) {
    let shared = Arc::new(Mutex::new(stream));
    (TlsReadHalf(shared.clone()), TlsWriteHalf(shared))
}

impl AsyncRead for TlsReadHalf {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsWriteHalf {
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

impl Reset for TlsWriteHalf {
    fn reset_on_close(&self) {
        linger_zero(self.0.lock().get_ref().0);
    }
}
