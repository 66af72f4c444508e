//! A limit on silence that costs nothing while things move.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Fires when [`Idle::touch`] was not called for the limit. The timer is armed once and only moved
/// when it fires, so that a touch is one store.
#[derive(Debug)]
pub struct Idle {
    limit: Duration,
    /// Milliseconds after `START`.
    last: AtomicU64,
    sleep: Mutex<Option<Pin<Box<Sleep>>>>,
}

impl Idle {
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        let start = *START;
        let last = AtomicU64::new(millis_since(start));
        Self { limit, last, sleep: Mutex::new(None) }
    }

    /// Something moved.
    pub fn touch(&self) {
        self.last.store(millis_since(*START), Ordering::Relaxed);
    }

    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.sleep.lock();
        let sleep = slot.get_or_insert_with(|| Box::pin(sleep_until(self.due())));
        loop {
            ready!(sleep.as_mut().poll(cx));
            let due = self.due();
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }

    /// Resolves after a silence of the limit.
    pub async fn expired(&self) {
        poll_fn(|cx| self.poll_expired(cx)).await;
    }

    fn due(&self) -> Instant {
        *START + Duration::from_millis(self.last.load(Ordering::Relaxed)) + self.limit
    }
}

fn millis_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_fires_after_silence_and_not_before() {
        let idle = Idle::new(Duration::from_secs(5));
        for _ in 0..10 {
            assert!(tokio::time::timeout(Duration::from_secs(4), idle.expired()).await.is_err());
            idle.touch();
        }
        let start = Instant::now();
        idle.expired().await;
        assert!(start.elapsed() >= Duration::from_secs(4) && start.elapsed() <= Duration::from_secs(6));
    }
}
