//! When an attempt to reach an actor is repeated. Pure: the clock is the caller's.

use std::sync::Arc;
use std::time::Duration;

use crate::assignment::Assignment;
use crate::refusal::Refusal;
use crate::tunnel::client::OpenError;

/// CONNECTs tried at one assignment, and for one request in all.
const ATTEMPTS: u32 = 3;
const TOTAL: u32 = 6;
const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Forget the assignment, wait this long, resolve again.
    Again(Duration),
    GiveUp(Refusal),
}

/// One request's attempts.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// At the assignment that failed last.
    made: u32,
    total: u32,
    waits: u32,
    failed: Option<(Arc<Assignment>, Refusal)>,
}

impl Attempts {
    /// Whether to try `assignment` now, or to go on waiting for another one: the control plane may
    /// need a moment to see what the worker said, and a worker asked three times has answered.
    /// `spent`: since the first failure.
    pub(super) fn admit(&mut self, assignment: &Assignment, spent: Duration, budget: Duration) -> Result<(), Next> {
        let Some((failed, refusal)) = &self.failed else { return Ok(()) };
        if **failed != *assignment {
            self.made = 0;
        } else if self.made >= ATTEMPTS {
            if spent >= budget {
                return Err(Next::GiveUp(*refusal));
            }
            self.waits += 1;
            return Err(Next::Again((BACKOFF * self.waits).min(BACKOFF_MAX)));
        }
        Ok(())
    }

    /// An attempt failed before any byte of the request was sent.
    pub(super) fn failed(
        &mut self,
        assignment: &Arc<Assignment>,
        error: &OpenError,
        spent: Duration,
        budget: Duration,
    ) -> Next {
        let refusal = match error {
            OpenError::BadPort => return Next::GiveUp(Refusal::BadConnectPort),
            OpenError::PortRefused => return Next::GiveUp(Refusal::ActorConnectFailed),
            OpenError::Stale => Refusal::StaleAssignment,
            OpenError::Unreachable(_) | OpenError::Rejected(_) => Refusal::WorkerUnreachable,
        };
        self.made += 1;
        self.total += 1;
        self.failed = Some((assignment.clone(), refusal));
        if self.total >= TOTAL || spent >= budget { Next::GiveUp(refusal) } else { Next::Again(BACKOFF) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor_ref::ActorRef;

    const BUDGET: Duration = Duration::from_secs(5);

    fn assignment(version: i64) -> Arc<Assignment> {
        Arc::new(Assignment {
            actor: ActorRef::parse(b"a/b").unwrap(),
            actor_uid: "uid".into(),
            version,
            worker: ([127, 0, 0, 1], 8443).into(),
            worker_spiffe_id: "spiffe://cluster.local/ns/default/sa/pool".into(),
            worker_epoch: 1,
        })
    }

    #[test]
    fn a_stale_worker_is_asked_three_times_and_then_waited_out() {
        let (mut attempts, one) = (Attempts::default(), assignment(1));
        for _ in 0..3 {
            assert_eq!(attempts.admit(&one, Duration::ZERO, BUDGET), Ok(()));
            assert_eq!(attempts.failed(&one, &OpenError::Stale, Duration::ZERO, BUDGET), Next::Again(BACKOFF));
        }
        assert_eq!(attempts.admit(&one, Duration::ZERO, BUDGET), Err(Next::Again(BACKOFF)));
        assert_eq!(attempts.admit(&one, Duration::ZERO, BUDGET), Err(Next::Again(BACKOFF * 2)));
        assert_eq!(attempts.admit(&one, BUDGET, BUDGET), Err(Next::GiveUp(Refusal::StaleAssignment)));
        assert_eq!(attempts.admit(&assignment(2), BUDGET, BUDGET), Ok(()), "a new assignment is tried");
    }

    #[test]
    fn a_flapping_actor_does_not_keep_a_request_for_ever() {
        let mut attempts = Attempts::default();
        let ends: Vec<Next> = (0..6)
            .map(|version| attempts.failed(&assignment(version), &OpenError::Stale, Duration::ZERO, BUDGET))
            .collect();
        assert_eq!(ends.last(), Some(&Next::GiveUp(Refusal::StaleAssignment)));
    }

    #[test]
    fn what_the_worker_refuses_for_good_is_not_repeated() {
        let mut attempts = Attempts::default();
        for (error, refusal) in
            [(OpenError::BadPort, Refusal::BadConnectPort), (OpenError::PortRefused, Refusal::ActorConnectFailed)]
        {
            assert_eq!(attempts.failed(&assignment(1), &error, Duration::ZERO, BUDGET), Next::GiveUp(refusal));
        }
    }
}
