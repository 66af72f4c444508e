//! Bytes both ways between two streams, each direction ending on its own.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use super::{Idle, Outbox, Sink, Source};

/// How a relay ended, and what it carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relayed {
    pub clean: bool,
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
        let a = up.poll(cx, actor.1, &bytes_in, idle)?;
        let b = down.poll(cx, client.1, &bytes_out, idle)?;
        if a.is_ready() && b.is_ready() { Poll::Ready(io::Result::Ok(())) } else { Poll::Pending }
    });
    let clean = tokio::select! {
        biased;
        result = both => result.is_ok(),
        () = idle.expired() => false,
    };
    if !clean {
        client.1.reset();
        actor.1.reset();
    }
    Relayed { clean, bytes_in: bytes_in.load(Ordering::Relaxed), bytes_out: bytes_out.load(Ordering::Relaxed) }
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
    ) -> Poll<io::Result<()>> {
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
                ready!(sent)?;
            }
            if self.ended {
                ready!(sink.poll_end(cx))?;
                self.finished = true;
                return Poll::Ready(Ok(()));
            }
            let Poll::Ready(chunk) = self.source.poll_chunk(cx)? else {
                // A peer that stopped reading tells us by a reset, also while nothing is sent.
                return match sink.poll_broken(cx) {
                    Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                    Poll::Pending => Poll::Pending,
                };
            };
            self.ended = chunk.is_empty();
            self.out.push(chunk);
        }
    }
}
