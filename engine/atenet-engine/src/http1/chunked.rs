//! The chunked coding, decoded byte by byte so that any split of the input reads the same.

use bytes::{Buf, Bytes};

use super::body::{BodyError, Frame, take};
use super::head::parse_trailers;

/// Extensions mean nothing to us; a peer may not make us read for ever.
const MAX_EXTENSION: u32 = 4096;
const MAX_TRAILERS: usize = 16 * 1024;
/// 15 hex digits stay below 2^60.
const MAX_DIGITS: u8 = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size {
        digits: u8,
    },
    /// White space between the size and an extension or the line's end.
    AfterSize,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
}

#[derive(Debug)]
pub struct ChunkDecoder {
    state: State,
    /// Bytes left of the current chunk.
    left: u64,
    extension: u32,
    trailers: Vec<u8>,
}

impl Default for ChunkDecoder {
    fn default() -> Self {
        Self { state: State::Size { digits: 0 }, left: 0, extension: 0, trailers: Vec::new() }
    }
}

impl ChunkDecoder {
    /// The next piece, or nothing when it needs more bytes.
    pub(super) fn decode(&mut self, input: &mut Bytes) -> Result<Option<Frame>, BodyError> {
        while !input.is_empty() {
            match self.state {
                State::Data => return Ok(Some(Frame::Data(self.data(input)))),
                State::Trailers => {
                    if let Some(end) = self.trailers(input)? {
                        return Ok(Some(end));
                    }
                }
                _ => {
                    let byte = input.get_u8();
                    self.framing(byte)?;
                }
            }
        }
        Ok(None)
    }

    fn data(&mut self, input: &mut Bytes) -> Bytes {
        let data = take(input, self.left);
        self.left -= data.len() as u64;
        if self.left == 0 {
            self.state = State::DataCr;
        }
        data
    }

    fn framing(&mut self, byte: u8) -> Result<(), BodyError> {
        self.state = match (self.state, byte) {
            (State::Size { digits }, b) if b.is_ascii_hexdigit() && digits < MAX_DIGITS => {
                self.left = self.left << 4 | u64::from(hex(b));
                State::Size { digits: digits + 1 }
            }
            (State::Size { digits: 1.. } | State::Extension, b'\r') | (State::AfterSize, b'\r') => State::SizeLf,
            (State::Size { digits: 1.. } | State::AfterSize, b';') => State::Extension,
            (State::Size { digits: 1.. } | State::AfterSize, b' ' | b'\t') => self.count(State::AfterSize)?,
            (State::Extension, b) if b == b'\t' || (b >= b' ' && b != 0x7f) => self.count(State::Extension)?,
            (State::SizeLf, b'\n') if self.left == 0 => State::Trailers,
            (State::SizeLf, b'\n') => State::Data,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { digits: 0 },
            _ => return Err(BodyError::Chunk),
        };
        Ok(())
    }

    /// Bounds the extensions of the whole body, not of one chunk.
    fn count(&mut self, next: State) -> Result<State, BodyError> {
        self.extension += 1;
        if self.extension > MAX_EXTENSION { Err(BodyError::Chunk) } else { Ok(next) }
    }

    fn trailers(&mut self, input: &mut Bytes) -> Result<Option<Frame>, BodyError> {
        let line = memchr::memchr(b'\n', input).map_or(input.len(), |i| i + 1);
        if self.trailers.len() + line > MAX_TRAILERS {
            return Err(BodyError::Trailers);
        }
        self.trailers.extend_from_slice(&input[..line]);
        input.advance(line);
        if self.trailers.last() == Some(&b'\n') && !self.trailers.ends_with(b"\r\n") {
            return Err(BodyError::Trailers);
        }
        if self.trailers == b"\r\n" {
            return Ok(Some(Frame::End(None)));
        }
        if !self.trailers.ends_with(b"\r\n\r\n") {
            return Ok(None);
        }
        let fields = parse_trailers(&self.trailers).map_err(|_| BodyError::Trailers)?;
        Ok(Some(Frame::End(Some(Box::new(fields)))))
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Body, trailers and what is left over, feeding the pieces one after the other.
    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, Vec<u8>), BodyError> {
        let (mut decoder, mut body, mut rest, mut trailers) = (ChunkDecoder::default(), Vec::new(), Vec::new(), None);
        for piece in pieces {
            let mut input = Bytes::copy_from_slice(piece);
            while trailers.is_none() {
                match decoder.decode(&mut input)? {
                    Some(Frame::Data(data)) => body.extend_from_slice(&data),
                    Some(Frame::End(fields)) => trailers = Some(fields.map_or(0, |f| f.len())),
                    None => break,
                }
            }
            rest.extend_from_slice(&input);
        }
        trailers.map(|t| (body, t, rest)).ok_or(BodyError::Truncated)
    }

    #[test]
    fn every_split_reads_the_same() {
        let text = b"4;a=b\r\nWiki\r\n00000A \t;x\r\npedia in\r\n\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\nGET /";
        let want = read(&[text]).unwrap();
        assert_eq!(want, (b"Wikipedia in\r\n".to_vec(), 2, b"GET /".to_vec()));
        for a in 0..=text.len() {
            for b in a..=text.len() {
                assert_eq!(read(&[&text[..a], &text[a..b], &text[b..]]).unwrap(), want, "split at {a}, {b}");
            }
        }
    }

    #[test]
    fn malformed_chunks_are_refused() {
        for text in [
            "\r\n",
            "g\r\n",
            "4\nWiki\r\n0\r\n\r\n",
            "4\r\nWikiX",
            "4\r\nWiki\n0\r\n\r\n",
            "-1\r\n",
            "+4\r\nWiki\r\n0\r\n\r\n",
            "0x4\r\nWiki\r\n0\r\n\r\n",
            "4 4\r\nWiki\r\n",
            "1000000000000000\r\n",
            "4\r\r\nWiki",
            ";x\r\n",
            " 4\r\nWiki",
            "4;a\nb\r\nWiki\r\n0\r\n\r\n",
            "4;a\0b\r\nWiki\r\n0\r\n\r\n",
            "0\r\nX: y\n\r\n",
            "0\r\nX : y\r\n\r\n",
            "0\r\n\n",
        ] {
            assert!(matches!(read(&[text.as_bytes()]), Err(BodyError::Chunk | BodyError::Trailers)), "{text:?}");
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let long = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(5000));
        assert_eq!(read(&[long.as_bytes()]), Err(BodyError::Chunk));
        let flood = format!("0\r\nx: {}\r\n\r\n", "y".repeat(20_000));
        assert_eq!(read(&[flood.as_bytes()]), Err(BodyError::Trailers));
    }
}
