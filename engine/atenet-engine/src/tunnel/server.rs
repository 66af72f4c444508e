//! atunnel: the worker's end of the router's tunnels.
//!
//! ```text
//! accept -> TLS (the router's identity or nothing) -> http2 | http1 -> admit -> dial -> relay
//!                                                                       |
//!                                       activate, deactivate -> table --+
//! ```

mod accept;
mod activation;
mod admit;
mod buffers;
mod decline;
mod dial;
mod handshakes;
mod http1;
mod http2;
mod log;
mod relay;
mod stats;
mod table;
mod totals;
mod usage;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atenet_net::NetNs;
use thiserror::Error;
use tokio::time::timeout;

use self::activation::Target;
use self::buffers::Pool;
use self::dial::DialLimits;
use self::table::Table;
use self::totals::Totals;
use crate::actor_ref::{ActorRef, NameError};
use crate::config::{TunnelConfig, millis};
use crate::drain::{self, Drain, DrainControl};
use crate::error::EngineError;
use crate::tls::{Callers, ClientAuth, ServerTls};

pub use self::decline::STALE_HEADER;
pub use self::stats::{ActorStats, ConnectionStats, Stats, TunnelStats};

/// For tunnels that were told to stop at once.
const FORCED_LIMIT: Duration = Duration::from_secs(1);

/// Why ingress was not opened for an actor.
#[derive(Debug, Error)]
pub enum ActivateError {
    #[error("{field}: {problem}")]
    Name { field: &'static str, problem: NameError },
    #[error("uid: must not be empty")]
    Uid,
    #[error("netns: cannot use {path} as a network namespace: {source}")]
    Netns { path: PathBuf, source: io::Error },
}

/// What every connection shares.
struct Shared {
    table: Table,
    totals: Totals,
    dial: DialLimits,
    pool: Pool,
    drain: Drain,
}

/// A running atunnel. Dropping it stops everything at once; [`TunnelServer::close`] stops in order.
pub struct TunnelServer {
    shared: Arc<Shared>,
    control: DrainControl,
    address: SocketAddr,
}

impl TunnelServer {
    /// Binds and serves on the current runtime.
    ///
    /// # Errors
    /// When the credential files are unusable or the address cannot be bound.
    pub fn start(config: &TunnelConfig) -> Result<Self, EngineError> {
        let auth = ClientAuth::Require {
            roots: config.trust_bundle.clone(),
            callers: Callers::OneOf(vec![config.allowed_client.clone()]),
        };
        let tls = ServerTls::new(config.credentials.clone(), auth, &[b"h2", b"http/1.1"])
            .map_err(|error| EngineError::tls("tunnel", error))?;
        let listen = |source| EngineError::Listen { name: "tunnel".into(), address: config.listen, source };
        let listener = accept::bind(config.listen).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (control, drain) = drain::channel();
        let shared = Arc::new(Shared {
            table: Table::default(),
            totals: Totals::default(),
            dial: DialLimits {
                timeout: millis(config.actor_dial.timeout_ms),
                retry_window: millis(config.actor_dial.retry_window_ms),
            },
            pool: Pool::default(),
            drain,
        });
        tokio::spawn(accept::accept(listener, tls, shared.clone()));
        tracing::info!(%address, "atunnel serves");
        Ok(Self { shared, control, address })
    }

    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Opens ingress for one incarnation of an actor, dialled at `address` inside the namespace at `netns`. The same
    /// uid again changes nothing; another one replaces the older incarnation and resets its tunnels. Blocks for
    /// some microseconds: not for asynchronous code.
    ///
    /// # Errors
    /// When a name is malformed or the namespace cannot be entered; nothing has changed then.
    pub fn activate(
        &self,
        atespace: &str,
        name: &str,
        uid: &str,
        netns: &Path,
        address: IpAddr,
    ) -> Result<(), ActivateError> {
        let actor = actor(atespace, name)?;
        if uid.is_empty() {
            return Err(ActivateError::Uid);
        }
        let netns = NetNs::open(netns).map_err(|source| ActivateError::Netns { path: netns.to_owned(), source })?;
        self.shared.table.activate(Target { actor: actor.clone(), uid: uid.into(), netns, address });
        tracing::info!(%actor, uid, %address, "ingress opened");
        Ok(())
    }

    /// Closes ingress for one incarnation: new tunnels are stale at once, running ones have `grace` to end and are
    /// then reset. Returns when none is left; false when this uid was not active.
    ///
    /// # Errors
    /// When a name is malformed.
    pub async fn deactivate(
        &self,
        atespace: &str,
        name: &str,
        uid: &str,
        grace: Duration,
    ) -> Result<bool, ActivateError> {
        let actor = actor(atespace, name)?;
        let was_active = self.shared.table.deactivate(&actor, uid, grace).await;
        tracing::info!(%actor, uid, was_active, "ingress closed");
        Ok(was_active)
    }

    /// Closes ingress to new tunnels if no request is in flight and none was for `idle`; false, and nothing has
    /// changed, otherwise. No request comes in between. [`Self::deactivate`] ends the tunnels that are left.
    ///
    /// # Errors
    /// When a name is malformed.
    pub fn close_if_idle(&self, atespace: &str, name: &str, uid: &str, idle: Duration) -> Result<bool, ActivateError> {
        let actor = actor(atespace, name)?;
        let closed = self.shared.table.close_if_idle(&actor, uid, idle);
        tracing::info!(%actor, uid, closed, "ingress closes if idle");
        Ok(closed)
    }

    #[must_use]
    pub fn stats(&self) -> Stats {
        stats::collect(&self.shared)
    }

    /// Accepts nothing new, lets running tunnels end for at most `limit`, then resets what is left.
    pub async fn close(&self, limit: Duration) {
        self.control.begin();
        if timeout(limit, self.control.empty()).await.is_err() {
            self.shared.table.cut_all();
            // The tunnels' resets go out on their connections, so those are stopped only after them.
            let _still_some = timeout(FORCED_LIMIT, self.tunnels_gone()).await;
            self.control.force();
            let _still_some = timeout(FORCED_LIMIT, self.control.empty()).await;
        }
    }

    async fn tunnels_gone(&self) {
        for activation in self.shared.table.all() {
            activation.empty().await;
        }
    }
}

fn actor(atespace: &str, name: &str) -> Result<ActorRef, ActivateError> {
    crate::actor_ref::check_name(atespace.as_bytes())
        .map_err(|problem| ActivateError::Name { field: "atespace", problem })?;
    crate::actor_ref::check_name(name.as_bytes()).map_err(|problem| ActivateError::Name { field: "name", problem })?;
    ActorRef::new(atespace, name).map_err(|problem| ActivateError::Name { field: "name", problem })
}
