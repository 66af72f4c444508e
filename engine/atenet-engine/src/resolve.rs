//! From an actor to its assignment: cache, flight, parking, control plane.

use std::sync::Arc;

use crate::actor_ref::ActorRef;
use crate::assignment::Resolved;
use crate::refusal::Refusal;

/// Finds out where an actor is, waking it if it sleeps. Cheap to clone.
#[derive(Clone, Default)]
pub struct Resolver {
    inner: Arc<()>,
}

impl Resolver {
    /// Where the actor is. `trace`: the request's W3C `traceparent`, if any.
    ///
    /// Dropping the future frees this caller's parking slot and harms nobody else.
    pub async fn resolve(&self, actor: &ActorRef, trace: Option<&str>) -> Result<Resolved, Refusal> {
        let _ = (&self.inner, actor, trace);
        Err(Refusal::Internal)
    }

    /// Drops the actor's cache entry if it is still that generation.
    pub fn forget(&self, actor: &ActorRef, generation: u64) {
        let _ = (actor, generation);
    }
}
