//! The numbers of a tunnel server, for people and for the decision to suspend an idle actor.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Shared;

/// A snapshot; serialises to JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    pub connections: ConnectionStats,
    pub tunnels: TunnelStats,
    /// Sorted by atespace, name and uid. Includes activations that are still ending.
    pub actors: Vec<ActorStats>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionStats {
    /// From the accepted TCP connection on, handshakes included.
    pub open: u64,
    pub total: u64,
    pub handshakes_failed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TunnelStats {
    /// Admitted, dialling ones included.
    pub open: usize,
    /// Opened since the start.
    pub total: u64,
    /// Declined since the start, by reason.
    pub declined: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ActorStats {
    pub atespace: String,
    pub name: String,
    pub uid: String,
    /// Ingress is open: false while running tunnels have their grace.
    pub open: bool,
    pub tunnels: usize,
    /// Tunnels with a request in flight, or with something that cannot be followed.
    pub in_flight: usize,
    pub tunnels_total: u64,
    pub bytes_to_actor: u64,
    pub bytes_from_actor: u64,
    pub active_ms: u64,
    /// Since the last request ended or the last tunnel opened; 0 while one is in flight.
    pub idle_ms: u64,
}

pub(super) fn collect(shared: &Shared) -> Stats {
    let mut actors: Vec<ActorStats> = shared.table.all().iter().map(|activation| actor(activation)).collect();
    actors.sort();
    let totals = &shared.totals;
    Stats {
        connections: ConnectionStats {
            open: totals.connections_open(),
            total: totals.connections(),
            handshakes_failed: totals.handshakes_failed(),
        },
        tunnels: TunnelStats {
            open: actors.iter().map(|actor| actor.tunnels).sum(),
            total: totals.tunnels(),
            declined: totals.all_declined().collect(),
        },
        actors,
    }
}

fn actor(activation: &super::activation::Activation) -> ActorStats {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let now = activation.snapshot();
    let target = &activation.target;
    ActorStats {
        atespace: target.actor.atespace().to_owned(),
        name: target.actor.name().to_owned(),
        uid: target.uid.to_string(),
        open: activation.phase() == super::activation::Phase::Open,
        tunnels: now.tunnels,
        in_flight: now.in_flight,
        tunnels_total: now.opened,
        bytes_to_actor: now.to_actor,
        bytes_from_actor: now.from_actor,
        active_ms: millis(activation.age()),
        idle_ms: millis(now.idle),
    }
}
