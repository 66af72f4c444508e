//! Which actors are served here. Ingress is open for exactly what stands in this table.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::time::timeout;

use super::activation::{Activation, Phase, Target, Tunnel};
use crate::actor_ref::{ActorRef, ByActor};

#[derive(Default)]
pub(super) struct Table(RwLock<Entries>);

#[derive(Default)]
struct Entries {
    active: ByActor<Arc<Activation>>,
    /// Deactivated or replaced ones whose tunnels may not all have ended yet.
    ending: Vec<Arc<Activation>>,
}

impl Table {
    /// Opens ingress for one incarnation. The same uid again changes nothing; another uid takes the name over and the
    /// older incarnation's tunnels are reset.
    pub(super) fn activate(&self, target: Target) {
        let mut entries = self.0.write();
        if entries.active.get(&target.actor).is_some_and(|older| older.target.uid == target.uid) {
            return;
        }
        entries.ending.retain(|older| !older.is_empty());
        let actor = target.actor.clone();
        if let Some(older) = entries.active.insert(actor, Arc::new(Activation::new(target))) {
            older.advance(Phase::Cut);
            entries.ending.push(older);
        }
    }

    /// A place in the actor's activation, if it is active here.
    pub(super) fn admit(&self, actor: &ActorRef) -> Option<Tunnel> {
        // `enter` happens under the lock: whoever removed the entry sees every tunnel that got in.
        self.0.read().active.get(actor).map(Activation::enter)
    }

    /// Closes ingress for one incarnation and returns when its last tunnel is gone. False when this uid was not
    /// active; if an earlier call is still ending it, this one waits too.
    pub(super) async fn deactivate(&self, actor: &ActorRef, uid: &str, grace: Duration) -> bool {
        let (was_active, ending) = self.remove(actor, uid);
        let Some(activation) = ending else { return false };
        activation.advance(Phase::Ending);
        if timeout(grace, activation.empty()).await.is_err() {
            activation.advance(Phase::Cut);
            activation.empty().await;
        }
        self.0.write().ending.retain(|other| !Arc::ptr_eq(other, &activation));
        was_active
    }

    /// Closes ingress for one incarnation if it has been idle for so long, in one step with finding that out. What is
    /// left of its tunnels is for [`Self::deactivate`] to end.
    pub(super) fn close_if_idle(&self, actor: &ActorRef, uid: &str, idle: Duration) -> bool {
        let mut entries = self.0.write();
        let quiet = |activation: &Arc<Activation>| *activation.target.uid == *uid && activation.is_quiet_for(idle);
        if !entries.active.get(actor).is_some_and(quiet) {
            return false;
        }
        let removed = entries.active.remove(actor);
        if let Some(activation) = &removed {
            activation.advance(Phase::Closing);
        }
        entries.ending.extend(removed);
        true
    }

    fn remove(&self, actor: &ActorRef, uid: &str) -> (bool, Option<Arc<Activation>>) {
        let mut entries = self.0.write();
        let this = |activation: &Arc<Activation>| *activation.target.uid == *uid;
        if !entries.active.get(actor).is_some_and(this) {
            let ending = entries.ending.iter().find(|a| a.target.actor == *actor && this(a)).cloned();
            return (false, ending);
        }
        let removed = entries.active.remove(actor);
        entries.ending.extend(removed.clone());
        (true, removed)
    }

    /// Ends everything at once: nothing new, all tunnels reset.
    pub(super) fn cut_all(&self) {
        let mut entries = self.0.write();
        let active: Vec<_> = entries.active.drain().map(|(_, activation)| activation).collect();
        entries.ending.extend(active);
        for activation in &entries.ending {
            activation.advance(Phase::Cut);
        }
    }

    /// All activations with a tunnel or a place in the table.
    pub(super) fn all(&self) -> Vec<Arc<Activation>> {
        let entries = self.0.read();
        entries.active.values().chain(&entries.ending).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
