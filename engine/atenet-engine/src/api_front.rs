//! The control plane's front: what clients connect to where the store is a SQLite file.
//!
//! It answers the methods that every request of a router or gateway may need, `ResumeActor` of a running actor,
//! `GetActor` and `GetActorEgressPolicy`, by one read of the store; it answers exactly what the control plane would.
//! A router asks about many at once on one stream (`RouterSupport/Locate`). Every other call, and every one of these that is not that plain, is carried to the control plane's own server as
//! the stream of frames that it is, together with the identity that the caller proved. Who may call what is the control
//! plane's table.

mod actors;
mod body;
mod forward;
mod locate;
mod peer;
mod serve;
mod warm;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;

use self::actors::Actors;
use self::warm::Grants;
use crate::config::{ApiFrontConfig, WarmMethod};
use crate::drain::{self, DrainControl};
use crate::error::EngineError;
use crate::tls::{Callers, ClientAuth, ServerTls};

/// The running front.
pub struct ApiFront {
    address: SocketAddr,
    shared: Arc<Shared>,
    control: DrainControl,
}

/// What all connections have in common.
struct Shared {
    config: ApiFrontConfig,
    tls: ServerTls,
    actors: Actors,
    grants: Grants,
    answered: Answered,
}

/// Calls answered here, by method.
#[derive(Default)]
struct Answered {
    get: AtomicU64,
    policy: AtomicU64,
    resume: AtomicU64,
}

impl Answered {
    fn of(&self, method: WarmMethod) -> &AtomicU64 {
        match method {
            WarmMethod::GetActor => &self.get,
            WarmMethod::GetActorEgressPolicy => &self.policy,
            WarmMethod::ResumeActor | WarmMethod::Locate => &self.resume,
        }
    }
}

impl ApiFront {
    /// Binds and serves. The store and the control plane's socket are opened when they are needed.
    pub async fn start(config: &ApiFrontConfig) -> Result<Self, EngineError> {
        let auth = ClientAuth::Require { roots: config.client_roots.clone(), callers: Callers::Any };
        let tls = ServerTls::new(config.credentials.clone(), auth, &[b"h2"])
            .map_err(|error| EngineError::tls("control plane", error))?;
        let failed =
            |source| EngineError::Bind { name: "control plane".into(), address: config.listen.clone(), source };
        let listener = TcpListener::bind(&config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            tls,
            actors: Actors::new(&config.store),
            grants: Grants::new(&config.grants),
            answered: Answered::default(),
            config: config.clone(),
        });
        let (control, drain) = drain::channel();
        tokio::spawn(serve::accept(listener, shared.clone(), drain));
        Ok(Self { address, shared, control })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many calls of each warm method it answered by itself, all with OK.
    #[must_use]
    pub fn answered(&self) -> BTreeMap<&'static str, u64> {
        let count = |method| self.shared.answered.of(method).load(Ordering::Relaxed);
        BTreeMap::from([
            ("GetActor", count(WarmMethod::GetActor)),
            ("GetActorEgressPolicy", count(WarmMethod::GetActorEgressPolicy)),
            ("ResumeActor", count(WarmMethod::ResumeActor)),
        ])
    }

    /// Accepts nothing new and lets calls end; what is left after `limit` is cut.
    pub async fn close(&self, limit: Duration) {
        self.control.begin();
        if tokio::time::timeout(limit, self.control.empty()).await.is_err() {
            tracing::warn!(connections = self.control.in_flight(), "connections that still have calls are cut");
        }
        self.control.force();
    }
}
