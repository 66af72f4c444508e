//! Assignments that are still fresh. A hit is one short lock and one reference count.
//!
//! The time to live counts from the answer and does not slide, so the order of arrival is the order of expiry: the
//! bound in entries is kept by dropping the oldest, which would have expired first anyway.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::actor_ref::{ActorRef, ByActor};
use crate::assignment::Assignment;

const SHARDS: usize = 64;

pub(super) struct Cache {
    ttl: Duration,
    /// Of one shard.
    capacity: usize,
    shards: Box<[Mutex<Shard>]>,
    generations: AtomicU64,
}

#[derive(Default)]
struct Shard {
    entries: ByActor<Entry>,
    /// Arrivals, oldest first; one whose entry was replaced or forgotten is skipped by its generation.
    arrivals: VecDeque<(ActorRef, u64)>,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) assignment: Arc<Assignment>,
    pub(super) generation: u64,
    expires: Instant,
}

impl Cache {
    /// `ttl` zero: nothing is kept.
    pub(super) fn new(ttl: Duration, entries: u64) -> Self {
        let capacity = usize::try_from(entries).unwrap_or(usize::MAX).div_ceil(SHARDS).max(1);
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { ttl, capacity, shards, generations: AtomicU64::new(1) }
    }

    fn shard(&self, actor: &ActorRef) -> &Mutex<Shard> {
        // Bits from the middle: the maps take those from both ends.
        #[allow(clippy::cast_possible_truncation)]
        let at = (actor.hash_code() >> 32) as usize % SHARDS;
        &self.shards[at]
    }

    pub(super) const fn keeps_nothing(&self) -> bool {
        self.ttl.is_zero()
    }

    pub(super) fn get(&self, actor: &ActorRef) -> Option<Entry> {
        if self.ttl.is_zero() {
            return None;
        }
        let shard = self.shard(actor).lock();
        let entry = shard.entries.get(actor)?;
        (entry.expires > Instant::now()).then(|| entry.clone())
    }

    /// Remembers an answer and returns its generation, which no other answer has.
    pub(super) fn put(&self, assignment: Arc<Assignment>) -> u64 {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        if self.ttl.is_zero() {
            return generation;
        }
        let now = Instant::now();
        let actor = assignment.actor.clone();
        let mut shard = self.shard(&actor).lock();
        shard.arrivals.push_back((actor.clone(), generation));
        shard.entries.insert(actor, Entry { assignment, generation, expires: now + self.ttl });
        shard.trim(self.capacity, now);
        generation
    }

    /// Drops the entry if it is still that generation: a newer answer stays.
    pub(super) fn forget(&self, actor: &ActorRef, generation: u64) {
        let mut shard = self.shard(actor).lock();
        if shard.entries.get(actor).is_some_and(|entry| entry.generation == generation) {
            shard.entries.remove(actor);
        }
    }

    /// Drops the entry if it is of that incarnation and of a lower version.
    pub(super) fn end(&self, actor: &ActorRef, uid: &str, version: i64) {
        let mut shard = self.shard(actor).lock();
        let over = |entry: &Entry| *entry.assignment.actor_uid == *uid && entry.assignment.version < version;
        if shard.entries.get(actor).is_some_and(over) {
            shard.entries.remove(actor);
        }
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            *shard.lock() = Shard::default();
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().entries.len()).sum()
    }
}

impl Shard {
    /// Drops what has expired, what was replaced, and the oldest beyond the bound.
    fn trim(&mut self, capacity: usize, now: Instant) {
        while let Some((actor, generation)) = self.arrivals.front() {
            let live = self.entries.get(actor).filter(|entry| entry.generation == *generation);
            // Arrivals have some room of their own: one actor that moves often must not push out the others.
            let fits = self.entries.len() <= capacity && self.arrivals.len() <= 2 * capacity;
            let keep = fits && live.is_some_and(|entry| entry.expires > now);
            if keep {
                return;
            }
            if live.is_some() {
                let actor = actor.clone();
                self.entries.remove(&actor);
            }
            self.arrivals.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(name: &str) -> Arc<Assignment> {
        Arc::new(Assignment {
            actor: ActorRef::new("team", name).unwrap(),
            actor_uid: "u".into(),
            version: 1,
            worker: "127.0.0.1:8443".parse().unwrap(),
            worker_spiffe_id: "spiffe://cluster.local/ns/default/sa/local".into(),
            worker_epoch: 1,
        })
    }

    fn actor(name: &str) -> ActorRef {
        ActorRef::new("team", name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_entry_lives_its_time_and_does_not_slide() {
        let cache = Cache::new(Duration::from_secs(5), 100);
        cache.put(assignment("a"));
        for _ in 0..4 {
            tokio::time::advance(Duration::from_millis(1_200)).await;
            assert!(cache.get(&actor("a")).is_some());
        }
        tokio::time::advance(Duration::from_millis(200)).await;
        assert!(cache.get(&actor("a")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn forgetting_an_older_generation_keeps_the_newer_entry() {
        let cache = Cache::new(Duration::from_secs(5), 100);
        let old = cache.put(assignment("a"));
        let new = cache.put(assignment("a"));
        cache.forget(&actor("a"), old);
        assert_eq!(cache.get(&actor("a")).unwrap().generation, new);
        cache.forget(&actor("a"), new);
        assert!(cache.get(&actor("a")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_ended_assignment_goes_and_a_newer_or_another_incarnations_stays() {
        let cache = Cache::new(Duration::from_secs(5), 100);
        for (uid, version, stays) in [("u", 1, true), ("v", 9, true), ("u", 2, false)] {
            cache.put(assignment("a"));
            cache.end(&actor("a"), uid, version);
            assert_eq!(cache.get(&actor("a")).is_some(), stays, "{uid} {version}");
        }
        cache.put(assignment("a"));
        cache.put(assignment("b"));
        cache.clear();
        assert_eq!(cache.len(), 0);
        cache.put(assignment("a"));
        assert!(cache.get(&actor("a")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_bound_holds_and_the_oldest_go_first() {
        let cache = Cache::new(Duration::from_secs(5), SHARDS as u64 * 4);
        for n in 0..10_000 {
            cache.put(assignment(&format!("a{n}")));
        }
        assert_eq!(cache.len(), SHARDS * 4);
        assert!(cache.get(&actor("a9999")).is_some());
        assert!(cache.get(&actor("a0")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn replacing_one_entry_again_and_again_holds_no_memory() {
        let cache = Cache::new(Duration::from_secs(5), SHARDS as u64 * 8);
        for _ in 0..10_000 {
            cache.put(assignment("a"));
        }
        let shard = cache.shard(&actor("a")).lock();
        assert!(shard.arrivals.len() <= 16, "{}", shard.arrivals.len());
        assert_eq!(shard.entries.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_zero_time_to_live_keeps_nothing() {
        let cache = Cache::new(Duration::ZERO, 100);
        cache.put(assignment("a"));
        assert!(cache.get(&actor("a")).is_none());
        assert_eq!(cache.len(), 0);
    }
}
