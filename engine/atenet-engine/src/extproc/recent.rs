//! The last requests, for the status page: no header values, no query strings.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::Serialize;

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
pub(crate) struct Recent {
    limit: usize,
    entries: Mutex<VecDeque<Entry>>,
}

/// How a request was decided.
pub(crate) struct Decision {
    pub(crate) actor: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) worker: Option<std::net::SocketAddr>,
    pub(crate) took: Duration,
}

impl Recent {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, entries: Mutex::default() }
    }

    /// `asked`: method, host, and path without its query string.
    pub(crate) fn push(&self, (method, host, path): (&str, &str, &str), decision: Decision) {
        if self.limit == 0 {
            return;
        }
        let entry = Entry {
            time: Rfc3339(SystemTime::now()),
            actor: decision.actor,
            method: cut(method),
            host: cut(host),
            path: cut(path),
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
    pub(crate) fn list(&self) -> Vec<Entry> {
        self.entries.lock().iter().rev().cloned().collect()
    }
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_LIMIT {
        return text.to_owned();
    }
    text.chars().take(TEXT_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_kept() {
        let recent = Recent::new(2);
        for path in ["/1", "/2", "/3"] {
            recent.push(
                ("GET", "a.example", path),
                Decision { actor: None, outcome: "ok", worker: None, took: Duration::ZERO },
            );
        }
        let paths: Vec<String> = recent.list().into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["/3", "/2"]);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut(&"ä".repeat(1_000)).chars().count(), TEXT_LIMIT);
    }
}
