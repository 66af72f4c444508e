//! The actor's side over HTTP/1.1.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Method;

use super::party::{ActorError, ActorRecv, ActorSend};
use crate::http1::{
    BodyDecoder, Fields, Frame, Framing, ReadError, Reader, RequestHead, ResponseHead, chunk_end, chunk_head,
    keep_alive, last_chunk, parse_response, request_head, response_framing,
};
use crate::pipe::{H2Sink, H2Source, Outbox, Sink};
use crate::tunnel::client::ActorConn;

/// A response head may be this large.
const HEAD_LIMIT: usize = 128 * 1024;
/// Interim answers in one exchange: more is a flood.
const MAX_INTERIM: u32 = 64;

pub(super) struct Send<'a> {
    sink: &'a mut H2Sink,
    out: &'a mut Outbox,
    chunked: bool,
}

pub(super) struct Recv<'a> {
    reader: &'a mut Reader<H2Source>,
    body: BodyDecoder,
    silent: bool,
    interim: u32,
    reusable: &'a mut bool,
}

/// Queues the head and gives both halves of the exchange. `reusable` tells afterwards whether the
/// connection may carry another one.
pub(super) fn begin<'a>(
    conn: &'a mut ActorConn,
    head: &RequestHead,
    framing: Framing,
    reusable: &'a mut bool,
) -> (Send<'a>, Recv<'a>) {
    request_head(head, conn.out.tail());
    *reusable = false;
    let send = Send { sink: &mut conn.sink, out: &mut conn.out, chunked: framing == Framing::Chunked };
    let recv = Recv { reader: &mut conn.reader, body: BodyDecoder::Done, silent: true, interim: 0, reusable };
    (send, recv)
}

impl ActorSend for Send<'_> {
    fn data(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        if self.chunked {
            chunk_head(data.len(), self.out.tail());
            self.out.push(data);
            chunk_end(self.out.tail());
        } else {
            self.out.push(data);
        }
    }

    fn end(&mut self, trailers: Option<Box<Fields>>) {
        if self.chunked {
            last_chunk(trailers.as_deref(), self.out.tail());
        }
    }

    fn queued(&self) -> usize {
        self.out.len()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sink.poll_send(cx, self.out)
    }
}

impl ActorRecv for Recv<'_> {
    fn poll_head(&mut self, cx: &mut Context<'_>, into: &mut ResponseHead) -> Poll<Result<(), ActorError>> {
        let head = match ready!(self.reader.poll_head(cx, HEAD_LIMIT)) {
            Ok(Some(head)) => head,
            Err(ReadError::Head(_)) => return Poll::Ready(Err(ActorError::Protocol)),
            Ok(None) | Err(_) => {
                let silent = self.silent && self.reader.buffered().is_empty();
                return Poll::Ready(Err(ActorError::Broken { silent, code: None }));
            }
        };
        self.silent = false;
        self.interim += 1;
        if parse_response(&head, into).is_err() || self.interim > MAX_INTERIM {
            return Poll::Ready(Err(ActorError::Protocol));
        }
        Poll::Ready(Ok(()))
    }

    fn begin_body(&mut self, method: &Method, head: &ResponseHead) -> Result<Framing, ActorError> {
        let framing = response_framing(method, head).map_err(|_| ActorError::Protocol)?;
        self.body = BodyDecoder::new(framing);
        *self.reusable = framing != Framing::UntilClose && keep_alive(head.version, &head.fields);
        Ok(framing)
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, ActorError>> {
        self.reader.poll_frame(cx, &mut self.body).map_err(|_| ActorError::Broken { silent: false, code: None })
    }
}
