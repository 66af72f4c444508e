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
use crate::pipe::{Outbox, Sink, Source, reset_code};

/// A response head may be this large.
const HEAD_LIMIT: usize = 128 * 1024;
/// Interim answers in one exchange: more is a flood.
const MAX_INTERIM: u32 = 64;

pub(crate) struct Send<'a, K> {
    sink: &'a mut K,
    out: &'a mut Outbox,
    chunked: bool,
}

pub(crate) struct Recv<'a, S> {
    reader: &'a mut Reader<S>,
    body: BodyDecoder,
    silent: bool,
    interim: u32,
    reusable: &'a mut bool,
}

/// Queues the head and gives both halves of the exchange. `reusable` tells afterwards whether the
/// connection may carry another one.
pub(crate) fn begin<'a, S: Source, K: Sink>(
    (reader, sink, out): (&'a mut Reader<S>, &'a mut K, &'a mut Outbox),
    head: &RequestHead,
    framing: Framing,
    reusable: &'a mut bool,
) -> (Send<'a, K>, Recv<'a, S>) {
    request_head(head, out.tail());
    *reusable = false;
    let send = Send { sink, out, chunked: framing == Framing::Chunked };
    let recv = Recv { reader, body: BodyDecoder::Done, silent: true, interim: 0, reusable };
    (send, recv)
}

impl<K: Sink> ActorSend for Send<'_, K> {
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

impl<S: Source> ActorRecv for Recv<'_, S> {
    fn poll_head(&mut self, cx: &mut Context<'_>, into: &mut ResponseHead) -> Poll<Result<(), ActorError>> {
        let head = match ready!(self.reader.poll_head(cx, HEAD_LIMIT)) {
            Ok(Some(head)) => head,
            Err(ReadError::Head(_)) => return Poll::Ready(Err(ActorError::Protocol)),
            end @ (Ok(None) | Err(_)) => {
                let silent = self.silent && self.reader.buffered().is_empty();
                let code = if let Err(ReadError::Io(error)) = &end { reset_code(error) } else { None };
                return Poll::Ready(Err(ActorError::Broken { silent, code }));
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
