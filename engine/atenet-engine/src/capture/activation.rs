//! One activation's egress: who it is, what it may show, and what runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Budget;
use super::refusal::Refusal;
use super::{Opening, Shared};
use crate::actor_ref::ActorRef;
use crate::dns::Relay;
use crate::drain::{self, Drain, DrainControl};
use crate::tls::HeldCertificate;

/// What the activation shows the gateway.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) certificate: HeldCertificate,
    pub(super) not_after: SystemTime,
}

pub(super) struct Activation {
    pub(super) actor: ActorRef,
    pub(super) uid: Arc<str>,
    /// host:port; none: nothing leaves.
    pub(super) gateway: Option<Arc<str>>,
    pub(super) credential: ArcSwapOption<Credential>,
    pub(super) relay: Arc<Relay>,
    pub(super) counts: Counts,
    pub(super) refusals_told: Budget,
    pub(super) endings_told: Budget,
    places: Arc<Semaphore>,
    control: DrainControl,
    drain: Drain,
}

/// What an activation has carried.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) open: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    refused: [AtomicU64; Refusal::NAMES.len()],
}

impl Counts {
    pub(super) fn refused(&self, refusal: &Refusal) {
        if let Some(count) = self.refused.get(refusal.place()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn all_refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Refusal::NAMES.into_iter().zip(self.refused.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

impl Activation {
    pub(super) fn new(actor: ActorRef, opening: &Opening<'_>, shared: &Shared) -> Self {
        let (control, drain) = drain::channel();
        let uid: Arc<str> = opening.uid.into();
        let who = (actor.clone(), uid.clone());
        let relay = Relay::new(who, &shared.dns, shared.policy_max_age(), shared.denials.clone());
        Self {
            actor,
            uid,
            gateway: opening.gateway.map(Arc::from),
            credential: ArcSwapOption::empty(),
            relay: Arc::new(relay),
            counts: Counts::default(),
            refusals_told: Budget::default(),
            endings_told: Budget::default(),
            places: Arc::new(Semaphore::new(shared.limits.connections)),
            control,
            drain,
        }
    }

    /// One of the connections that the actor may have open.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    pub(super) const fn drain(&self) -> &Drain {
        &self.drain
    }

    /// Tells everything to stop.
    pub(super) fn cut(&self) {
        self.control.force();
    }

    /// Returns when nothing of it is left.
    pub(super) async fn end(&self) {
        self.cut();
        self.control.empty().await;
    }

    /// The certificate, if it may be shown now.
    pub(super) fn credential_now(&self) -> Result<Arc<Credential>, Refusal> {
        let credential = self.credential.load_full().ok_or(Refusal::NoCredential)?;
        if credential.not_after <= SystemTime::now() { Err(Refusal::Expired) } else { Ok(credential) }
    }
}
