//! Whether a request is in flight inside a tunnel, told from the bytes that pass by.
//!
//! Silence tells nothing: an actor may think for minutes, and a connection that is kept for the next request may be
//! just as silent. So the exchanges are followed: HTTP/1.1 by the ends of its responses, HTTP/2 by its streams. Nothing
//! is changed or refused; what cannot be followed (an upgrade, another protocol, a response that ends with its
//! connection) counts as in flight for as long as the tunnel lives.

mod http2;

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

/// `response`: of the request in flight.
struct Http1 {
    method: Vec<u8>,
    response: Option<Response>,
}

enum Response {
    Head(Vec<u8>),
    Body(BodyDecoder),
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
                    let mut http1 = Http1 { method: Vec::new(), response: None };
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
            State::Http1(http1) => http1.answered(bytes.clone()),
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
            self.method.clear();
        }
        let wanted = METHOD.saturating_sub(self.method.len()).min(bytes.len());
        self.method.extend_from_slice(&bytes[..wanted]);
    }

    fn answered(&mut self, mut bytes: Bytes) -> Result<(), Lost> {
        while !bytes.is_empty() {
            match &mut self.response {
                // More than was asked for.
                None => return Err(Lost),
                Some(Response::Head(head)) => {
                    let seen = head.len();
                    head.extend_from_slice(&bytes);
                    let Some(end) = head_end(head, seen).map_err(|_| Lost)? else {
                        return if head.len() > MAX_HEAD { Err(Lost) } else { Ok(()) };
                    };
                    let rest = bytes.split_off(end - seen);
                    let head = std::mem::take(head);
                    self.response = self.after_head(&head[..end])?;
                    bytes = rest;
                }
                Some(Response::Body(body)) => {
                    if matches!(body.decode(&mut bytes).map_err(|_| Lost)?, Some(Frame::End(_))) || body.is_done() {
                        self.response = None;
                    }
                }
            }
        }
        Ok(())
    }

    /// What follows this head: another one after an interim answer, a body, or nothing.
    fn after_head(&self, head: &[u8]) -> Result<Option<Response>, Lost> {
        let mut parsed = ResponseHead::default();
        parse_response(head, &mut parsed).map_err(|_| Lost)?;
        let asks_head = self.method.starts_with(b"HEAD ");
        if parsed.status == http::StatusCode::SWITCHING_PROTOCOLS || self.method.starts_with(b"CONNECT ") {
            return Err(Lost);
        }
        if parsed.status.is_informational() {
            return Ok(Some(Response::Head(Vec::new())));
        }
        let method = if asks_head { Method::HEAD } else { Method::GET };
        match response_framing(&method, &parsed).map_err(|_| Lost)? {
            Framing::UntilClose => Err(Lost),
            Framing::Empty => Ok(None),
            framing => Ok(Some(Response::Body(BodyDecoder::new(framing)))),
        }
    }
}

#[cfg(test)]
mod tests;
