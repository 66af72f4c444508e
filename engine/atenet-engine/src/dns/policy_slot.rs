//! The policy that a relay answers by, and whether it is still what there is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use crate::policy::{Host, Matcher};
use crate::proto::EgressPolicy;

/// What the policy says to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Denied,
    /// No policy was set, or it was not confirmed for too long: the answer is not known.
    Unknown,
}

/// Set and confirmed from outside; asked for each question.
pub(crate) struct PolicySlot {
    matcher: ArcSwapOption<Matcher>,
    max_age: Duration,
    start: Instant,
    /// Milliseconds after `start`, plus one; 0: never.
    confirmed: AtomicU64,
}

impl PolicySlot {
    pub(super) fn new(max_age: Duration) -> Self {
        Self { matcher: ArcSwapOption::empty(), max_age, start: Instant::now(), confirmed: AtomicU64::new(0) }
    }

    /// Replaces and confirms it.
    pub(crate) fn set(&self, policy: &EgressPolicy) {
        self.matcher.store(Some(std::sync::Arc::new(Matcher::new(policy))));
        self.confirm();
    }

    /// It is what there is.
    pub(crate) fn confirm(&self) {
        let passed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.confirmed.store(passed + 1, Ordering::Release);
    }

    /// Since it was confirmed last.
    pub(crate) fn age_ms(&self) -> Option<u64> {
        let confirmed = self.confirmed.load(Ordering::Acquire).checked_sub(1)?;
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(now.saturating_sub(confirmed))
    }

    pub(super) fn verdict(&self, host: &Host) -> Verdict {
        let fresh = self.age_ms().is_some_and(|age| Duration::from_millis(age) <= self.max_age);
        match self.matcher.load().as_deref() {
            Some(matcher) if fresh && matcher.covers(host) => Verdict::Allowed,
            Some(_) if fresh => Verdict::Denied,
            _ => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{EgressRule, HttpRule};

    fn allowing(name: &str) -> EgressPolicy {
        let http = HttpRule { hostnames: vec![name.to_owned()], ..HttpRule::default() };
        EgressPolicy {
            rules: vec![EgressRule { http: Some(http), ..EgressRule::default() }],
            ..EgressPolicy::default()
        }
    }

    #[test]
    fn an_old_policy_neither_allows_nor_denies() {
        let slot = PolicySlot::new(Duration::from_millis(30));
        let host = Host::parse(b"a.example").unwrap();
        slot.confirm();
        assert_eq!(slot.verdict(&host), Verdict::Unknown);
        slot.set(&allowing("a.example"));
        assert_eq!(slot.verdict(&host), Verdict::Allowed);
        assert_eq!(slot.verdict(&Host::parse(b"b.example").unwrap()), Verdict::Denied);
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(slot.verdict(&host), Verdict::Unknown);
        slot.confirm();
        assert_eq!(slot.verdict(&host), Verdict::Allowed);
        slot.set(&EgressPolicy::default());
        assert_eq!(slot.verdict(&host), Verdict::Denied);
    }
}
