//! The gateway's decisions for an Envoy that carries the bytes: the same admission, policies, credentials and floor.
//!
//! ```text
//! chain tunnel       a CONNECT: admit; the question stays open for as long as the tunnel lives   connect
//! chain server-name  a ClientHello: which filter chain, and for what passes through which address   server_name
//! chain http | tls   a request: judged, given its credentials, and told where to go   request
//! connections        neither HTTP nor TLS: how it is refused   other
//! ```

mod answer;
mod connect;
mod other;
mod question;
mod request;
mod server_name;
mod service;
mod tunnels;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use self::service::{Parts, Services};
use self::tunnels::Tunnels;
use super::{Gateway, Kept, Limits};
use crate::config::{EgressDecisionsConfig, LimitsConfig, TimeoutsConfig, millis};
use crate::denials::Denials;
use crate::drain::{self, DrainControl};
use crate::error::EngineError;
use crate::extproc::ear::Ear;
use crate::extproc::recent::{Entry, Recent};
use crate::extproc::server;
use crate::telemetry::Telemetry;

/// The running service.
pub struct EgressDecisions {
    address: String,
    parts: Arc<Parts>,
    control: DrainControl,
}

/// What the status page shows.
#[derive(Serialize)]
pub struct Status {
    /// What is being decided now.
    pub deciding: usize,
    /// Open tunnels.
    pub tunnels: usize,
    /// Newest first.
    pub requests: Vec<Entry>,
}

impl EgressDecisions {
    /// Binds and serves. Must run inside a tokio runtime.
    pub async fn start(config: &EgressDecisionsConfig) -> Result<Self, EngineError> {
        let (control, drain) = drain::channel();
        // Sizes and times of the carrying are Envoy's.
        let limits = Limits::new(&config.limits, &LimitsConfig::default(), &TimeoutsConfig::default());
        // For no time at all is for no decision but those that wait together.
        let kept = (config.policy_ttl_ms > 0).then(|| Kept::new(millis(config.policy_ttl_ms)));
        let with = (Telemetry::default(), drain.clone());
        let gateway = Gateway::new(&config.decides(), with, kept, None, limits)?;
        let ear = match &config.socket {
            Some(path) => Ear::socket(path)?,
            None => Ear::port(config.listen).await?,
        };
        let bound = |source| EngineError::Listen { name: "ext_proc".into(), address: config.listen, source };
        let address = ear.address().map_err(bound)?;
        let parts = Arc::new(Parts {
            gateway: Arc::new(gateway),
            tunnels: Tunnels::new()?,
            recent: Recent::new(config.recent),
            intercepts: config.intercepts,
        });
        let services = Services::new(parts.clone());
        let serve = move |stream, drain| server::serve(stream, services.clone(), drain);
        tokio::spawn(server::accept(ear, drain, serve));
        Ok(Self { address, parts, control })
    }

    /// `ip:port`, or the socket's path.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Prometheus text.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.parts.gateway.telemetry.metrics_text()
    }

    /// What was lately denied.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.parts.gateway.denials
    }

    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            deciding: self.control.in_flight(),
            tunnels: self.parts.tunnels.count(),
            requests: self.parts.recent.list(),
        }
    }

    /// Accepts nothing new and waits for what is being decided; after `limit` the rest is dropped.
    pub async fn close(&self, limit: Duration) {
        self.control.begin();
        if tokio::time::timeout(limit, self.control.empty()).await.is_err() {
            tracing::warn!(deciding = self.control.in_flight(), "what still waits for a decision is dropped");
        }
        self.control.force();
        self.parts.gateway.telemetry.close().await;
    }
}
