//! An actor's HTTP/1.1 connection: one request after the other, each judged anew.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::time::{Instant, timeout, timeout_at};

use super::Refused;
use super::carry::{Carried, Leg, Scratch, carry};
use super::denial::Denial;
use crate::exchange::client_http1::{Body, Respond};
use crate::exchange::party::Responder;
use crate::exchange::refuse::{Asked, refuse};
use crate::http1::{
    Framing, HeadError, ReadError, Reader, RequestHead, Version, keep_alive, parse_request, request_framing,
};
use crate::pipe::{Outbox, Sink, Source};

/// A refused request's body is read on for this long, so that the answer is not lost to a reset.
const DISCARD: Duration = Duration::from_secs(2);
const DISCARD_BYTES: usize = 1 << 20;
/// What is queued when an answer is cut may take this long.
const LAST_WORDS: Duration = Duration::from_secs(5);
const UNREAD: Asked<'static> = Asked { method: &Method::GET, grpc: false, allow: "" };

struct Conn<S, K> {
    reader: Reader<S>,
    sink: K,
    out: Outbox,
    request: RequestHead,
    scratch: Scratch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Next,
    Close,
    Drop,
}

/// Serves a connection to its end.
pub(super) async fn serve<S: Source, K: Sink>(leg: &Leg, reader: Reader<S>, sink: K) {
    let scratch = Scratch::new(leg);
    let mut conn = Conn { reader, sink, out: Outbox::default(), request: RequestHead::default(), scratch };
    loop {
        match conn.next(leg).await {
            Then::Next => {}
            Then::Close => return conn.close().await,
            Then::Drop => return,
        }
    }
}

impl<S: Source, K: Sink> Conn<S, K> {
    async fn next(&mut self, leg: &Leg) -> Then {
        let head = match self.read_head(leg).await {
            Ok(Some(head)) => head,
            Ok(None) => return Then::Close,
            Err(denial) => return self.refuse(leg, denial).await,
        };
        if let Err(error) = parse_request(&head, &mut self.request) {
            return self.refuse(leg, error.into()).await;
        }
        let framing = request_framing(&self.request);
        let keep = framing.is_ok()
            && keep_alive(self.request.version, &self.request.fields)
            && !leg.gateway.drain.is_draining();
        self.exchange(leg, framing, keep).await
    }

    async fn exchange(&mut self, leg: &Leg, framing: Result<Framing, HeadError>, keep: bool) -> Then {
        let mut body = Body::new(&mut self.reader, framing.unwrap_or(Framing::Empty));
        let mut respond = Respond::new(&mut self.sink, &mut self.out, self.request.version, keep);
        let client = (&mut body, &mut respond);
        let judged = framing.map_err(Denial::from);
        match carry(leg, &mut self.request, judged, client, &mut self.scratch).await {
            Carried::Answered if body.is_read() && respond.keep => Then::Next,
            Carried::Answered => Then::Close,
            Carried::Over => {
                if respond.was_cut {
                    // What the origin did send is the actor's; the end is missing all the same.
                    let _late = timeout(LAST_WORDS, poll_fn(|cx| respond.poll_flush(cx))).await;
                }
                Then::Drop
            }
        }
    }

    /// The next head, or none when the connection is to close.
    async fn read_head(&mut self, leg: &Leg) -> Result<Option<Bytes>, Denial> {
        let limits = &leg.gateway.limits;
        if self.reader.buffered().is_empty() && !self.wait_first_byte(leg).await {
            return Ok(None);
        }
        let reader = &mut self.reader;
        match timeout(limits.header, poll_fn(|cx| reader.poll_head(cx, limits.head_bytes))).await {
            Ok(Ok(head)) => Ok(head),
            Ok(Err(ReadError::Head(error))) => Err(error.into()),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    async fn wait_first_byte(&mut self, leg: &Leg) -> bool {
        let reader = &mut self.reader;
        let until = Instant::now() + leg.gateway.limits.client_idle;
        tokio::select! {
            biased;
            filled = timeout_at(until, poll_fn(|cx| reader.poll_fill(cx))) => matches!(filled, Ok(Ok(true))),
            () = leg.gateway.drain.draining() => false,
        }
    }

    /// Refuses what is no request, and is done.
    async fn refuse(&mut self, leg: &Leg, denial: Denial) -> Then {
        leg.note(Refused::new(denial));
        let mut respond = Respond::new(&mut self.sink, &mut self.out, Version::Http11, false);
        refuse(&mut respond, denial, UNREAD);
        let sent = timeout(LAST_WORDS, poll_fn(|cx| respond.poll_flush(cx))).await;
        if matches!(sent, Ok(Ok(()))) { Then::Close } else { Then::Drop }
    }

    /// Ends our side, then reads a little on: closing with unread bytes would reset the connection and with it the
    /// answer that is still on its way.
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
