//! One actor's tunnel: what it is, what it is used for, and whether that still may be (row E-24).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::Code;

use super::Gateway;
use super::denial::Denial;
use super::pool::Pool;
use crate::actor_ref::ActorRef;
use crate::policy::{Host, Layer, RuleKind};

/// What a rule lets through right now.
type Use = (Layer, Host, RuleKind);

pub(super) struct Tunnel {
    pub(super) actor: ActorRef,
    pub(super) uid: Arc<str>,
    /// What the actor dialled. The address picks nothing; the port is the destination's.
    pub(super) dialled: SocketAddr,
    pub(super) pool: Pool,
    uses: Mutex<HashMap<Use, usize>>,
}

/// A use, until dropped.
pub(super) struct InUse {
    tunnel: Arc<Tunnel>,
    what: Use,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut uses = self.tunnel.uses.lock();
        if let Some(count) = uses.get_mut(&self.what) {
            *count -= 1;
            if *count == 0 {
                uses.remove(&self.what);
            }
        }
    }
}

impl Tunnel {
    pub(super) fn new(actor: ActorRef, uid: String, dialled: SocketAddr) -> Self {
        Self { actor, uid: uid.into(), dialled, pool: Pool::default(), uses: Mutex::default() }
    }

    pub(super) const fn port(&self) -> u16 {
        self.dialled.port()
    }

    pub(super) fn uses(self: &Arc<Self>, layer: Layer, host: &Host, kind: RuleKind) -> InUse {
        let what = (layer, host.clone(), kind);
        *self.uses.lock().entry(what.clone()).or_default() += 1;
        InUse { tunnel: self.clone(), what }
    }

    /// What was withdrawn of all that the tunnel is used for. A control plane that does not answer withdraws nothing.
    pub(super) async fn withdrawn(&self, gateway: &Gateway) -> Option<Host> {
        match gateway.control.get_actor(&self.actor).await {
            Ok(actor) if actor.metadata.as_ref().is_some_and(|m| m.uid == *self.uid) => {}
            Ok(_) => return Some(self.dialled.ip().into()),
            Err(status) if status.code() == Code::NotFound => return Some(self.dialled.ip().into()),
            Err(_) => return None,
        }
        let uses: Vec<Use> = self.uses.lock().keys().cloned().collect();
        if uses.is_empty() {
            return None;
        }
        let matcher = gateway.policy(&self.actor).await.ok()?;
        let gone = |(layer, host, kind): &Use| {
            !matcher.decide(*layer, host, self.port()).is_ok_and(|decision| decision.kind == *kind)
        };
        uses.into_iter().find(gone).map(|(_, host, _)| host)
    }

    /// One line for each denial (row E-22).
    pub(super) fn note(&self, denial: Denial, host: Option<&Host>, rule: Option<usize>) {
        tracing::info!(
            actor = %self.actor,
            uid = %self.uid,
            dialled = %self.dialled,
            host = host.map(tracing::field::display),
            port = self.port(),
            rule,
            reason = denial.reason(),
            detail = denial.body(),
            "egress denied"
        );
    }
}
