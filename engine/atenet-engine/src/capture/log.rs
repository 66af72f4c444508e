//! One line for each connection that was opened, that ended, or that came to nothing.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::activation::Activation;
use super::refusal::Refusal;

/// Told of one actor within the window, of what ended and of what was refused: one that dials in a loop must not fill
/// the disk.
const LINES: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// How many lines may still be written, and how many were not.
#[derive(Debug, Default)]
pub(crate) struct Budget(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    since: Option<Instant>,
    said: u32,
    kept: u64,
}

impl Budget {
    /// Whether to say it; and how many were kept to ourselves since the last time.
    pub(crate) fn take(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            (state.since, state.said) = (Some(now), 0);
        }
        if state.said >= LINES {
            state.kept += 1;
            return None;
        }
        state.said += 1;
        Some(std::mem::take(&mut state.kept))
    }
}

pub(super) fn opened(activation: &Activation, destination: SocketAddrV4) {
    tracing::debug!(actor = %activation.actor, uid = %activation.uid, %destination, "egress tunnel opened");
}

pub(super) fn refused(activation: &Activation, destination: Option<SocketAddrV4>, refusal: &Refusal) {
    let Some(unsaid) = activation.refusals_told.take(Instant::now()) else { return };
    tracing::info!(
        actor = %activation.actor,
        uid = %activation.uid,
        destination = destination.map(tracing::field::display),
        reason = refusal.name(),
        detail = %refusal,
        unsaid = (unsaid > 0).then_some(unsaid),
        "egress connection refused"
    );
}

pub(super) fn closed(
    activation: &Activation,
    destination: SocketAddrV4,
    lived: Duration,
    (sent, received): (u64, u64),
    ending: &'static str,
) {
    let Some(unsaid) = activation.endings_told.take(Instant::now()) else { return };
    tracing::info!(
        actor = %activation.actor,
        uid = %activation.uid,
        %destination,
        bytes_sent = sent,
        bytes_received = received,
        duration_ms = u64::try_from(lived.as_millis()).unwrap_or(u64::MAX),
        ending,
        unsaid = (unsaid > 0).then_some(unsaid),
        "egress tunnel closed"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_told_in_bounds_and_counted() {
        let (budget, start) = (Budget::default(), Instant::now());
        let said = (0..250).filter(|_| budget.take(start).is_some()).count();
        assert_eq!(said, 100);
        assert_eq!(budget.take(start + WINDOW), Some(150));
        assert_eq!(budget.take(start + WINDOW), Some(0));
    }
}
