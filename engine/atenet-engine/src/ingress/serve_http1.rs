//! A client's HTTP/1.1 connection: one request after the other, in order.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::time::{Instant, timeout, timeout_at};

use super::carry::{Carried, Record, Scratch, carry, outcome, switched};
use super::gateway::Front;
use crate::exchange::client_http1::{Body, Respond};
use crate::exchange::headers;
use crate::exchange::party::Responder;
use crate::exchange::refuse::{Asked, refusal_of, refuse};
use crate::http1::{
    Framing, HeadError, ReadError, Reader, RequestHead, Version, keep_alive, parse_request_within, request_framing,
};
use crate::pipe::{Outbox, Sink, Source, relay};
use crate::refusal::Refusal;
use crate::telemetry::Outcome;
use crate::tunnel::client::ActorConn;

/// A refused request's body is read on for this long, so that the answer is not lost to a reset.
const DISCARD: Duration = Duration::from_secs(2);
const DISCARD_BYTES: usize = 1 << 20;
/// What is queued for a client when its answer is cut may take this long.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Who asked when nobody knows.
const UNREAD: Asked<'static> = Asked { method: &Method::GET, grpc: false, allow: "" };

pub(super) struct Conn<S, K> {
    reader: Reader<S>,
    sink: K,
    out: Outbox,
    pub(super) request: RequestHead,
    scratch: Scratch,
}

/// What comes after a request.
pub(super) enum Then {
    Next,
    /// Say goodbye in order.
    Close,
    /// The sink has been told how to end.
    Drop,
}

/// Serves a connection to its end.
pub(super) async fn serve<S: Source, K: Sink>(front: Front, reader: Reader<S>, sink: K) {
    let mut conn = Conn::new(&front, reader, sink);
    loop {
        match conn.next(&front).await {
            Then::Next => {}
            then => return conn.finish(then).await,
        }
    }
}

impl<S: Source, K: Sink> Conn<S, K> {
    pub(super) fn new(front: &Front, reader: Reader<S>, sink: K) -> Self {
        let (out, request, scratch) = (Outbox::default(), RequestHead::default(), Scratch::new(front));
        Self { reader, sink, out, request, scratch }
    }

    pub(super) fn into_parts(self) -> (Reader<S>, K) {
        (self.reader, self.sink)
    }

    /// Reads the next head into `self.request`; what is none is refused here.
    pub(super) async fn read_request(&mut self, front: &Front) -> Result<(), Then> {
        let head = match self.read_head(front).await {
            Ok(Some(head)) => head,
            Ok(None) => return Err(Then::Close),
            Err(refusal) => return Err(self.refuse(front, refusal, UNREAD).await),
        };
        match parse_request_within(&head, &mut self.request, front.gateway.limits.headers) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.refuse(front, refusal_of(error), UNREAD).await),
        }
    }

    /// Refuses outside of an exchange, and is done.
    pub(super) async fn refuse(&mut self, front: &Front, refusal: Refusal, asked: Asked<'_>) -> Then {
        let mut respond = Respond::new(&mut self.sink, &mut self.out, Version::Http11, false);
        let mut record = Record::new(front, asked.method, None);
        record.tally.status = Some(refuse(&mut respond, refusal, asked));
        record.close(front, Outcome::Refused(refusal));
        let sent = timeout(LAST_WORDS, poll_fn(|cx| respond.poll_flush(cx))).await;
        if matches!(sent, Ok(Ok(()))) { Then::Close } else { Then::Drop }
    }

    pub(super) async fn finish(mut self, then: Then) {
        if matches!(then, Then::Close) {
            self.close().await;
        }
    }

    async fn next(&mut self, front: &Front) -> Then {
        if let Err(then) = self.read_request(front).await {
            return then;
        }
        let framing = request_framing(&self.request);
        let keep = framing.is_ok() && keep_alive(self.request.version, &self.request.fields);
        self.exchange(front, framing, keep).await
    }

    async fn exchange(&mut self, front: &Front, framing: Result<Framing, HeadError>, keep: bool) -> Then {
        let mut body = Body::new(&mut self.reader, framing.unwrap_or(Framing::Empty));
        let mut respond = Respond::new(&mut self.sink, &mut self.out, self.request.version, keep);
        respond.until(&front.gateway.drain);
        let client = (&mut body, &mut respond);
        let carried = carry(front, &mut self.request, framing, client, &mut self.scratch).await;
        match carried {
            Carried::Answered if body.is_read() && respond.keep => Then::Next,
            Carried::Answered => Then::Close,
            Carried::Over => {
                if respond.was_cut {
                    // What the actor did send is the client's; the end is missing all the same.
                    let _late = timeout(LAST_WORDS, poll_fn(|cx| respond.poll_flush(cx))).await;
                }
                Then::Drop
            }
            Carried::Switched(actor, record) => {
                self.switch(front, *actor, *record).await;
                Then::Drop
            }
        }
    }

    /// The next head, or none when the connection is to close: the client is done, silent for too
    /// long, or we are draining.
    async fn read_head(&mut self, front: &Front) -> Result<Option<Bytes>, Refusal> {
        let limits = &front.gateway.limits;
        if self.reader.buffered().is_empty() && !self.wait_first_byte(front).await {
            return Ok(None);
        }
        let reader = &mut self.reader;
        let read = timeout(limits.header, poll_fn(|cx| reader.poll_head(cx, limits.head_bytes))).await;
        match read {
            Ok(Ok(head)) => Ok(head),
            Ok(Err(ReadError::Head(error))) => Err(refusal_of(error)),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    async fn wait_first_byte(&mut self, front: &Front) -> bool {
        let reader = &mut self.reader;
        let until = Instant::now() + front.gateway.limits.client_idle;
        tokio::select! {
            biased;
            filled = timeout_at(until, poll_fn(|cx| reader.poll_fill(cx))) => matches!(filled, Ok(Ok(true))),
            () = front.gateway.drain.draining() => false,
        }
    }

    /// The actor's 101 goes out; then bytes both ways until both ends have ended.
    async fn switch(&mut self, front: &Front, mut actor: ActorConn, mut record: Record) {
        let Scratch { response, idle } = &mut self.scratch;
        headers::to_client(&mut response.fields);
        let mut respond = Respond::new(&mut self.sink, &mut self.out, self.request.version, false);
        respond.switch(response);
        if poll_fn(|cx| respond.poll_flush(cx)).await.is_err() {
            return record.close(front, Outcome::ClientGone);
        }
        switched(&mut record);
        let relayed = relay((&mut self.reader, &mut self.sink), (&mut actor.reader, &mut actor.sink), idle).await;
        record.tally.bytes_in = relayed.bytes_in;
        record.tally.bytes_out = relayed.bytes_out;
        record.close(front, outcome(relayed.ending));
    }

    /// Ends our side, then reads a little on: closing with unread bytes would reset the connection
    /// and with it the answer that is still on its way.
    async fn close(&mut self) {
        let (sink, reader) = (&mut self.sink, &mut self.reader);
        if timeout(LAST_WORDS, poll_fn(|cx| sink.poll_end(cx))).await.is_err() {
            return;
        }
        let discard = async {
            let mut read = 0;
            while read < DISCARD_BYTES {
                match poll_fn(|cx| reader.poll_raw(cx)).await {
                    Ok(chunk) if !chunk.is_empty() => read += chunk.len(),
                    _ => return,
                }
            }
        };
        let _enough = timeout(DISCARD, discard).await;
    }
}
