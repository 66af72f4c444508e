//! Counters of the whole listener.

use std::sync::atomic::{AtomicU64, Ordering};

use super::decline::Decline;

#[derive(Default)]
pub(super) struct Totals {
    connections_open: AtomicU64,
    connections: AtomicU64,
    handshakes_failed: AtomicU64,
    tunnels: AtomicU64,
    declined: [AtomicU64; Decline::ALL.len()],
}

/// Counts a connection as open until dropped.
pub(super) struct OpenConnection<'a>(&'a Totals);

impl Totals {
    pub(super) fn connected(&self) -> OpenConnection<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.connections_open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self)
    }

    pub(super) fn handshake_failed(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn opened(&self) {
        self.tunnels.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn declined(&self, decline: Decline) {
        let place = Decline::ALL.iter().position(|other| *other == decline);
        if let Some(counter) = place.and_then(|place| self.declined.get(place)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn connections_open(&self) -> u64 {
        self.connections_open.load(Ordering::Relaxed)
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn handshakes_failed(&self) -> u64 {
        self.handshakes_failed.load(Ordering::Relaxed)
    }

    pub(super) fn tunnels(&self) -> u64 {
        self.tunnels.load(Ordering::Relaxed)
    }

    /// Each reason with its count.
    pub(super) fn all_declined(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Decline::ALL.iter().zip(&self.declined).map(|(decline, count)| (decline.name(), count.load(Ordering::Relaxed)))
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}
