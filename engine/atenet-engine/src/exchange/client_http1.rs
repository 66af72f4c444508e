//! The client's side over HTTP/1.1.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::headers::push_length;
use super::party::{ClientError, RequestBody, Responder};
use crate::drain::Drain;
use crate::http1::{
    BodyDecoder, Fields, Frame, Framing, Kind, ReadError, Reader, ResponseHead, Version, chunk_end, chunk_head,
    last_chunk, response_head,
};
use crate::pipe::{Outbox, Sink, Source};

/// What is read ahead of a request that is still being answered.
const READ_AHEAD: usize = 64 * 1024;

pub(crate) struct Body<'a, S> {
    pub(crate) reader: &'a mut Reader<S>,
    pub(crate) decoder: BodyDecoder,
    pub(crate) framing: Framing,
    touched: bool,
    ended: bool,
}

impl<'a, S: Source> Body<'a, S> {
    pub(crate) fn new(reader: &'a mut Reader<S>, framing: Framing) -> Self {
        Self { reader, decoder: BodyDecoder::new(framing), framing, touched: false, ended: false }
    }

    /// Whether the body was read to its end, so that the next request begins where it stops.
    pub(crate) fn is_read(&self) -> bool {
        self.decoder.is_done()
    }
}

impl<S: Source> RequestBody for Body<'_, S> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ClientError>> {
        let frame = ready!(self.reader.poll_frame(cx, &mut self.decoder));
        self.touched = self.framing.has_body();
        self.ended = matches!(frame, Ok(Frame::End(_)));
        Poll::Ready(frame.map_err(|error| match error {
            ReadError::Body(crate::http1::BodyError::Truncated) | ReadError::Io(_) | ReadError::Ended => {
                ClientError::Gone
            }
            ReadError::Body(_) | ReadError::Head(_) => ClientError::Malformed,
        }))
    }

    fn is_untouched(&self) -> bool {
        !self.touched
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.reader.poll_gone(cx, READ_AHEAD)
    }
}

/// How the body that is being sent is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Raw,
    Chunked,
    UntilClose,
}

pub(crate) struct Respond<'a, K> {
    sink: &'a mut K,
    out: &'a mut Outbox,
    version: Version,
    mode: Mode,
    /// The connection lives on after this answer.
    pub(crate) keep: bool,
    /// Told at the head at the latest: an answer that was asked for before the drain may begin in it.
    drain: Option<&'a Drain>,
    pub(crate) started: bool,
    pub(crate) was_cut: bool,
}

impl<'a, K: Sink> Respond<'a, K> {
    pub(crate) fn new(sink: &'a mut K, out: &'a mut Outbox, version: Version, keep: bool) -> Self {
        Self { sink, out, version, mode: Mode::Raw, keep, drain: None, started: false, was_cut: false }
    }

    /// An answer that begins once this drains is the connection's last one.
    pub(crate) fn until(&mut self, drain: &'a Drain) {
        self.drain = Some(drain);
    }

    /// The head of a 101, after which bytes are the actor's own.
    pub(crate) fn switch(&mut self, head: &mut ResponseHead) {
        head.fields.push(b"connection", b"Upgrade");
        head.fields.push(b"upgrade", b"websocket");
        self.started = true;
        response_head(head, self.out.tail());
    }
}

impl<K: Sink> Responder for Respond<'_, K> {
    fn inform(&mut self, head: &ResponseHead) {
        if self.version == Version::Http11 {
            response_head(head, self.out.tail());
        }
    }

    fn start(&mut self, head: &mut ResponseHead, framing: Framing) {
        self.started = true;
        self.mode = match framing {
            Framing::Empty | Framing::Length(_) => Mode::Raw,
            Framing::Chunked | Framing::UntilClose if self.version == Version::Http11 => Mode::Chunked,
            Framing::Chunked | Framing::UntilClose => Mode::UntilClose,
        };
        if head.status == http::StatusCode::NO_CONTENT {
            head.fields.remove(Kind::ContentLength);
        }
        match (self.mode, framing) {
            (Mode::Chunked, _) => head.fields.push(b"transfer-encoding", b"chunked"),
            (Mode::UntilClose, _) => self.keep = false,
            (Mode::Raw, Framing::Length(n)) if !head.fields.has(Kind::ContentLength) => {
                push_length(&mut head.fields, n);
            }
            (Mode::Raw, _) => {}
        }
        self.keep &= !self.drain.is_some_and(Drain::is_draining);
        match (self.keep, self.version) {
            (false, _) => head.fields.push(b"connection", b"close"),
            (true, Version::Http10) => head.fields.push(b"connection", b"keep-alive"),
            (true, Version::Http11) => {}
        }
        response_head(head, self.out.tail());
    }

    fn data(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        if self.mode == Mode::Chunked {
            chunk_head(data.len(), self.out.tail());
            self.out.push(data);
            chunk_end(self.out.tail());
        } else {
            self.out.push(data);
        }
    }

    fn end(&mut self, trailers: Option<Box<Fields>>) {
        if self.mode == Mode::Chunked {
            last_chunk(trailers.as_deref(), self.out.tail());
        }
    }

    fn cut(&mut self, _: Option<u32>) {
        self.keep = false;
        self.was_cut = true;
        if self.mode == Mode::UntilClose {
            // A plain close would look like the end.
            self.out.clear();
            self.sink.reset();
        }
    }

    fn queued(&self) -> usize {
        self.out.len()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sink.poll_send(cx, self.out)
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sink.poll_broken(cx)
    }
}
