//! Whether a request is in flight inside a tunnel, told from the bytes that pass by.
//!
//! Silence tells nothing: an actor may think for minutes, and a connection that is kept for the next request may be
//! just as silent. So the exchanges are followed: HTTP/1.1 by the ends of its responses, HTTP/2 by its streams. Nothing
//! is changed or refused; what cannot be followed (an upgrade, another protocol, a response that ends with its
//! connection) counts as in flight for as long as the tunnel lives.

mod http2;

use std::cell::RefCell;

use bytes::Bytes;
use http::Method;

use self::http2::Streams;
use crate::http1::{BodyDecoder, Frame, Framing, ResponseHead, head_end, parse_response, response_framing};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Enough to tell HEAD and CONNECT, whose responses are framed in ways of their own, from every other method.
const METHOD: usize = 8;
/// A head that is longer is not followed.
const MAX_HEAD: usize = 64 * 1024;

pub(super) struct Usage(State);

enum State {
    /// What the router sent so far does not tell yet what it speaks.
    Fresh(Vec<u8>),
    Http1(Http1),
    Http2(Box<Streams>),
    Opaque,
}

/// `response`: of the request in flight; `method`: as much of it as matters.
struct Http1 {
    method: [u8; METHOD],
    known: usize,
    response: Option<Response>,
}

enum Response {
    /// What came of a head that is not whole yet.
    Head(Vec<u8>),
    /// Bytes that are still to come.
    Length(u64),
    Chunked(BodyDecoder),
}

thread_local! {
    /// Where heads are parsed into, one after the other.
    static PARSED: RefCell<ResponseHead> = RefCell::default();
}

/// The bytes are of something that is not followed.
struct Lost;

impl Usage {
    pub(super) fn new() -> Self {
        Self(State::Fresh(Vec::new()))
    }

    pub(super) fn in_flight(&self) -> bool {
        match &self.0 {
            State::Fresh(seen) => !seen.is_empty(),
            State::Http1(http1) => http1.response.is_some(),
            State::Http2(streams) => streams.any_open(),
            State::Opaque => true,
        }
    }

    /// Whether requests were answered and none is in flight. Before the first one silence says nothing: it may be on
    /// its way.
    pub(super) fn rests(&self) -> bool {
        match &self.0 {
            State::Http1(http1) => http1.response.is_none(),
            State::Http2(streams) => streams.all_answered(),
            State::Fresh(_) | State::Opaque => false,
        }
    }

    /// The router sent this.
    pub(super) fn asked(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Fresh(seen) => {
                let wanted = (PREFACE.len() - seen.len()).min(bytes.len());
                seen.extend_from_slice(&bytes[..wanted]);
                if *seen == PREFACE {
                    let mut streams = Box::<Streams>::default();
                    streams.asked(&bytes[wanted..]);
                    self.0 = State::Http2(streams);
                } else if !PREFACE.starts_with(seen) {
                    let mut http1 = Http1 { method: [0; METHOD], known: 0, response: None };
                    http1.asked(seen);
                    self.0 = State::Http1(http1);
                }
            }
            State::Http1(http1) => http1.asked(bytes),
            State::Http2(streams) => streams.asked(bytes),
            State::Opaque => {}
        }
    }

    /// The actor sent this.
    pub(super) fn answered(&mut self, bytes: &Bytes) {
        let followed = match &mut self.0 {
            // It speaks first, or before it could know what is asked.
            State::Fresh(_) => Err(Lost),
            State::Http1(http1) => http1.answered(bytes),
            State::Http2(streams) => {
                streams.answered(bytes);
                Ok(())
            }
            State::Opaque => Ok(()),
        };
        if followed.is_err() {
            self.0 = State::Opaque;
        }
    }
}

impl Http1 {
    fn asked(&mut self, bytes: &[u8]) {
        if self.response.is_none() {
            self.response = Some(Response::Head(Vec::new()));
            self.known = 0;
        }
        let wanted = (METHOD - self.known).min(bytes.len());
        self.method[self.known..self.known + wanted].copy_from_slice(&bytes[..wanted]);
        self.known += wanted;
    }

    fn answered(&mut self, bytes: &Bytes) -> Result<(), Lost> {
        let mut at = 0;
        while at < bytes.len() {
            at += match &mut self.response {
                // More than was asked for.
                None => return Err(Lost),
                Some(Response::Head(seen)) => {
                    let seen = std::mem::take(seen);
                    self.head(seen, &bytes[at..])?
                }
                Some(Response::Length(left)) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                    *left -= taken as u64;
                    if *left == 0 {
                        self.response = None;
                    }
                    taken
                }
                Some(Response::Chunked(body)) => {
                    let mut rest = bytes.slice(at..);
                    if matches!(body.decode(&mut rest).map_err(|_| Lost)?, Some(Frame::End(_))) || body.is_done() {
                        self.response = None;
                    }
                    bytes.len() - at - rest.len()
                }
            };
        }
        Ok(())
    }

    /// More of a head, of which `seen` came before; mostly it comes in one piece, and nothing is kept of it. How many
    /// bytes are the head's.
    fn head(&mut self, mut seen: Vec<u8>, bytes: &[u8]) -> Result<usize, Lost> {
        let before = seen.len();
        let head = if before == 0 {
            bytes
        } else {
            seen.extend_from_slice(bytes);
            &seen
        };
        if let Some(end) = head_end(head, before).map_err(|_| Lost)? {
            self.response = self.after_head(&head[..end])?;
            return Ok(end - before);
        }
        if head.len() > MAX_HEAD {
            return Err(Lost);
        }
        if before == 0 {
            seen.extend_from_slice(bytes);
        }
        self.response = Some(Response::Head(seen));
        Ok(bytes.len())
    }

    /// What follows this head: another one after an interim answer, a body, or nothing.
    fn after_head(&self, head: &[u8]) -> Result<Option<Response>, Lost> {
        let method = &self.method[..self.known];
        PARSED.with_borrow_mut(|parsed| {
            parse_response(head, parsed).map_err(|_| Lost)?;
            if parsed.status == http::StatusCode::SWITCHING_PROTOCOLS || method.starts_with(b"CONNECT ") {
                return Err(Lost);
            }
            if parsed.status.is_informational() {
                return Ok(Some(Response::Head(Vec::new())));
            }
            let method = if method.starts_with(b"HEAD ") { Method::HEAD } else { Method::GET };
            match response_framing(&method, parsed).map_err(|_| Lost)? {
                Framing::UntilClose => Err(Lost),
                Framing::Empty => Ok(None),
                Framing::Length(left) => Ok(Some(Response::Length(left))),
                framing @ Framing::Chunked => Ok(Some(Response::Chunked(BodyDecoder::new(framing)))),
            }
        })
    }
}

#[cfg(test)]
mod tests;
