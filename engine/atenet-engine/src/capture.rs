//! The near end of the egress gateway's tunnels: what an actor dials arrives here, and leaves by its own certificate.
//!
//! ```text
//! redirected TCP -> listen -> original destination -> gateway (mTLS, CONNECT ip:port) -> relay
//! question       -> dns relay (names that the actor's policy allows)
//! ```
//!
//! Everything belongs to one activation: listeners in its gateway namespace, its certificate, its policy. Python
//! decides (it opens, mints, refreshes and closes); nothing leaves that it did not allow.

mod activation;
mod gateway;
mod listen;
mod log;
mod metrics;
mod open;
mod refusal;
mod stats;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::timeout;

use self::activation::{Activation, Credential};
use self::gateway::Gateway;
use self::metrics::Metrics;
use crate::actor_ref::{ActorRef, NameError};
use crate::config::{CaptureConfig, CaptureLimits, DnsConfig, millis};
use crate::denials::Denials;
use crate::dns::Upstream;
use crate::error::EngineError;
use crate::proto::EgressPolicy;
use crate::tls::{HeldCertificate, TlsError};

pub(crate) use self::log::Budget;
pub use self::stats::{ActorStats, CredentialStats, Stats};

/// How long a forced end may take.
const FORCED_LIMIT: Duration = Duration::from_secs(2);

/// Why an actor's egress was not opened, or what it was told did not reach it.
#[derive(Debug, Error)]
pub enum CaptureError {
    #[error("{field}: {problem}")]
    Name { field: &'static str, problem: NameError },
    #[error("uid: must not be empty")]
    Uid,
    #[error("uid: {0} is open already")]
    AlreadyOpen(String),
    #[error("uid: {0} is not open")]
    NotOpen(String),
    #[error("gateway: must be host:port, not {0:?}")]
    GatewayAddress(String),
    #[error("gateway: this worker was given no trust bundle for it")]
    NoGatewayTrust,
    #[error("netns: cannot use {path} as a network namespace: {source}")]
    Netns { path: PathBuf, source: io::Error },
    #[error("cannot listen on {what} in {path}: {source}")]
    Listen { what: &'static str, path: PathBuf, source: io::Error },
    #[error("credential: {0}")]
    Credential(#[from] TlsError),
}

/// What every activation shares.
struct Shared {
    gateway: Option<Gateway>,
    limits: CaptureLimits,
    dns: DnsConfig,
    upstream: Upstream,
    metrics: Metrics,
    denials: Denials,
}

/// One activation's egress, as it is to be opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    pub atespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    /// The gateway namespace of its network.
    pub netns: &'a Path,
    /// The egress gateway, host:port. None: whatever the actor dials is refused.
    pub gateway: Option<&'a str>,
}

/// The egress ends of a worker's actors.
pub struct CaptureServer {
    shared: Arc<Shared>,
    config: CaptureConfig,
    actors: Mutex<HashMap<String, Arc<Activation>>>,
}

impl CaptureServer {
    /// Binds nothing yet.
    ///
    /// # Errors
    /// When the gateway's trust bundle is unusable.
    pub fn new(config: CaptureConfig) -> Result<Self, EngineError> {
        let gateway = config.gateway.as_ref().map(|end| Gateway::new(end, config.limits)).transpose();
        let gateway = gateway.map_err(|error| EngineError::tls("egress gateway", error))?;
        let shared = Arc::new(Shared {
            gateway,
            limits: config.limits,
            dns: config.dns.clone(),
            upstream: Upstream::new(config.dns.upstream.clone()),
            metrics: Metrics::new(),
            denials: Denials::default(),
        });
        Ok(Self { shared, config, actors: Mutex::default() })
    }

    /// Binds the activation's capture and relay, on the current runtime. Until a credential is set every connection
    /// is refused, and until a policy is set no name is answered. Blocks for some microseconds: not for asynchronous
    /// code.
    ///
    /// # Errors
    /// When something given is unusable; nothing is open then.
    pub fn open(&self, opening: Opening<'_>) -> Result<(), CaptureError> {
        let actor = actor(opening.atespace, opening.name)?;
        if opening.uid.is_empty() {
            return Err(CaptureError::Uid);
        }
        if let Some(address) = opening.gateway {
            gateway::check_address(address)?;
            if self.shared.gateway.is_none() {
                return Err(CaptureError::NoGatewayTrust);
            }
        }
        let mut actors = self.actors.lock();
        if actors.contains_key(opening.uid) {
            return Err(CaptureError::AlreadyOpen(opening.uid.to_owned()));
        }
        let sockets = open::Sockets::bind(opening.netns, &self.config, opening.gateway.is_some())?;
        let activation = Arc::new(Activation::new(actor, &opening, &self.shared));
        sockets.serve(&self.shared, &activation);
        tracing::info!(actor = %activation.actor, uid = opening.uid, gateway = opening.gateway, "egress opened");
        actors.insert(opening.uid.to_owned(), activation);
        Ok(())
    }

    /// Connections open from now on carry this certificate. `key`: PKCS #8, DER.
    ///
    /// # Errors
    /// When the key is not the leaf's, or the uid is not open.
    pub fn set_credential(
        &self,
        uid: &str,
        chain: Vec<Vec<u8>>,
        key: Vec<u8>,
        not_after: SystemTime,
    ) -> Result<(), CaptureError> {
        let certificate = HeldCertificate::from_der(chain, key)?;
        self.find(uid)?.credential.store(Some(Arc::new(Credential { certificate, not_after })));
        Ok(())
    }

    /// Refuses new connections; those that run go on.
    ///
    /// # Errors
    /// When the uid is not open.
    pub fn drop_credential(&self, uid: &str) -> Result<(), CaptureError> {
        self.find(uid)?.credential.store(None);
        Ok(())
    }

    /// What the relay answers from now on. An empty policy allows nothing.
    ///
    /// # Errors
    /// When the uid is not open.
    pub fn set_policy(&self, uid: &str, policy: &EgressPolicy) -> Result<(), CaptureError> {
        self.find(uid)?.relay.policy().set(policy);
        Ok(())
    }

    /// The policy that was set is what there is.
    ///
    /// # Errors
    /// When the uid is not open.
    pub fn confirm_policy(&self, uid: &str) -> Result<(), CaptureError> {
        self.find(uid)?.relay.policy().confirm();
        Ok(())
    }

    /// Ends it: listeners are closed, running connections reset. Returns when nothing is left; false when the uid was
    /// not open.
    pub async fn close_actor(&self, uid: &str) -> bool {
        let Some(activation) = self.actors.lock().remove(uid) else { return false };
        activation.end().await;
        tracing::info!(actor = %activation.actor, uid, "egress closed");
        true
    }

    #[must_use]
    pub fn stats(&self) -> Stats {
        stats::collect(self.actors.lock().values())
    }

    /// The names that were lately denied to actors.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.shared.denials
    }

    /// Prometheus text.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.shared.metrics.text()
    }

    /// Ends every actor's.
    pub async fn close(&self) {
        let all: Vec<_> = self.actors.lock().drain().map(|(_, activation)| activation).collect();
        for activation in &all {
            activation.cut();
        }
        for activation in &all {
            let _still_some = timeout(FORCED_LIMIT, activation.end()).await;
        }
    }

    fn find(&self, uid: &str) -> Result<Arc<Activation>, CaptureError> {
        self.actors.lock().get(uid).cloned().ok_or_else(|| CaptureError::NotOpen(uid.to_owned()))
    }
}

fn actor(atespace: &str, name: &str) -> Result<ActorRef, CaptureError> {
    for (field, value) in [("atespace", atespace), ("name", name)] {
        let checked = crate::actor_ref::check_name(value.as_bytes());
        checked.map_err(|problem| CaptureError::Name { field, problem })?;
    }
    ActorRef::new(atespace, name).map_err(|problem| CaptureError::Name { field: "name", problem })
}

impl Shared {
    fn policy_max_age(&self) -> Duration {
        millis(self.dns.policy_max_age_ms)
    }
}
