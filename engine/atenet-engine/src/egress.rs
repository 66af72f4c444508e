//! The egress gateway: tunnels of actors in, allowed traffic out.
//!
//! ```text
//! listen (mTLS) -> admit (certificate, GetActor) -> first bytes
//!     HTTP -> each request: policy by Host -> credentials -> origin
//!     TLS  -> policy by server name -> intercept (then as HTTP) | pass through
//!     else -> reset
//! ```
//!
//! Beside an Envoy, which carries the bytes, the same is asked piece by piece: `envoy`.

mod admit;
mod carry;
mod credentials;
mod denial;
mod envoy;
mod first;
mod floor;
mod hello;
mod inside;
mod kept;
mod listen;
mod lookups;
mod names;
mod origin;
mod plan;
mod policies;
mod pool;
mod serve_http1;
mod serve_http2;
mod tunnel;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;

use self::credentials::Credentials;
use self::denial::Denial;
pub use self::denial::table as denial_table;
pub use self::envoy::EgressDecisions;
use self::kept::Kept;
use self::listen::Listener;
use self::origin::Origins;
use self::policies::Policies;
use self::tunnel::Tunnel;
use crate::actor_ref::ActorRef;
use crate::config::{Decides, EgressConfig, EgressLimits, LimitsConfig, TimeoutsConfig, millis};
use crate::control::Control;
use crate::denials::{Denials, Denied};
use crate::drain::Drain;
use crate::error::EngineError;
use crate::exchange::http2_conn;
use crate::policy::{Host, Layer, Matcher};
use crate::telemetry::Telemetry;
use crate::tls::{Callers, ClientAuth, Interception, ServerTls};

/// Compiled policies that are remembered; each is compiled once for each version.
const COMPILED: u64 = 1_000;

/// One per process.
struct Gateway {
    control: Control,
    origins: Origins,
    interception: Option<Interception>,
    credentials: Credentials,
    policies: Policies,
    /// None: each decision has its policy read.
    kept: Option<Kept>,
    /// By the policy's uid and version.
    compiled: Cache<(String, i64), Arc<Matcher>>,
    telemetry: Telemetry,
    denials: Denials,
    drain: Drain,
    limits: Limits,
}

#[derive(Debug, Clone)]
struct Limits {
    head_bytes: usize,
    streams: u32,
    connections: usize,
    tls_handshake: Duration,
    header: Duration,
    client_idle: Duration,
    stream_idle: Duration,
    sniff: Duration,
    recheck: Duration,
}

impl Limits {
    fn new(config: &EgressLimits, sizes: &LimitsConfig, times: &TimeoutsConfig) -> Self {
        Self {
            head_bytes: sizes.head_bytes,
            streams: sizes.streams,
            connections: sizes.connections,
            tls_handshake: millis(times.tls_handshake_ms),
            header: millis(times.header_ms),
            client_idle: millis(times.client_idle_ms),
            stream_idle: millis(times.stream_idle_ms),
            sniff: millis(config.sniff_ms),
            recheck: millis(config.recheck_ms),
        }
    }

    const fn http2(&self) -> http2_conn::Limits {
        http2_conn::Limits {
            head_bytes: self.head_bytes,
            streams: self.streams,
            header: self.header,
            idle: self.client_idle,
        }
    }
}

impl Gateway {
    fn new(
        config: &Decides<'_>,
        (telemetry, drain): (Telemetry, Drain),
        kept: Option<Kept>,
        interception: Option<Interception>,
        limits: Limits,
    ) -> Result<Self, EngineError> {
        let control = Control::new(config.control)?;
        let credential_ttl = millis(config.limits.credential_ttl_ms);
        Ok(Self {
            policies: Policies::new(control.clone()),
            kept,
            compiled: Cache::new(COMPILED),
            control,
            origins: Origins::new(config)?,
            interception,
            credentials: Credentials::new(config.credential_providers, credential_ttl)?,
            telemetry,
            denials: Denials::default(),
            drain,
            limits,
        })
    }

    async fn policy(&self, tunnel: &Tunnel) -> Result<Arc<Matcher>, Denial> {
        match &self.kept {
            None => self.read_policy(tunnel).await,
            Some(kept) => kept.of(tunnel, || self.read_policy(tunnel)).await,
        }
    }

    /// The policy of the tunnel's actor as it is now (row E-17).
    async fn read_policy(&self, tunnel: &Tunnel) -> Result<Arc<Matcher>, Denial> {
        let actor = &tunnel.actor;
        let policy = self.policies.read(actor).await.map_err(|code| {
            tracing::warn!(%actor, ?code, "cannot read an egress policy");
            Denial::PolicyUnavailable
        })?;
        if policy.rules.is_empty() {
            return Ok(Arc::default());
        }
        let (uid, version) = policy.metadata.as_ref().map(|m| (m.uid.clone(), m.version)).unwrap_or_default();
        tunnel.owns_policy(&self.control, &uid).await?;
        if uid.is_empty() {
            return Ok(Arc::new(Matcher::new(&policy)));
        }
        Ok(self.compiled.get_with((uid, version), || Arc::new(Matcher::new(&policy))))
    }

    fn denied(&self, tunnel: &Tunnel, what: &Refused) {
        self.telemetry.egress_decision(what.denial.reason());
        tunnel.note(what);
        let denied = Denied {
            layer: what.layer,
            host: what.host.as_ref().map(ToString::to_string),
            port: Some(tunnel.port()),
            rule: what.rule,
            reason: what.denial.reason(),
            detail: what.denial.body(),
        };
        self.denials.note(&tunnel.actor, Some(&tunnel.uid), denied);
    }

    /// A tunnel that was not opened; the caller's certificate is good, so the name is believed.
    fn unopened(&self, actor: &ActorRef, port: Option<u16>, denial: Denial) {
        let (reason, detail) = (denial.reason(), denial.body());
        tracing::info!(%actor, reason, "egress tunnel denied");
        self.denials.note(actor, None, Denied { layer: None, host: None, port, rule: None, reason, detail });
    }
}

/// What was denied, as far as it is known.
#[derive(Debug)]
struct Refused {
    denial: Denial,
    layer: Option<Layer>,
    host: Option<Host>,
    rule: Option<usize>,
}

impl Refused {
    const fn new(denial: Denial) -> Self {
        Self { denial, layer: None, host: None, rule: None }
    }

    const fn on(mut self, layer: Layer) -> Self {
        self.layer = Some(layer);
        self
    }

    fn of(mut self, host: &Host) -> Self {
        self.host = Some(host.clone());
        self
    }

    const fn by(mut self, rule: usize) -> Self {
        self.rule = Some(rule);
        self
    }
}

/// The running gateway.
pub struct Egress {
    name: String,
    address: SocketAddr,
    denials: Denials,
}

impl Egress {
    /// Binds, then serves until `drain` says otherwise. Must run inside a tokio runtime.
    pub fn start(
        config: &EgressConfig,
        (sizes, times): (&LimitsConfig, &TimeoutsConfig),
        telemetry: Telemetry,
        drain: Drain,
    ) -> Result<Self, EngineError> {
        let failed = |what: &'static str| move |source| EngineError::tls(what, source);
        let auth = ClientAuth::Require { roots: config.client_roots.clone(), callers: Callers::OneUri };
        let tls = ServerTls::new(config.tls.clone(), auth, &[b"http/1.1"]).map_err(failed("egress listener"))?;
        let interception = config.interception.clone().map(Interception::new).transpose();
        let interception = interception.map_err(failed("egress interception"))?;
        let limits = Limits::new(&config.limits, sizes, times);
        let gateway = Gateway::new(&config.decides(), (telemetry, drain), None, interception, limits)?;
        let denials = gateway.denials.clone();
        let listener = Listener::bind(&config.name, config.address, tls, Arc::new(gateway))?;
        let address = listener.address();
        tokio::spawn(listener.run());
        Ok(Self { name: config.name.clone(), address, denials })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was lately denied.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// The bound address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
