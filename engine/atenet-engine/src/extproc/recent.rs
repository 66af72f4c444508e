//! The last requests, for the status page: no header values, no query strings.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::Serialize;

use super::question::Question;
use crate::timestamp::Rfc3339;

/// Longer texts are cut: what is shown is bounded, however long a client's path is.
const TEXT_LIMIT: usize = 256;

/// One request and what was decided.
#[derive(Clone, Serialize)]
pub struct Entry {
    time: Rfc3339,
    actor: Option<String>,
    method: String,
    host: String,
    path: String,
    /// `ok`, or the reason of the refusal.
    outcome: &'static str,
    worker: Option<std::net::SocketAddr>,
    duration_ms: f64,
}

/// A ring of entries.
pub(super) struct Recent {
    limit: usize,
    entries: Mutex<VecDeque<Entry>>,
}

/// How a request was decided.
pub(super) struct Decision {
    pub(super) actor: Option<String>,
    pub(super) outcome: &'static str,
    pub(super) worker: Option<std::net::SocketAddr>,
    pub(super) took: Duration,
}

impl Recent {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, entries: Mutex::default() }
    }

    pub(super) fn push(&self, question: &Question<'_>, decision: Decision) {
        if self.limit == 0 {
            return;
        }
        let entry = Entry {
            time: Rfc3339(SystemTime::now()),
            actor: decision.actor,
            method: cut(question.method),
            host: cut(question.authority),
            path: cut(question.path),
            outcome: decision.outcome,
            worker: decision.worker,
            duration_ms: decision.took.as_secs_f64() * 1_000.0,
        };
        let mut entries = self.entries.lock();
        if entries.len() == self.limit {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// Newest first.
    pub(super) fn list(&self) -> Vec<Entry> {
        self.entries.lock().iter().rev().cloned().collect()
    }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_kept() {
        let recent = Recent::new(2);
        for path in ["/1", "/2", "/3"] {
            let mut question = Question::default();
            question.path = path;
            recent.push(&question, Decision { actor: None, outcome: "ok", worker: None, took: Duration::ZERO });
        }
        let paths: Vec<String> = recent.list().into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["/3", "/2"]);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut(&"ä".repeat(1_000)).chars().count(), TEXT_LIMIT);
    }
}
