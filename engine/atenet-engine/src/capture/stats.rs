//! The numbers of each actor's egress, for people.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use serde::Serialize;

use super::activation::Activation;

/// A snapshot; serialises to JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// Sorted by atespace, name and uid.
    pub actors: Vec<ActorStats>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActorStats {
    pub atespace: String,
    pub name: String,
    pub uid: String,
    pub gateway: Option<String>,
    pub credential: Option<CredentialStats>,
    /// Connections that run now, and since the start.
    pub open: u64,
    pub opened: u64,
    /// Bytes of those that ended.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// By reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Questions by what became of them.
    pub dns: BTreeMap<&'static str, u64>,
    /// Since the policy was confirmed last; none before the first.
    pub policy_age_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CredentialStats {
    /// Seconds since 1970.
    pub not_after: f64,
}

pub(super) fn collect<'a>(activations: impl Iterator<Item = &'a Arc<Activation>>) -> Stats {
    let mut actors: Vec<ActorStats> = activations.map(|activation| actor(activation)).collect();
    actors.sort_by(|a, b| (&a.atespace, &a.name, &a.uid).cmp(&(&b.atespace, &b.name, &b.uid)));
    Stats { actors }
}

fn actor(activation: &Activation) -> ActorStats {
    let counts = &activation.counts;
    let credential = activation.credential.load_full().map(|credential| {
        let since = credential.not_after.duration_since(UNIX_EPOCH).unwrap_or_default();
        CredentialStats { not_after: since.as_secs_f64() }
    });
    ActorStats {
        atespace: activation.actor.atespace().to_owned(),
        name: activation.actor.name().to_owned(),
        uid: activation.uid.to_string(),
        gateway: activation.gateway.as_deref().map(str::to_owned),
        credential,
        open: counts.open.load(Ordering::Relaxed),
        opened: counts.opened.load(Ordering::Relaxed),
        bytes_sent: counts.sent.load(Ordering::Relaxed),
        bytes_received: counts.received.load(Ordering::Relaxed),
        refused: counts.all_refused().filter(|(_, count)| *count > 0).collect(),
        dns: activation.relay.outcomes().filter(|(_, count)| *count > 0).collect(),
        policy_age_ms: activation.relay.policy().age_ms(),
    }
}
