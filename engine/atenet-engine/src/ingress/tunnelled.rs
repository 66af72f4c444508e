//! What is inside a client's CONNECT: HTTP is carried request by request, anything else is relayed
//! under the assignment of the moment.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::time::{Instant, timeout};

use super::carry::{Record, outcome};
use super::connect::{OPENED_STATUS, raw_plan};
use super::gateway::{Front, Reached};
use super::{serve_http1, serve_http2};
use crate::exchange::sniff::{Spoken, spoken};
use crate::http1::Reader;
use crate::pipe::{Duplex, Idle, Sink, Source, relay};
use crate::refusal::Refusal;
use crate::telemetry::Outcome;
use crate::tunnel::client::Tunnel;

/// A client that says nothing for this long may be waiting for the actor to speak first.
const SILENCE: Duration = Duration::from_millis(300);
/// First bytes that could still be HTTP must show it within this.
const UNCLEAR: Duration = Duration::from_secs(2);

/// Serves the inside of one CONNECT.
pub(super) async fn serve<S: Source + Unpin, K: Sink + Unpin>(front: Front, mut reader: Reader<S>, sink: K) {
    match timeout(SILENCE, first(&mut reader)).await {
        Ok(Some(spoken)) => speak(front, reader, sink, spoken).await,
        Ok(None) => {}
        Err(_silent) if reader.buffered().is_empty() => listen(front, reader, sink).await,
        Err(_unclear) => match timeout(UNCLEAR, first(&mut reader)).await {
            Ok(None) => {}
            Ok(Some(spoken)) => speak(front, reader, sink, spoken).await,
            Err(_) => speak(front, reader, sink, Spoken::Other).await,
        },
    }
}

/// What the client speaks; none when it ended without a word.
async fn first<S: Source>(reader: &mut Reader<S>) -> Option<Spoken> {
    loop {
        match spoken(reader.buffered()) {
            Spoken::Unclear => {}
            clear => return Some(clear),
        }
        if !poll_fn(|cx| reader.poll_fill(cx)).await.ok()? {
            return (!reader.buffered().is_empty()).then_some(Spoken::Other);
        }
    }
}

async fn speak<S: Source + Unpin, K: Sink + Unpin>(front: Front, reader: Reader<S>, sink: K, spoken: Spoken) {
    match spoken {
        Spoken::Http1 => serve_http1::serve(front, reader, sink).await,
        Spoken::Http2 => {
            let (source, chunk) = reader.into_parts();
            serve_http2::serve(front, Duplex::with_chunk(source, sink, chunk)).await;
        }
        Spoken::Other | Spoken::Unclear => raw(&front, reader, sink).await,
    }
}

/// The client waits. The actor's port is opened; whoever speaks first decides. A client that
/// turns out to speak HTTP is carried request by request after all.
async fn listen<S: Source + Unpin, K: Sink + Unpin>(front: Front, mut reader: Reader<S>, sink: K) {
    let mut record = Record::new(&front, &Method::CONNECT, None);
    let mut tunnel = tokio::select! {
        biased;
        said = first(&mut reader) => return follow(front, reader, sink, said).await,
        tunnel = open(&front, &mut record) => match tunnel {
            Ok(tunnel) => tunnel,
            Err(refusal) => return refused(&front, sink, record, refusal),
        },
    };
    let from_actor = tokio::select! {
        biased;
        said = first(&mut reader) => match said {
            Some(Spoken::Other | Spoken::Unclear) => Bytes::new(),
            other => return follow(front, reader, sink, other).await,
        },
        chunk = poll_fn(|cx| tunnel.source.poll_chunk(cx)) => match chunk {
            Ok(chunk) => chunk,
            Err(_) => return refused(&front, sink, record, Refusal::ActorConnectFailed),
        },
    };
    carry(&front, (reader, sink), (tunnel, from_actor), record).await;
}

async fn follow<S: Source + Unpin, K: Sink + Unpin>(front: Front, reader: Reader<S>, sink: K, said: Option<Spoken>) {
    if let Some(spoken) = said {
        speak(front, reader, sink, spoken).await;
    }
}

/// Half-closing after the first words is this client's right, so its end of stream is no reason to stop.
async fn raw<S: Source, K: Sink>(front: &Front, reader: Reader<S>, sink: K) {
    let mut record = Record::new(front, &Method::CONNECT, None);
    match open(front, &mut record).await {
        Ok(tunnel) => carry(front, (reader, sink), (tunnel, Bytes::new()), record).await,
        Err(refusal) => refused(front, sink, record, refusal),
    }
}

async fn open(front: &Front, record: &mut Record) -> Result<Tunnel, Refusal> {
    let plan = raw_plan(&front.scope).ok_or(Refusal::Internal)?;
    record.actor = Some(plan.actor.clone());
    let reached = front.gateway.reach_tunnel(&plan, &mut record.resolved).await;
    record.routed.get_or_insert_with(Instant::now);
    let Reached { to, .. } = reached?;
    Ok(to)
}

/// There is no status to give any more: the stream breaks.
fn refused<K: Sink>(front: &Front, mut sink: K, record: Record, refusal: Refusal) {
    sink.reset();
    record.close(front, Outcome::Refused(refusal));
}

async fn carry<S: Source, K: Sink>(
    front: &Front,
    (mut reader, mut sink): (Reader<S>, K),
    (tunnel, from_actor): (Tunnel, Bytes),
    mut record: Record,
) {
    let idle = Idle::new(front.gateway.limits.stream_idle);
    let Tunnel { source, sink: mut to_actor, .. } = tunnel;
    let mut actor = Reader::with_chunk(source, from_actor);
    let relayed = relay((&mut reader, &mut sink), (&mut actor, &mut to_actor), &idle).await;
    record.tally.status = Some(OPENED_STATUS);
    record.tally.bytes_in = relayed.bytes_in;
    record.tally.bytes_out = relayed.bytes_out;
    record.close(front, outcome(relayed.ending));
}
