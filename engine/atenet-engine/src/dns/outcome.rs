//! What became of a question, counted for the actor and for the process.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// One for each question, and for what is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With records, or as the upstream answered.
    Answered,
    /// The name is allowed; of this kind it has nothing here.
    Empty,
    /// The policy does not allow the name: NXDOMAIN.
    Denied,
    /// The policy is not known, or nobody confirmed it for too long: SERVFAIL.
    Unknown,
    /// A question that the relay does not answer, whoever asks: NOTIMP, FORMERR, BADVERS, REFUSED.
    Refused,
    /// No question at all: no answer.
    Garbage,
    /// More than the actor may ask: no answer.
    Limited,
    /// No resolver of the node answered: SERVFAIL.
    Failed,
}

impl Outcome {
    pub(super) const ALL: [Self; 8] = [
        Self::Answered,
        Self::Empty,
        Self::Denied,
        Self::Unknown,
        Self::Refused,
        Self::Garbage,
        Self::Limited,
        Self::Failed,
    ];

    /// The label in metrics and statistics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Empty => "empty",
            Self::Denied => "denied",
            Self::Unknown => "policy-unknown",
            Self::Refused => "refused",
            Self::Garbage => "garbage",
            Self::Limited => "limited",
            Self::Failed => "upstream-failed",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts([AtomicU64; Outcome::ALL.len()]);

impl Counts {
    pub(super) fn add(&self, outcome: Outcome) {
        if let Some(count) = self.0.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Outcome::ALL.iter().zip(&self.0).map(|(outcome, count)| (outcome.name(), count.load(Ordering::Relaxed)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// The process's.
#[derive(Debug, Clone)]
pub(crate) struct DnsMetrics(Family<OutcomeLabel, Counter>);

impl DnsMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let queries = Family::default();
        registry.register("dns_queries", "Questions of actors, by what became of them", queries.clone());
        Self(queries)
    }

    pub(super) fn add(&self, outcome: Outcome) {
        self.0.get_or_create(&OutcomeLabel { outcome: outcome.name() }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_counts_for_itself() {
        let counts = Counts::default();
        for outcome in Outcome::ALL {
            counts.add(outcome);
        }
        assert!(counts.all().all(|(_, count)| count == 1));
    }
}
