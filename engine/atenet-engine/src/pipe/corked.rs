//! A stream whose writes gather until the driver's turn is over, and that knows when it last heard of its peer.
//!
//! The HTTP/2 library flushes after each large frame; here a flush is the driver's to make, once a
//! turn, so that many small frames of many streams share one TLS record and one system call.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Beyond this a write waits for the socket.
const FULL: usize = 256 * 1024;
/// A write of this size goes to the socket at once: copying it would cost more than a call saves.
const DIRECT: usize = 8 * 1024;
/// As much as this is not put off.
const PROMPT: usize = 16 * 1024;
/// A drained buffer larger than this is given back.
const KEEP: usize = 64 * 1024;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// When the peer was last heard of.
#[derive(Clone)]
pub(crate) struct Heard(Arc<AtomicU64>);

impl Heard {
    fn now(&self) {
        self.0.store(u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn since(&self) -> Duration {
        START.elapsed().saturating_sub(Duration::from_millis(self.0.load(Ordering::Relaxed)))
    }
}

struct Inner<T> {
    io: T,
    out: BytesMut,
    /// Bytes went into the stream beneath that it may still hold.
    dirty: bool,
}

/// What the HTTP/2 library reads and writes.
pub(crate) struct Corked<T> {
    inner: Arc<Mutex<Inner<T>>>,
    heard: Heard,
}

/// What the driver flushes.
pub(crate) struct Flusher<T> {
    inner: Arc<Mutex<Inner<T>>>,
    /// The flush waits for the tasks that were ready before the driver.
    put_off: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Corked<T> {
    pub(crate) fn new(io: T) -> (Self, Flusher<T>, Heard) {
        let inner = Arc::new(Mutex::new(Inner { io, out: BytesMut::new(), dirty: false }));
        let heard = Heard(Arc::new(AtomicU64::new(0)));
        heard.now();
        (Self { inner: inner.clone(), heard: heard.clone() }, Flusher { inner, put_off: false }, heard)
    }
}

impl<T: AsyncWrite + Unpin> Flusher<T> {
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.put_off = false;
        self.inner.lock().poll_flush(cx)
    }

    /// Flushes once every task that is ready now has had its turn. The runtime runs a connection's task right after
    /// the one stream that woke it, so without this each stream's few bytes would be a write of their own.
    pub(crate) fn poll_flush_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waiting = self.inner.lock().waiting();
        if waiting == 0 {
            self.put_off = false;
            return Poll::Ready(Ok(()));
        }
        if self.put_off || waiting >= PROMPT {
            return self.poll_flush(cx);
        }
        self.put_off = true;
        // A task that wakes itself goes to the end of the queue.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Flusher<T> {
    /// Ends our side, then reads what the peer still sends and throws it away; resolves at its end, or after
    /// `limit` bytes. Closing a socket over unread bytes resets it, and a reset may overtake what was sent last.
    pub(crate) async fn goodbye(&mut self, limit: usize) {
        // Mostly done already; an error shows at the first read.
        let _ended = poll_fn(|cx| {
            let mut inner = self.inner.lock();
            ready!(inner.poll_flush(cx))?;
            Pin::new(&mut inner.io).poll_shutdown(cx)
        })
        .await;
        let mut page = [0; 4096];
        let mut read = 0;
        while read < limit {
            let n = poll_fn(|cx| {
                let mut buf = ReadBuf::new(&mut page);
                ready!(Pin::new(&mut self.inner.lock().io).poll_read(cx, &mut buf))?;
                Poll::Ready(io::Result::Ok(buf.filled().len()))
            });
            match n.await {
                Ok(n) if n > 0 => read += n,
                _ => return,
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> Inner<T> {
    /// Bytes that a flush would move, as far as they are known.
    fn waiting(&self) -> usize {
        self.out.len() + usize::from(self.dirty)
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let n = ready!(Pin::new(&mut self.io).poll_write(cx, &self.out))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.dirty = true;
            self.out.advance(n);
        }
        // Reuses the memory while it is small; a burst's buffer goes.
        if self.out.capacity() > KEEP {
            self.out = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }

    /// What is gathered and then `buf`, without a copy of the latter. As many bytes of `buf` as went.
    fn poll_write_direct(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let slices = [IoSlice::new(&self.out), IoSlice::new(buf)];
            let both = if self.out.is_empty() { &slices[1..] } else { &slices[..] };
            let n = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, both))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.dirty = true;
            let gathered = n.min(self.out.len());
            self.out.advance(gathered);
            if n > gathered {
                return Poll::Ready(Ok(n - gathered));
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        if self.dirty {
            ready!(Pin::new(&mut self.io).poll_flush(cx))?;
            self.dirty = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Corked<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner.lock().io).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.heard.now();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Corked<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.inner.lock();
        if buf.len() >= DIRECT {
            return inner.poll_write_direct(cx, buf);
        }
        if inner.out.len() >= FULL {
            ready!(inner.poll_drain(cx))?;
        }
        inner.out.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    /// Left to the driver, except that a full buffer must shrink first.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner.lock();
        if inner.out.len() >= FULL { inner.poll_drain(cx) } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner.lock();
        ready!(inner.poll_flush(cx))?;
        Pin::new(&mut inner.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn writes_leave_together_and_only_when_the_driver_flushes() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let (mut corked, mut flusher, _) = Corked::new(near);
        corked.write_all(b"one ").await.unwrap();
        corked.flush().await.unwrap();
        corked.write_all(b"two").await.unwrap();
        let mut got = [0; 16];
        let early = tokio::time::timeout(Duration::from_millis(10), far.read(&mut got)).await;
        assert!(early.is_err(), "nothing may leave before the driver says so");
        poll_fn(|cx| flusher.poll_flush(cx)).await.unwrap();
        let n = far.read(&mut got).await.unwrap();
        assert_eq!(&got[..n], b"one two");
    }

    #[tokio::test]
    async fn a_late_flush_lets_every_ready_task_write_first() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let (mut corked, mut flusher, _) = Corked::new(near);
        corked.write_all(b"first ").await.unwrap();
        let other = tokio::spawn(async move {
            corked.write_all(b"second").await.unwrap();
            corked
        });
        poll_fn(|cx| flusher.poll_flush_late(cx)).await.unwrap();
        let mut got = [0; 32];
        let n = far.read(&mut got).await.unwrap();
        assert_eq!(&got[..n], b"first second");
        drop(other);
    }

    #[tokio::test]
    async fn large_writes_follow_small_ones_in_order_and_without_a_copy() {
        let (near, mut far) = tokio::io::duplex(4 * DIRECT);
        let (mut corked, mut flusher, _) = Corked::new(near);
        let large = vec![b'x'; DIRECT];
        corked.write_all(b"head ").await.unwrap();
        corked.write_all(&large).await.unwrap();
        assert!(corked.inner.lock().out.is_empty());
        corked.write_all(b" tail").await.unwrap();
        poll_fn(|cx| flusher.poll_flush(cx)).await.unwrap();
        let mut got = vec![0; DIRECT + 10];
        far.read_exact(&mut got).await.unwrap();
        assert_eq!(got, [&b"head "[..], &large, b" tail"].concat());
    }

    #[tokio::test]
    async fn a_full_buffer_waits_for_the_socket() {
        let (near, mut far) = tokio::io::duplex(1024);
        let (mut corked, mut flusher, _) = Corked::new(near);
        let (chunk, mut taken) = (vec![0; FULL / 4], 0);
        while tokio::time::timeout(Duration::from_millis(10), corked.write_all(&chunk)).await.is_ok() {
            taken += chunk.len();
            assert!(taken <= FULL * 2, "memory grows without regard to the socket");
        }
        let mut got = vec![0; taken];
        let (read, flushed) = tokio::join!(far.read_exact(&mut got), poll_fn(|cx| flusher.poll_flush(cx)));
        read.unwrap();
        flushed.unwrap();
    }
}
