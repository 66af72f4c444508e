//! HTTP/2 connections to actors that are open now: one per activation and port is offered to new requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::ActorH2;
use super::idle::Key;
use crate::assignment::Assignment;

pub(super) struct SharedConns {
    pub(super) max_age: Duration,
    by_key: Mutex<HashMap<Key, Entry>>,
}

struct Entry {
    conn: ActorH2,
    used: Instant,
}

impl SharedConns {
    pub(super) fn new(max_age: Duration) -> Self {
        Self { max_age, by_key: Mutex::default() }
    }

    pub(super) fn get(&self, to: &Arc<Assignment>, port: u16) -> Option<ActorH2> {
        let key = Key { assignment: to.clone(), port };
        let mut conns = self.by_key.lock();
        let entry = conns.get_mut(&key)?;
        if entry.conn.is_live() {
            entry.used = Instant::now();
            return Some(entry.conn.clone());
        }
        conns.remove(&key);
        None
    }

    /// The latest one is offered; an earlier one ends with its streams.
    pub(super) fn offer(&self, conn: ActorH2) {
        let key = Key { assignment: conn.assignment.clone(), port: conn.port };
        self.by_key.lock().insert(key, Entry { conn, used: Instant::now() });
    }

    /// Lets go of what was not used for `max_age` or no longer lives.
    pub(super) fn sweep(&self, max_age: Duration) {
        self.by_key.lock().retain(|_, entry| {
            if entry.conn.is_used() {
                entry.used = Instant::now();
            }
            entry.conn.is_live() && entry.used.elapsed() < max_age
        });
    }
}
