//! Idle connections to actors: last used first, bounded, swept.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{ActorConn, Inner};
use crate::actor_ref::Carried;
use crate::assignment::Assignment;

/// Kept per activation and port, and in all.
const MAX_PER_KEY: usize = 1024;
const MAX_TOTAL: usize = 8192;
const SWEEP: Duration = Duration::from_secs(1);
/// A request that may not be repeated takes only a connection used this recently: an actor that
/// closes idle connections is then not raced.
const FRESH: Duration = Duration::from_secs(1);

/// The whole activation and the port; nothing is ever shared across.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) assignment: Arc<Assignment>,
    pub(super) port: u16,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The actor tells almost all apart; equality looks at the rest.
        self.assignment.actor.hash(state);
        self.port.hash(state);
    }
}

pub(super) struct IdleConns {
    max_age: Duration,
    conns: Mutex<Conns>,
}

#[derive(Default)]
#[expect(clippy::vec_box, reason = "a connection goes from hand to hand in its box")]
struct Conns {
    by_key: HashMap<Key, Vec<Box<ActorConn>>, BuildHasherDefault<Carried>>,
    total: usize,
}

impl IdleConns {
    pub(super) fn new(max_age: Duration) -> Self {
        Self { max_age, conns: Mutex::default() }
    }

    pub(super) fn take(&self, to: &Arc<Assignment>, port: u16, idempotent: bool) -> Option<Box<ActorConn>> {
        let key = Key { assignment: to.clone(), port };
        let max_age = if idempotent { self.max_age } else { self.max_age.min(FRESH) };
        loop {
            let mut conn = {
                let mut conns = self.conns.lock();
                let conn = conns.by_key.get_mut(&key)?.pop()?;
                conns.total -= 1;
                conn
            };
            if conn.idle_since.elapsed() < max_age && conn.is_live() {
                conn.reused = true;
                return Some(conn);
            }
            conn.finish();
        }
    }

    pub(super) fn put(&self, mut conn: Box<ActorConn>) {
        conn.idle_since = Instant::now();
        if let Some(surplus) = self.keep(conn) {
            surplus.finish();
        }
    }

    /// Gives back what there is no room for.
    fn keep(&self, conn: Box<ActorConn>) -> Option<Box<ActorConn>> {
        let key = Key { assignment: conn.assignment.clone(), port: conn.port };
        let mut conns = self.conns.lock();
        if conns.total >= MAX_TOTAL {
            return Some(conn);
        }
        let list = conns.by_key.entry(key).or_default();
        if list.len() >= MAX_PER_KEY {
            return Some(conn);
        }
        list.push(conn);
        conns.total += 1;
        None
    }

    /// Ends what is older than `max_age` or no longer lives.
    pub(super) fn sweep(&self, max_age: Duration) {
        let mut dropped = Vec::new();
        let mut conns = self.conns.lock();
        conns.by_key.retain(|_, list| {
            dropped.extend(list.extract_if(.., |conn| conn.idle_since.elapsed() >= max_age || !conn.is_live()));
            !list.is_empty()
        });
        conns.total -= dropped.len();
        drop(conns);
        dropped.into_iter().for_each(|conn| conn.finish());
    }
}

/// Sweeps until the client is gone.
pub(super) fn spawn_sweeper(client: &Arc<Inner>) {
    let client = Arc::downgrade(client);
    tokio::spawn(async move {
        loop {
            sleep(SWEEP).await;
            let Some(client) = client.upgrade() else { return };
            client.idle.sweep(client.idle.max_age);
            client.shared.sweep(client.shared.max_age);
            client.workers.lock().retain(|_, worker| Arc::strong_count(worker) > 1 || !worker.is_vacant());
        }
    });
}
