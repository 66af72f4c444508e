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
/// An assignment that failed is tried again only within this: a worker that let seconds pass without a word is
/// not asked a second time.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks for another assignment once the one at hand has had its attempts: a moment for the control plane to see
/// what the worker said.
const LOOKS: u32 = 2;

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
    looks: u32,
    failed: Option<(Arc<Assignment>, Refusal)>,
}

impl Attempts {
    /// Whether to try `assignment` now, or to look once more for another one. `spent`: since the first attempt.
    pub(super) fn admit(&mut self, assignment: &Assignment, spent: Duration) -> Result<(), Next> {
        let Some((failed, refusal)) = &self.failed else { return Ok(()) };
        if **failed != *assignment {
            self.made = 0;
            return Ok(());
        }
        if self.made < ATTEMPTS && spent < PATIENCE {
            return Ok(());
        }
        if self.looks >= LOOKS {
            return Err(Next::GiveUp(*refusal));
        }
        self.looks += 1;
        Err(Next::Again(BACKOFF * 2))
    }

    /// An attempt failed before any byte of the request was sent.
    pub(super) fn failed(&mut self, assignment: &Arc<Assignment>, error: &OpenError) -> Next {
        let refusal = match error {
            // The port was the router's own, checked before: the client has nothing to mend.
            OpenError::BadPort => return Next::GiveUp(Refusal::WorkerUnreachable),
            OpenError::PortRefused => return Next::GiveUp(Refusal::ActorConnectFailed),
            OpenError::Stale => Refusal::StaleAssignment,
            OpenError::Unreachable(_) | OpenError::Rejected(_) => Refusal::WorkerUnreachable,
        };
        self.made += 1;
        self.total += 1;
        self.failed = Some((assignment.clone(), refusal));
        if self.total >= TOTAL { Next::GiveUp(refusal) } else { Next::Again(BACKOFF) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor_ref::ActorRef;

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
    fn a_stale_worker_is_asked_three_times_and_then_only_another_one_is_looked_for() {
        let (mut attempts, one) = (Attempts::default(), assignment(1));
        for _ in 0..3 {
            assert_eq!(attempts.admit(&one, Duration::ZERO), Ok(()));
            assert_eq!(attempts.failed(&one, &OpenError::Stale), Next::Again(BACKOFF));
        }
        let mut waited = BACKOFF * 3;
        while let Err(Next::Again(pause)) = attempts.admit(&one, Duration::ZERO) {
            waited += pause;
        }
        assert!(waited < Duration::from_secs(1), "{waited:?}");
        assert_eq!(attempts.admit(&one, Duration::ZERO), Err(Next::GiveUp(Refusal::StaleAssignment)));
        assert_eq!(attempts.admit(&assignment(2), Duration::ZERO), Ok(()), "a new assignment is tried");
    }

    #[test]
    fn a_worker_that_let_seconds_pass_is_not_asked_again_but_another_one_is() {
        let (mut attempts, one) = (Attempts::default(), assignment(1));
        attempts.failed(&one, &OpenError::Unreachable(String::new()));
        assert!(matches!(attempts.admit(&one, PATIENCE), Err(Next::Again(_))));
        assert_eq!(attempts.admit(&assignment(2), PATIENCE), Ok(()));
    }

    #[test]
    fn a_flapping_actor_does_not_keep_a_request_for_ever() {
        let mut attempts = Attempts::default();
        let ends: Vec<Next> = (0..6).map(|version| attempts.failed(&assignment(version), &OpenError::Stale)).collect();
        assert_eq!(ends.last(), Some(&Next::GiveUp(Refusal::StaleAssignment)));
    }

    #[test]
    fn what_the_worker_refuses_for_good_is_not_repeated() {
        let mut attempts = Attempts::default();
        for (error, refusal) in
            [(OpenError::BadPort, Refusal::WorkerUnreachable), (OpenError::PortRefused, Refusal::ActorConnectFailed)]
        {
            assert_eq!(attempts.failed(&assignment(1), &error), Next::GiveUp(refusal));
        }
    }
}
