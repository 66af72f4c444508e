//! Bodies, decoded without I/O.

use bytes::{Buf, Bytes};
use thiserror::Error;

use super::chunked::ChunkDecoder;
use super::fields::Fields;
use super::framing::Framing;

#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    #[error("malformed chunk")]
    Chunk,
    #[error("malformed or oversized trailers")]
    Trailers,
    #[error("the body broke off before its end")]
    Truncated,
}

/// One piece of a body.
#[derive(Debug)]
pub enum Frame {
    Data(Bytes),
    /// The body is whole; trailers where there were any.
    End(Option<Box<Fields>>),
}

/// Takes a body out of a stream of bytes, and nothing beyond its end.
#[derive(Debug)]
pub enum BodyDecoder {
    Length(u64),
    Chunked(ChunkDecoder),
    UntilClose,
    Done,
}

impl BodyDecoder {
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Empty | Framing::Length(0) => Self::Done,
            Framing::Length(n) => Self::Length(n),
            Framing::Chunked => Self::Chunked(ChunkDecoder::default()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Whether the body's end has been seen.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// The next piece from `input`, or nothing when it needs more bytes.
    pub fn decode(&mut self, input: &mut Bytes) -> Result<Option<Frame>, BodyError> {
        match self {
            Self::Done => Ok(Some(Frame::End(None))),
            _ if input.is_empty() => Ok(None),
            Self::UntilClose => Ok(Some(Frame::Data(std::mem::take(input)))),
            Self::Length(left) => {
                let data = take(input, *left);
                *left -= data.len() as u64;
                if *left == 0 {
                    *self = Self::Done;
                }
                Ok(Some(Frame::Data(data)))
            }
            Self::Chunked(chunks) => {
                let frame = chunks.decode(input)?;
                if matches!(frame, Some(Frame::End(_))) {
                    *self = Self::Done;
                }
                Ok(frame)
            }
        }
    }

    /// The stream ended: a clean end only for a body that runs until the close.
    pub fn end_of_stream(&mut self) -> Result<Frame, BodyError> {
        match self {
            Self::Done | Self::UntilClose => {
                *self = Self::Done;
                Ok(Frame::End(None))
            }
            Self::Length(_) | Self::Chunked(_) => Err(BodyError::Truncated),
        }
    }
}

/// At most `limit` bytes off the front, without copying.
pub(super) fn take(input: &mut Bytes, limit: u64) -> Bytes {
    let n = usize::try_from(limit).unwrap_or(usize::MAX).min(input.remaining());
    if n == input.len() { std::mem::take(input) } else { input.split_to(n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_framed_body_leaves_what_follows_alone() {
        let mut body = BodyDecoder::new(Framing::Length(5));
        let mut input = Bytes::from_static(b"helloGET /");
        assert!(matches!(body.decode(&mut input), Ok(Some(Frame::Data(d))) if d == "hello"));
        assert!(matches!(body.decode(&mut input), Ok(Some(Frame::End(None)))));
        assert_eq!(input, "GET /");
    }

    #[test]
    fn a_short_body_is_never_a_whole_one() {
        let mut body = BodyDecoder::new(Framing::Length(5));
        let mut input = Bytes::from_static(b"hell");
        assert!(matches!(body.decode(&mut input), Ok(Some(Frame::Data(_)))));
        assert_eq!(body.end_of_stream().err(), Some(BodyError::Truncated));
        assert_eq!(BodyDecoder::new(Framing::Chunked).end_of_stream().err(), Some(BodyError::Truncated));
        assert!(BodyDecoder::new(Framing::UntilClose).end_of_stream().is_ok());
    }
}
