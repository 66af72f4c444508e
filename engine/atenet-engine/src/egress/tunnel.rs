//! One actor's tunnel: what it is, what it is used for, and whether that still may be (row E-24).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::Code;

use super::Gateway;
use super::Refused;
use super::denial::Denial;
use super::origin::Target;
use super::pool::Pool;
use crate::actor_ref::ActorRef;
use crate::control::Control;
use crate::policy::{Host, Layer, RuleKind};
use crate::proto::{Actor, ActorState, ActorStatus};

/// What is remembered of a tunnel whose bytes another program carries; more it may not be used for.
const USES: usize = 256;

/// What a rule lets through right now.
type Use = (Layer, Host, RuleKind);

pub(super) struct Tunnel {
    pub(super) actor: ActorRef,
    pub(super) uid: Arc<str>,
    /// What the actor dialled. The address picks nothing; the port is the destination's.
    pub(super) dialled: SocketAddr,
    pub(super) pool: Pool,
    /// The uid of a policy that is known to be this incarnation's.
    owned: Mutex<Option<String>>,
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
        Self { actor, uid: uid.into(), dialled, pool: Pool::default(), owned: Mutex::default(), uses: Mutex::default() }
    }

    pub(super) const fn port(&self) -> u16 {
        self.dialled.port()
    }

    pub(super) const fn target<'a>(&'a self, host: &'a Host) -> Target<'a> {
        Target { uid: &self.uid, host, port: self.port() }
    }

    pub(super) fn uses(self: &Arc<Self>, layer: Layer, host: &Host, kind: RuleKind) -> InUse {
        let what = (layer, host.clone(), kind);
        *self.uses.lock().entry(what.clone()).or_default() += 1;
        InUse { tunnel: self.clone(), what }
    }

    /// The same for as long as the tunnel lives: whoever carries the bytes does not tell when a use is over.
    /// No actor makes us remember without end, or forget what is still to be looked at.
    pub(super) fn used(&self, layer: Layer, host: &Host, kind: RuleKind) -> Result<(), Denial> {
        let what = (layer, host.clone(), kind);
        let mut uses = self.uses.lock();
        if uses.len() >= USES && !uses.contains_key(&what) {
            return Err(Denial::TooManyHosts);
        }
        uses.entry(what).or_insert(1);
        Ok(())
    }

    /// Whether the policy of this uid, just read by the actor's name, is that of the tunnel's own incarnation.
    ///
    /// A uid never comes back: an actor that still has it now had it when the policy was read. One policy belongs to
    /// one actor for life, so each is looked at once.
    pub(super) async fn owns_policy(&self, control: &Control, policy: &str) -> Result<(), Denial> {
        if !policy.is_empty() && self.owned.lock().as_deref() == Some(policy) {
            return Ok(());
        }
        match control.get_actor(&self.actor).await {
            Ok(actor) if actor.metadata.as_ref().is_some_and(|m| m.uid == *self.uid) => {
                *self.owned.lock() = Some(policy.to_owned());
                Ok(())
            }
            Ok(_) => Err(Denial::ActorReplaced),
            Err(status) if status.code() == Code::NotFound => Err(Denial::ActorUnknown),
            Err(_) => Err(Denial::ControlUnavailable),
        }
    }

    /// What was withdrawn of all that the tunnel is used for. A control plane that does not answer withdraws nothing.
    pub(super) async fn withdrawn(&self, gateway: &Gateway) -> Option<Host> {
        match gateway.control.get_actor(&self.actor).await {
            Ok(actor) if self.may_last(&actor) => {}
            Ok(_) => return Some(self.dialled.ip().into()),
            Err(status) if status.code() == Code::NotFound => return Some(self.dialled.ip().into()),
            Err(_) => return None,
        }
        let uses: Vec<Use> = self.uses.lock().keys().cloned().collect();
        if uses.is_empty() {
            return None;
        }
        // As it is now: what is kept for decisions would double the time that a rule lives on.
        let matcher = gateway.read_policy(self).await.ok()?;
        let gone = |(layer, host, kind): &Use| {
            !matcher.decide(*layer, host, self.port()).is_ok_and(|decision| decision.kind == *kind)
        };
        uses.into_iter().find(gone).map(|(_, host, _)| host)
    }

    /// Whether this is the tunnel's own incarnation, and one that has anything to say: no worker holds what is crashed
    /// or suspended. What passes, and a pause, ends nothing.
    fn may_last(&self, actor: &Actor) -> bool {
        let state = actor.status.as_ref().map_or(ActorState::Unspecified, ActorStatus::state);
        let gone = matches!(state, ActorState::Unspecified | ActorState::Suspended | ActorState::Crashed);
        !gone && actor.metadata.as_ref().is_some_and(|m| m.uid == *self.uid)
    }

    /// One line for each denial (row E-22).
    pub(super) fn note(&self, what: &Refused) {
        tracing::info!(
            actor = %self.actor,
            uid = %self.uid,
            dialled = %self.dialled,
            host = what.host.as_ref().map(tracing::field::display),
            port = self.port(),
            rule = what.rule,
            reason = what.denial.reason(),
            detail = what.denial.body(),
            "egress denied"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ResourceMetadata;

    fn tunnel() -> Tunnel {
        Tunnel::new(ActorRef::parse(b"a/b").unwrap(), "u".into(), "192.0.2.1:80".parse().unwrap())
    }

    #[test]
    fn no_use_is_forgotten_for_another() {
        let tunnel = tunnel();
        let used = |n: usize| {
            tunnel.used(Layer::Http, &Host::parse(format!("h{n}.example").as_bytes()).unwrap(), RuleKind::Http)
        };
        for n in 0..USES {
            assert_eq!(used(n), Ok(()), "{n}");
        }
        assert_eq!(used(USES), Err(Denial::TooManyHosts));
        assert_eq!(used(0), Ok(()));
        let uses = tunnel.uses.lock();
        assert_eq!(uses.len(), USES);
        for n in 0..USES {
            assert!(uses.keys().any(|(_, host, _)| host.to_string() == format!("h{n}.example")), "{n}");
        }
    }

    #[test]
    fn a_tunnel_lasts_no_longer_than_its_actor() {
        let tunnel = tunnel();
        let lasts = |uid: &str, state: ActorState| {
            let metadata = Some(ResourceMetadata { uid: uid.into(), ..Default::default() });
            let status = Some(ActorStatus { state: state.into(), ..Default::default() });
            tunnel.may_last(&Actor { metadata, status, ..Default::default() })
        };
        for state in [ActorState::Running, ActorState::Resuming, ActorState::Paused, ActorState::Pausing] {
            assert!(lasts("u", state) && !lasts("other", state), "{state:?}");
        }
        for state in [ActorState::Suspending, ActorState::Deleting, ActorState::Reverting] {
            assert!(lasts("u", state), "{state:?}");
        }
        for state in [ActorState::Suspended, ActorState::Crashed, ActorState::Unspecified] {
            assert!(!lasts("u", state), "{state:?}");
        }
        assert!(!tunnel.may_last(&Actor::default()));
    }
}
