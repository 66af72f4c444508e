//! One line when a tunnel opens and one when it ends. Never a header's value beyond the actor's checked name.

use std::net::SocketAddr;
use std::time::Instant;

use super::activation::Tunnel;
use super::decline::Decline;
use super::relay::Ending;

/// An open tunnel's line still to come.
pub(super) struct Record {
    router: SocketAddr,
    port: u16,
    since: Instant,
}

pub(super) fn opened(tunnel: &Tunnel, router: SocketAddr, port: u16) -> Record {
    let target = &tunnel.activation().target;
    tunnel.opened();
    tracing::debug!(actor = %target.actor, uid = %target.uid, port, %router, "tunnel opened");
    Record { router, port, since: Instant::now() }
}

pub(super) fn declined(router: SocketAddr, decline: Decline) {
    tracing::debug!(%router, reason = decline.name(), status = decline.status().as_u16(), "tunnel declined");
}

impl Record {
    pub(super) fn closed(self, tunnel: &Tunnel, ending: Ending) {
        let target = &tunnel.activation().target;
        tracing::debug!(
            actor = %target.actor,
            uid = %target.uid,
            port = self.port,
            router = %self.router,
            bytes_to_actor = tunnel.to_actor,
            bytes_from_actor = tunnel.from_actor,
            duration_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            ending = ending.name(),
            "tunnel closed"
        );
    }
}
