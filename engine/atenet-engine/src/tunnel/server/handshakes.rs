//! Connections whose handshake is not done, bounded in number.
//!
//! Anyone who reaches the port can open connections and say nothing. When there are too many, the oldest one gives
//! way: the router finishes its handshake in milliseconds, so it is never the oldest for long.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;

const LIMIT: usize = 512;

#[derive(Default)]
pub(super) struct Handshakes(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next_id: u64,
    /// Dropping the sender displaces the connection.
    by_age: BTreeMap<u64, oneshot::Sender<()>>,
}

impl Handshakes {
    /// Takes a place, displacing the oldest holder if there is none left. Resolves when displaced; the place is
    /// given up when the future is dropped.
    pub(super) async fn displaced(&self) {
        let (place, gone) = self.enter();
        // Nothing is ever sent: the wait ends when the sender is dropped.
        let _displaced = gone.await;
        drop(place);
    }

    fn enter(&self) -> (Place<'_>, oneshot::Receiver<()>) {
        let (sender, gone) = oneshot::channel();
        let mut waiting = self.0.lock();
        let id = waiting.next_id;
        waiting.next_id += 1;
        if waiting.by_age.len() >= LIMIT {
            waiting.by_age.pop_first();
        }
        waiting.by_age.insert(id, sender);
        (Place { all: self, id }, gone)
    }
}

struct Place<'a> {
    all: &'a Handshakes,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.all.0.lock().by_age.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_only_when_full() {
        let handshakes = Handshakes::default();
        let mut all: Vec<_> = (0..LIMIT).map(|_| handshakes.enter()).collect();
        assert!(all.iter_mut().all(|(_, gone)| gone.try_recv() == Err(oneshot::error::TryRecvError::Empty)));
        let _newest = handshakes.enter();
        assert_eq!(all[0].1.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(all[1].1.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[test]
    fn a_place_is_given_up_when_dropped() {
        let handshakes = Handshakes::default();
        drop(handshakes.enter());
        assert!(handshakes.0.lock().by_age.is_empty());
    }
}
