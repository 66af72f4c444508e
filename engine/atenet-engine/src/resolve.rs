//! From an actor to its assignment: cache, flight, parking, control plane.

use crate::refusal::Refusal;

/// Placeholder for the shared resolver; see resolve/{cache,flight,parking}.rs.
pub struct Resolver;

impl Resolver {
    /// Drops one cache entry.
    pub fn forget(&self) -> Option<Refusal> { None }
}
