//! Requests that wait: how long, how often is asked again, and how many may.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::answer::Verdict;
use crate::config::{ParkingConfig, millis};
use crate::refusal::Refusal;
use crate::telemetry::{Open, Telemetry};

/// A pause is stretched by up to this share, so that many flights do not ask in step.
const JITTER: f64 = 0.1;

/// The budget and backoff of one flight. Pure: it is told the time.
pub(super) struct Patience {
    ends: Instant,
    pause: Duration,
    factor: f64,
    parking: bool,
}

/// What a flight does after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Refuse(Refusal),
    /// Ask again at `at`, or refuse then if that is when the budget ends.
    Wait {
        at: Instant,
        or: Refusal,
        parked: bool,
    },
}

impl Patience {
    pub(super) fn new(config: &ParkingConfig, started: Instant) -> Self {
        Self {
            ends: started + millis(config.budget_ms),
            pause: millis(config.retry_interval_ms),
            factor: config.retry_factor,
            parking: config.max > 0,
        }
    }

    /// `jitter`: uniform in 0..1.
    pub(super) fn after(&mut self, verdict: Verdict, now: Instant, jitter: f64) -> Next {
        let next = self.before(verdict, now, now + self.pause.mul_f64(1.0 + JITTER * jitter));
        if matches!(next, Next::Wait { .. }) {
            self.pause = self.pause.mul_f64(self.factor);
        }
        next
    }

    /// The same after an attempt that news brought forward: it takes no turn, the next one is still due at `at`.
    pub(super) fn before(&self, verdict: Verdict, now: Instant, at: Instant) -> Next {
        let refusal = match verdict {
            Verdict::Final(refusal) => return Next::Refuse(refusal),
            Verdict::Retryable(refusal) if !self.parking => return Next::Refuse(refusal),
            Verdict::Retryable(refusal) | Verdict::Contended(refusal) => refusal,
        };
        if self.spent(now) {
            return Next::Refuse(refusal);
        }
        Next::Wait { at: self.ends.min(at), or: refusal, parked: self.parking }
    }

    /// No attempt starts from here on.
    pub(super) fn spent(&self, now: Instant) -> bool {
        now >= self.ends
    }
}

/// The process's one parking lot. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lot(Arc<Places>);

struct Places {
    max: usize,
    taken: AtomicUsize,
    telemetry: Telemetry,
}

impl Lot {
    pub(super) fn new(max: usize, telemetry: Telemetry) -> Self {
        Self(Arc::new(Places { max, taken: AtomicUsize::new(0), telemetry }))
    }

    /// A place until the returned value drops; `None`: the lot is full.
    pub(super) fn park(&self) -> Option<Parked> {
        let places = &self.0;
        let free = |taken: usize| (taken < places.max).then_some(taken + 1);
        if places.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).is_err() {
            places.telemetry.shed();
            return None;
        }
        let counted = places.telemetry.parked();
        Some(Parked { places: places.clone(), since: Instant::now(), outcome: "canceled", _counted: counted })
    }

    pub(super) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Acquire)
    }
}

/// One waiting request.
pub(super) struct Parked {
    places: Arc<Places>,
    since: Instant,
    /// How the wait ended: `canceled` unless [`Parked::leave`] says otherwise.
    outcome: &'static str,
    _counted: Open,
}

impl Parked {
    /// Leaves with the flight's result.
    pub(super) fn leave<T>(mut self, result: &Result<T, Refusal>) {
        self.outcome = match result {
            Ok(_) => "served",
            Err(Refusal::DeadlineExceeded) => "timeout",
            Err(Refusal::NoCapacity | Refusal::ActorUnavailable | Refusal::ControlPlaneUnavailable) => {
                "budget_exhausted"
            }
            Err(_) => "error",
        };
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.places.taken.fetch_sub(1, Ordering::AcqRel);
        self.places.telemetry.waited(self.outcome, self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Verdict = Verdict::Retryable(Refusal::NoCapacity);

    fn patience(max: usize) -> (Patience, Instant) {
        let started = Instant::now();
        (Patience::new(&ParkingConfig { max, ..ParkingConfig::default() }, started), started)
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_by_the_factor_until_the_budget_ends_sharp() {
        let (mut patience, started) = patience(1);
        let (mut now, mut pauses) = (started, Vec::new());
        while let Next::Wait { at, .. } = patience.after(BUSY, now, 0.0) {
            pauses.push((at - now).as_millis());
            now = at;
        }
        assert_eq!(&pauses[..4], [100, 110, 121, 133]);
        assert_eq!(now - started, Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_stretches_a_pause_by_a_tenth_at_most() {
        let (mut patience, started) = patience(1);
        let Next::Wait { at, .. } = patience.after(BUSY, started, 1.0) else { panic!() };
        assert_eq!(at - started, Duration::from_millis(110));
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_budget_the_last_answer_is_the_refusal() {
        let (mut patience, started) = patience(1);
        let late = started + Duration::from_millis(5_001);
        assert_eq!(patience.after(BUSY, late, 0.0), Next::Refuse(Refusal::NoCapacity));
        let state = Verdict::Contended(Refusal::ActorUnavailable);
        assert_eq!(patience.after(state, late, 0.0), Next::Refuse(Refusal::ActorUnavailable));
    }

    #[tokio::test(start_paused = true)]
    async fn without_parking_only_contention_is_retried() {
        let (mut patience, started) = patience(0);
        assert_eq!(patience.after(BUSY, started, 0.0), Next::Refuse(Refusal::NoCapacity));
        let contended = patience.after(Verdict::Contended(Refusal::ActorUnavailable), started, 0.0);
        assert!(matches!(contended, Next::Wait { parked: false, .. }), "{contended:?}");
    }

    #[test]
    fn a_full_lot_has_no_place_until_one_leaves() {
        let lot = Lot::new(2, Telemetry::default());
        let (first, _second) = (lot.park().unwrap(), lot.park().unwrap());
        assert!(lot.park().is_none());
        drop(first);
        assert!(lot.park().is_some());
        assert_eq!(lot.taken(), 1);
    }
}
