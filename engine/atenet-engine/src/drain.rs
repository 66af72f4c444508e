//! Shutdown as a value that is passed down: running, draining, forced; and a count of what is still in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

/// How far the stop has come; it only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    Running,
    /// Accept nothing new, finish what runs, close what is idle.
    Draining,
    /// Reset what is left.
    Forced,
}

struct Shared {
    phase: AtomicU8,
    in_flight: AtomicUsize,
    emptied: Notify,
}

/// The one side that decides; kept by whoever owns the process.
pub struct DrainControl {
    sender: watch::Sender<Phase>,
    shared: Arc<Shared>,
}

/// What everything long-lived holds. Cheap to clone.
#[derive(Clone)]
pub struct Drain {
    receiver: watch::Receiver<Phase>,
    shared: Arc<Shared>,
}

/// Counts as in flight until dropped.
pub struct InFlight(Arc<Shared>);

/// A new pair, in [`Phase::Running`].
#[must_use]
pub fn channel() -> (DrainControl, Drain) {
    let (sender, receiver) = watch::channel(Phase::Running);
    let shared = Arc::new(Shared {
        phase: AtomicU8::new(Phase::Running as u8),
        in_flight: AtomicUsize::new(0),
        emptied: Notify::new(),
    });
    (DrainControl { sender, shared: shared.clone() }, Drain { receiver, shared })
}

impl DrainControl {
    /// Asks everything to finish. Later calls change nothing.
    pub fn begin(&self) {
        self.advance(Phase::Draining);
    }

    /// Asks everything to stop now.
    pub fn force(&self) {
        self.advance(Phase::Forced);
    }

    fn advance(&self, to: Phase) {
        self.shared.phase.fetch_max(to as u8, Ordering::AcqRel);
        self.sender.send_if_modified(|phase| {
            let grows = *phase < to;
            *phase = to.max(*phase);
            grows
        });
    }

    /// Resolves once somebody called [`DrainControl::force`].
    pub async fn forced(&self) {
        // The sender is `self`: it cannot be gone.
        self.sender.subscribe().wait_for(|phase| *phase >= Phase::Forced).await.ok();
    }

    /// How much is still in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.load(Ordering::Acquire)
    }

    /// Resolves when nothing is in flight.
    pub async fn empty(&self) {
        loop {
            let notified = self.shared.emptied.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl Drain {
    /// The phase now; one atomic load, fit for every request.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.shared.phase.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Forced,
        }
    }

    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.phase() >= Phase::Draining
    }

    /// Resolves once draining (or forced). Also when the controlling side is gone: nobody is left to wait for.
    pub async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Resolves once forced, or when the controlling side is gone.
    pub async fn forced(&self) {
        self.reached(Phase::Forced).await;
    }

    async fn reached(&self, at_least: Phase) {
        let mut receiver = self.receiver.clone();
        // An error means that the sender is gone, which counts as reached.
        let _gone = receiver.wait_for(|phase| *phase >= at_least).await;
    }

    /// Counts one connection or request as in flight until the guard drops.
    #[must_use]
    pub fn guard(&self) -> InFlight {
        self.shared.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(self.shared.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn empty_resolves_when_the_last_guard_drops() {
        let (control, drain) = channel();
        let guards = [drain.guard(), drain.clone().guard()];
        control.begin();
        let waiting = tokio::spawn(async move {
            control.empty().await;
            control.in_flight()
        });
        drop(guards);
        assert_eq!(waiting.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn phases_only_grow() {
        let (control, drain) = channel();
        assert_eq!(drain.phase(), Phase::Running);
        control.force();
        control.begin();
        drain.draining().await;
        drain.forced().await;
        assert_eq!(drain.phase(), Phase::Forced);
    }

    #[tokio::test]
    async fn a_lost_control_side_ends_the_wait() {
        let (control, drain) = channel();
        drop(control);
        drain.forced().await;
    }
}
