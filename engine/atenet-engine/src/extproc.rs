//! The decisions that Envoy asks for: the same resolver and the same refusals as the native router's.

pub(crate) mod answer;
pub(crate) mod ear;
mod fields;
mod question;
pub(crate) mod recent;
mod routed;
pub(crate) mod server;
mod service;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use self::ear::Ear;
use self::recent::{Entry, Recent};
use self::service::Service;
use crate::config::{CacheConfig, ExtProcConfig};
use crate::control::{Control, ControlPlane};
use crate::drain::{self, DrainControl};
use crate::error::EngineError;
use crate::resolve::Resolver;
use crate::telemetry::Telemetry;

/// The running service.
pub struct ExtProc {
    address: String,
    telemetry: Telemetry,
    resolver: Resolver,
    recent: Arc<Recent>,
    control: DrainControl,
}

/// What the status page shows.
#[derive(Serialize)]
pub struct Status {
    /// Requests that are being decided now, parked ones included.
    pub deciding: usize,
    pub parking: Parking,
    /// Newest first.
    pub requests: Vec<Entry>,
}

#[derive(Serialize)]
pub struct Parking {
    pub active: usize,
    pub max: usize,
}

impl ExtProc {
    /// Binds and serves.
    pub async fn start(config: &ExtProcConfig) -> Result<Self, EngineError> {
        Self::with_control_plane(config, Arc::new(Control::new(&config.control)?)).await
    }

    async fn with_control_plane(config: &ExtProcConfig, plane: Arc<dyn ControlPlane>) -> Result<Self, EngineError> {
        let telemetry = config.tracing.iter().fold(Telemetry::default(), Telemetry::with_tracing);
        // Every request asks the control plane: Envoy never routes on what was true a moment ago.
        let no_cache = CacheConfig { ttl_ms: 0, entries: 1 };
        let resolver = Resolver::with_parts(&no_cache, &config.parking, config.connect_port, plane, telemetry.clone());
        resolver.follow_news();
        let recent = Arc::new(Recent::new(config.recent));
        let (control, drain) = drain::channel();
        let ear = Ear::port(config.listen).await?;
        let bound = |source| EngineError::Listen { name: "ext_proc".into(), address: config.listen, source };
        let address = ear.address().map_err(bound)?;
        let service = Service {
            resolver: resolver.clone(),
            telemetry: telemetry.clone(),
            recent: recent.clone(),
            drain: drain.clone(),
        };
        let serve = move |stream, drain| stream::serve(stream, service.clone(), drain);
        tokio::spawn(server::accept(ear, drain, serve));
        Ok(Self { address, telemetry, resolver, recent, control })
    }

    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Prometheus text.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.telemetry.metrics_text()
    }

    #[must_use]
    pub fn status(&self) -> Status {
        let (active, max) = self.resolver.parked();
        Status { deciding: self.control.in_flight(), parking: Parking { active, max }, requests: self.recent.list() }
    }

    /// Accepts nothing new and waits for what is being decided; after `limit` the rest is dropped.
    pub async fn close(&self, limit: Duration) {
        self.control.begin();
        if tokio::time::timeout(limit, self.control.empty()).await.is_err() {
            tracing::warn!(deciding = self.control.in_flight(), "requests that still wait are dropped");
        }
        self.control.force();
        self.telemetry.close().await;
    }
}

#[cfg(test)]
mod tests;
