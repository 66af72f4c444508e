//! What is to be written: small things copied together, large ones kept as they are.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

/// Below this a copy is cheaper than a further buffer in a vectored write or frame.
const COPY_BELOW: usize = 8 * 1024;
/// A drained tail larger than this is given back rather than kept.
const KEEP_TAIL: usize = 16 * 1024;
const MAX_SLICES: usize = 16;

/// Bytes on their way out, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    ready: VecDeque<Bytes>,
    tail: BytesMut,
    /// Bytes in `ready`.
    len: usize,
}

impl Outbox {
    #[must_use]
    pub fn len(&self) -> usize {
        self.len + self.tail.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where heads and chunk framing are written.
    pub fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    pub fn push(&mut self, data: Bytes) {
        if data.len() < COPY_BELOW {
            self.tail.extend_from_slice(&data);
            return;
        }
        self.seal();
        self.len += data.len();
        self.ready.push_back(data);
    }

    /// Takes the next run of bytes, for a transport that takes whole buffers.
    pub fn pop(&mut self) -> Option<Bytes> {
        self.seal();
        let data = self.ready.pop_front()?;
        self.len -= data.len();
        Some(data)
    }

    /// Puts back what a transport could not take yet.
    pub fn unpop(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.len += data.len();
            self.ready.push_front(data);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes all of it and flushes.
    pub fn poll_write<W: AsyncWrite + Unpin>(&mut self, io: &mut W, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let n = if self.ready.is_empty() {
                ready!(Pin::new(&mut *io).poll_write(cx, &self.tail))?
            } else {
                ready!(self.poll_vectored(io, cx))?
            };
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(n);
        }
        Pin::new(io).poll_flush(cx)
    }

    fn poll_vectored<W: AsyncWrite + Unpin>(&self, io: &mut W, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let mut used = 0;
        for (slot, data) in slices.iter_mut().zip(self.ready.iter().map(|b| &b[..]).chain([&self.tail[..]])) {
            *slot = IoSlice::new(data);
            used += 1;
        }
        Pin::new(io).poll_write_vectored(cx, &slices[..used])
    }

    fn advance(&mut self, mut n: usize) {
        while n > 0 {
            let Some(front) = self.ready.front_mut() else { break };
            let step = n.min(front.len());
            front.advance(step);
            self.len -= step;
            n -= step;
            if front.is_empty() {
                self.ready.pop_front();
            }
        }
        if n == self.tail.len() && self.tail.capacity() <= KEEP_TAIL {
            self.tail.clear();
        } else if n == self.tail.len() {
            self.tail = BytesMut::new();
        } else {
            self.tail.advance(n);
        }
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.len += self.tail.len();
            self.ready.push_back(self.tail.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_and_large_come_out_in_order() {
        let mut out = Outbox::default();
        out.tail().extend_from_slice(b"head ");
        out.push(Bytes::from(vec![b'x'; COPY_BELOW]));
        out.push(Bytes::from_static(b" tail"));
        assert_eq!(out.len(), COPY_BELOW + 10);
        let mut written = Vec::new();
        std::future::poll_fn(|cx| out.poll_write(&mut written, cx)).await.unwrap();
        assert!(out.is_empty());
        assert!(written.starts_with(b"head xx") && written.ends_with(b"xx tail"));
        assert_eq!(written.len(), COPY_BELOW + 10);
    }

    #[test]
    fn what_was_not_taken_goes_first_again() {
        let mut out = Outbox::default();
        out.tail().extend_from_slice(b"abcdef");
        let mut first = out.pop().unwrap();
        assert_eq!(first.split_to(2), "ab");
        out.unpop(first);
        out.push(Bytes::from_static(b"gh"));
        assert_eq!(out.pop().unwrap(), "cdef");
        assert_eq!(out.pop().unwrap(), "gh");
        assert!(out.pop().is_none() && out.is_empty());
    }
}
