//! Reads heads and bodies off a stream of chunks.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use super::body::{BodyDecoder, BodyError, Frame};
use super::head::{HeadError, head_end};
use crate::pipe::Source;

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("{0}")]
    Head(#[from] HeadError),
    #[error("{0}")]
    Body(#[from] BodyError),
    /// The stream ended in the middle of a head.
    #[error("the connection ended inside a head")]
    Ended,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Splits a [`Source`] into heads and body frames; keeps what lies beyond.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    chunk: Bytes,
    /// How much of `chunk` was already searched for a head's end.
    scanned: usize,
    ended: bool,
}

impl<S: Source> Reader<S> {
    pub fn new(source: S) -> Self {
        Self::with_chunk(source, Bytes::new())
    }

    /// A reader for a stream of which the first bytes were already taken.
    pub fn with_chunk(source: S, chunk: Bytes) -> Self {
        Self { source, chunk, scanned: 0, ended: false }
    }

    /// Bytes read and not yet used.
    #[must_use]
    pub fn buffered(&self) -> &Bytes {
        &self.chunk
    }

    /// The stream, and what was read of it and not yet used.
    pub fn into_parts(self) -> (S, Bytes) {
        (self.source, self.chunk)
    }

    /// The next head, `None` when the stream ended cleanly between messages.
    pub fn poll_head(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<Result<Option<Bytes>, ReadError>> {
        loop {
            let visible = self.chunk.len().min(limit);
            if let Some(end) = head_end(&self.chunk[..visible], self.scanned)? {
                self.scanned = 0;
                return Poll::Ready(Ok(Some(self.chunk.split_to(end))));
            }
            if self.chunk.len() >= limit {
                return Poll::Ready(Err(HeadError::TooLarge.into()));
            }
            self.scanned = self.chunk.len();
            if !ready!(self.poll_fill(cx))? {
                let clean = self.chunk.iter().all(|b| matches!(b, b'\r' | b'\n'));
                return Poll::Ready(if clean { Ok(None) } else { Err(ReadError::Ended) });
            }
        }
    }

    /// The next piece of a body.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>, body: &mut BodyDecoder) -> Poll<Result<Frame, ReadError>> {
        loop {
            if let Some(frame) = body.decode(&mut self.chunk)? {
                return Poll::Ready(Ok(frame));
            }
            if !ready!(self.poll_fill(cx))? {
                return Poll::Ready(Ok(body.end_of_stream()?));
            }
        }
    }

    /// Raw bytes: what is buffered, else the next chunk; empty at the end.
    pub fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if self.chunk.is_empty() && !self.ended {
            ready!(self.poll_fill(cx))?;
        }
        self.scanned = 0;
        Poll::Ready(Ok(std::mem::take(&mut self.chunk)))
    }

    /// Ready when the peer has ended or broken the stream. Reads ahead meanwhile, up to `limit`.
    pub fn poll_gone(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<()> {
        while !self.ended {
            if self.chunk.len() >= limit {
                return Poll::Pending;
            }
            match ready!(self.poll_fill(cx)) {
                Ok(true) => {}
                Ok(false) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }

    /// Reads one more chunk; false at the end of the stream.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.ended {
            return Poll::Ready(Ok(false));
        }
        let chunk = match ready!(self.source.poll_chunk(cx)) {
            Ok(chunk) => chunk,
            Err(error) => {
                self.ended = true;
                return Poll::Ready(Err(error));
            }
        };
        self.ended = chunk.is_empty();
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else if !self.ended {
            self.chunk = join(std::mem::take(&mut self.chunk), &chunk);
        }
        Poll::Ready(Ok(!self.ended))
    }
}

/// Raw bytes, what is buffered first.
impl<S: Source> Source for Reader<S> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        self.poll_raw(cx)
    }
}

/// Extends in place when nobody else holds the first part, so a slow drip is not quadratic.
fn join(first: Bytes, second: &Bytes) -> Bytes {
    let mut joined = first.try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity((shared.len() + second.len()) * 2);
        copy.extend_from_slice(&shared);
        copy
    });
    joined.extend_from_slice(second);
    joined.freeze()
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
