//! The native router as one thing that starts, drains and stops.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{RouterConfig, millis};
use crate::control::Control;
use crate::denials::Denials;
use crate::drain::{self, Drain, DrainControl};
use crate::egress::Egress;
use crate::error::EngineError;
use crate::ingress::Ingress;
use crate::probes::{Probes, Readiness};
use crate::resolve::Resolver;
use crate::telemetry::Telemetry;

const RESET_LIMIT: Duration = Duration::from_millis(500);

/// Bound addresses by listener name; the probes are `stats` and `readiness`.
pub type Addresses = BTreeMap<String, Vec<SocketAddr>>;

/// A running router.
pub struct Router {
    config: Arc<RouterConfig>,
    telemetry: Telemetry,
    readiness: Readiness,
    control: DrainControl,
    /// The pages' own: they answer until everything else has ended.
    pages: DrainControl,
    addresses: Addresses,
    denials: Denials,
}

impl Router {
    /// Binds everything, then says ready. `log`: where access log lines go.
    pub async fn start(config: RouterConfig, log: Box<dyn Write + Send>) -> Result<Self, EngineError> {
        let config = Arc::new(config);
        let telemetry = telemetry(&config, log)?;
        let (control, drain) = drain::channel();
        let (mut addresses, mut denials) = (Addresses::new(), Denials::default());
        if let Some(plane) = config.control.as_ref().filter(|_| !config.listeners.is_empty()) {
            let resolver = Resolver::new(&config, Arc::new(Control::new(plane)?), telemetry.clone());
            resolver.follow_news();
            addresses = Ingress::start(&config, resolver, telemetry.clone(), drain.clone())?.addresses();
        }
        if let Some(egress) = &config.egress {
            let common = (&config.limits, &config.timeouts);
            let egress = Egress::start(egress, common, telemetry.clone(), drain)?;
            addresses.insert(egress.name().to_owned(), vec![egress.address()]);
            denials = egress.denials().clone();
        }
        let readiness = Readiness::default();
        let (pages, until) = drain::channel();
        addresses.extend(serve_probes(&config, &telemetry, &readiness, &until).await?);
        readiness.set(true);
        Ok(Self { config, telemetry, readiness, control, pages, addresses, denials })
    }

    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// What the egress gateway lately denied.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Not ready at once; serves on for the delay, then drains. Returns when nothing is in flight, at the latest at
    /// the drain timeout, when what is left is reset. False: something was.
    pub async fn drain(&self) -> bool {
        self.readiness.set(false);
        tracing::info!(delay_ms = self.config.drain.delay_ms, "not ready; serving on until the removal has spread");
        // A stop in the meantime ends the wait.
        tokio::time::timeout(millis(self.config.drain.delay_ms), self.control.forced()).await.ok();
        self.control.begin();
        tracing::info!(in_flight = self.control.in_flight(), "draining");
        let limit = millis(self.config.drain.timeout_ms);
        let in_time = tokio::time::timeout(limit, self.control.empty()).await.is_ok();
        if !in_time {
            tracing::warn!(in_flight = self.control.in_flight(), "the drain timeout is over; what is left is reset");
        }
        self.stop().await;
        in_time
    }

    /// Resets everything now and writes out the access log.
    pub async fn stop(&self) {
        self.readiness.set(false);
        self.control.force();
        // What is reset still has its line to write.
        tokio::time::timeout(RESET_LIMIT, self.control.empty()).await.ok();
        self.telemetry.close().await;
        self.pages.begin();
        tokio::time::timeout(RESET_LIMIT, self.pages.empty()).await.ok();
    }
}

fn telemetry(config: &RouterConfig, log: Box<dyn Write + Send>) -> Result<Telemetry, EngineError> {
    let telemetry = match config.access_log {
        true => Telemetry::with_access_log(log).map_err(EngineError::Runtime)?,
        false => Telemetry::default(),
    };
    Ok(config.tracing.iter().fold(telemetry, Telemetry::with_tracing))
}

async fn serve_probes(
    config: &RouterConfig,
    telemetry: &Telemetry,
    readiness: &Readiness,
    until: &Drain,
) -> Result<Addresses, EngineError> {
    let mut bound = Addresses::new();
    if let Some(address) = config.stats_address {
        let stats = Probes::Stats(telemetry.clone()).serve("stats", address, until.clone()).await?;
        bound.insert("stats".into(), vec![stats]);
    }
    if let Some(address) = config.readiness_address {
        let ready = Probes::Readiness(readiness.clone()).serve("readiness", address, until.clone()).await?;
        bound.insert("readiness".into(), vec![ready]);
    }
    Ok(bound)
}
