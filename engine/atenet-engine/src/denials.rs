//! What was lately denied to each actor, for people who ask why: bounded, and gone with the process.
//!
//! Whoever decides tells it: the gateway of its own dataplane, the answers to Envoy, a relay of names.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use moka::sync::Cache;
use parking_lot::Mutex;
use serde::Serialize;

use crate::actor_ref::ActorRef;
use crate::policy::Layer;
use crate::timestamp::Rfc3339;

/// Actors that are remembered; the ones that were denied nothing for longest are forgotten first.
const ACTORS: u64 = 2_000;
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Different denials of one actor; the same one again only counts.
const ENTRIES: usize = 64;

/// One denial, as whoever decided knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Cleartext HTTP, or TLS; none: it did not come to that.
    pub layer: Option<Layer>,
    /// In its one spelling.
    pub host: Option<String>,
    /// The one that was dialled; none: it did not come to that.
    pub port: Option<u16>,
    /// The rule's place in the policy, where one covered the host.
    pub rule: Option<usize>,
    /// The `ate-reason` token.
    pub reason: &'static str,
    /// The same in words.
    pub detail: &'static str,
}

/// The same thing denied so many times.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    first: Rfc3339,
    last: Rfc3339,
    times: u64,
    #[serde(rename = "kind")]
    layer: Option<&'static str>,
    host: Option<String>,
    port: Option<u16>,
    rule: Option<usize>,
    reason: &'static str,
    detail: &'static str,
}

#[derive(Default)]
struct Ring {
    /// Of the incarnation that is remembered; empty: nobody said.
    uid: String,
    /// Newest first.
    entries: VecDeque<(Denied, Entry)>,
}

/// Recent denials by actor. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Denials(Cache<ActorRef, Arc<Mutex<Ring>>>);

impl Default for Denials {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(ACTORS).time_to_idle(KEPT).build())
    }
}

impl Denials {
    /// `uid`: the actor's; another one than before: the earlier incarnation's are forgotten. None: it is not known.
    pub fn note(&self, actor: &ActorRef, uid: Option<&str>, denied: Denied) {
        let ring = self.0.get_with_by_ref(actor, Arc::default);
        ring.lock().push(uid, denied, Rfc3339(SystemTime::now()));
    }

    /// Newest first.
    #[must_use]
    pub fn of(&self, actor: &ActorRef) -> Vec<Entry> {
        let ring = self.0.get(actor);
        ring.map_or_else(Vec::new, |ring| ring.lock().entries.iter().map(|(_, entry)| entry.clone()).collect())
    }
}

impl Ring {
    fn push(&mut self, uid: Option<&str>, denied: Denied, now: Rfc3339) {
        if let Some(uid) = uid.filter(|uid| *uid != self.uid) {
            if !self.uid.is_empty() {
                self.entries.clear();
            }
            uid.clone_into(&mut self.uid);
        }
        let known = self.entries.iter().position(|(same, _)| *same == denied);
        let mut entry = match known.and_then(|at| self.entries.remove(at)) {
            Some((_, entry)) => entry,
            None => Entry::new(&denied, now),
        };
        (entry.last, entry.times) = (now, entry.times + 1);
        self.entries.truncate(ENTRIES - 1);
        self.entries.push_front((denied, entry));
    }
}

impl Entry {
    fn new(denied: &Denied, now: Rfc3339) -> Self {
        Self {
            first: now,
            last: now,
            times: 0,
            layer: denied.layer.map(Layer::as_str),
            host: denied.host.clone(),
            port: denied.port,
            rule: denied.rule,
            reason: denied.reason,
            detail: denied.detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(name: &str) -> ActorRef {
        ActorRef::new("team", name).unwrap()
    }

    fn denied(host: &str) -> Denied {
        let (reason, detail) = ("no-egress-rule", "no egress rule covers this host");
        Denied { layer: Some(Layer::Tls), host: Some(host.into()), port: Some(443), rule: None, reason, detail }
    }

    fn hosts(denials: &Denials, name: &str) -> Vec<(String, u64)> {
        let entries = denials.of(&actor(name)).into_iter();
        entries.map(|entry| (entry.host.unwrap_or_default(), entry.times)).collect()
    }

    #[test]
    fn the_newest_come_first_and_the_same_again_only_counts() {
        let denials = Denials::default();
        for host in ["a.example", "b.example", "a.example"] {
            denials.note(&actor("a"), Some("u"), denied(host));
        }
        assert_eq!(hosts(&denials, "a"), [("a.example".into(), 2), ("b.example".into(), 1)]);
        assert_eq!(hosts(&denials, "b"), []);
    }

    #[test]
    fn they_are_bounded() {
        let denials = Denials::default();
        for number in 0..1_000 {
            denials.note(&actor("a"), Some("u"), denied(&format!("host-{number}.example")));
        }
        let kept = hosts(&denials, "a");
        assert_eq!((kept.len(), kept[0].0.as_str()), (ENTRIES, "host-999.example"));
    }

    #[test]
    fn an_actor_that_is_made_again_begins_anew() {
        let denials = Denials::default();
        denials.note(&actor("a"), Some("u"), denied("a.example"));
        denials.note(&actor("a"), None, denied("b.example"));
        assert_eq!(hosts(&denials, "a").len(), 2);
        denials.note(&actor("a"), Some("v"), denied("c.example"));
        assert_eq!(hosts(&denials, "a"), [("c.example".into(), 1)]);
    }

    #[test]
    fn an_entry_reads_as_json() {
        let denials = Denials::default();
        denials.note(&actor("a"), Some("u"), denied("a.example"));
        let entry = serde_json::to_value(&denials.of(&actor("a"))[0]).unwrap();
        assert_eq!((&entry["kind"], &entry["port"], &entry["rule"]), (&"tls".into(), &443.into(), &().into()));
        assert_eq!((&entry["reason"], &entry["times"]), (&"no-egress-rule".into(), &1.into()));
    }
}
