//! Where an actor is now, as the control plane said.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::actor_ref::ActorRef;

/// One activation of an actor on a worker. Two assignments with equal
/// [`Assignment::activation`] may share connections to the actor; no others may.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assignment {
    pub actor: ActorRef,
    pub actor_uid: Arc<str>,
    /// The actor's resource version: grows with each change of its state.
    pub version: i64,
    /// The worker's atunnel: its first usable pod IP and the CONNECT port.
    pub worker: SocketAddr,
    /// The exact SPIFFE ID that the worker must present.
    pub worker_spiffe_id: Arc<str>,
    pub worker_epoch: i64,
}

/// How a request came by its assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// The actor was running: from the cache, or a warm read.
    None,
    /// This request's call ran the resume workflow (or waited for room).
    Triggered,
    /// It shared another request's call.
    Joined,
}

/// What the resolver answers.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub assignment: Arc<Assignment>,
    pub disposition: Disposition,
    /// From the cache, without a call (on A only).
    pub cached: bool,
    /// Names the cache entry for [`crate::resolve::Resolver::forget`].
    pub generation: u64,
}
