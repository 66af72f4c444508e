//! Bytes both ways between two streams, each direction ending on its own.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use super::{Idle, Outbox, Sink, Source};

/// What ended a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Both directions came to their own end.
    Clean,
    ClientBroke,
    ActorBroke,
    /// Nothing moved for too long.
    Idle,
}

/// How a relay ended, and what it carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relayed {
    pub ending: Ending,
    /// From the client, to the client.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// Carries bytes until both directions have ended, or one breaks, or nothing moves for too long.
/// A break on one side becomes a break on the other; a clean end stays a clean end.
pub async fn relay<A: Source, B: Sink, C: Source, D: Sink>(
    client: (&mut A, &mut B),
    actor: (&mut C, &mut D),
    idle: &Idle,
) -> Relayed {
    idle.touch();
    let (bytes_in, bytes_out) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut up = Direction::new(client.0);
    let mut down = Direction::new(actor.0);
    let both = poll_fn(|cx| {
        let by = |from: Ending, to: Ending| move |broken| if broken == Broken::Source { from } else { to };
        let a = up.poll(cx, actor.1, &bytes_in, idle).map_err(by(Ending::ClientBroke, Ending::ActorBroke))?;
        let b = down.poll(cx, client.1, &bytes_out, idle).map_err(by(Ending::ActorBroke, Ending::ClientBroke))?;
        if a.is_ready() && b.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    });
    let ending = tokio::select! {
        biased;
        result = both => result.err().unwrap_or(Ending::Clean),
        () = idle.expired() => Ending::Idle,
    };
    if ending != Ending::Clean {
        client.1.reset();
        actor.1.reset();
    }
    Relayed { ending, bytes_in: bytes_in.load(Ordering::Relaxed), bytes_out: bytes_out.load(Ordering::Relaxed) }
}

/// Which end of a direction broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    Source,
    Sink,
}

struct Direction<'a, S> {
    source: &'a mut S,
    out: Outbox,
    ended: bool,
    finished: bool,
}

impl<'a, S: Source> Direction<'a, S> {
    fn new(source: &'a mut S) -> Self {
        Self { source, out: Outbox::default(), ended: false, finished: false }
    }

    fn poll<K: Sink>(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut K,
        count: &AtomicU64,
        idle: &Idle,
    ) -> Poll<Result<(), Broken>> {
        let unsent = |_| Broken::Sink;
        if self.finished {
            return Poll::Ready(Ok(()));
        }
        loop {
            if !self.out.is_empty() {
                let waiting = self.out.len() as u64;
                let sent = sink.poll_send(cx, &mut self.out);
                let moved = waiting - self.out.len() as u64;
                if moved > 0 {
                    count.fetch_add(moved, Ordering::Relaxed);
                    idle.touch();
                }
                ready!(sent).map_err(unsent)?;
            }
            if self.ended {
                ready!(sink.poll_end(cx)).map_err(unsent)?;
                self.finished = true;
                return Poll::Ready(Ok(()));
            }
            let Poll::Ready(chunk) = self.source.poll_chunk(cx).map_err(|_| Broken::Source)? else {
                // A peer that stopped reading tells us by a reset, also while nothing is sent.
                return sink.poll_broken(cx).map(|()| Err(Broken::Sink));
            };
            self.ended = chunk.is_empty();
            self.out.push(chunk);
        }
    }
}
