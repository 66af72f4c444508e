//! The egress gateway: tunnels of actors in, allowed traffic out.
//!
//! ```text
//! listen (mTLS) -> admit (certificate, GetActor) -> first bytes
//!     HTTP -> each request: policy by Host -> credentials -> origin
//!     TLS  -> policy by server name -> intercept (then as HTTP) | pass through
//!     else -> reset
//! ```

mod admit;
mod carry;
mod credentials;
mod denial;
mod first;
mod floor;
mod hello;
mod inside;
mod listen;
mod origin;
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
use self::floor::Floor;
use self::listen::Listener;
use self::origin::Origins;
use self::tunnel::Tunnel;
use crate::actor_ref::ActorRef;
use crate::config::{EgressConfig, LimitsConfig, TimeoutsConfig, millis};
use crate::control::Control;
use crate::drain::Drain;
use crate::error::EngineError;
use crate::exchange::http2_conn;
use crate::policy::{Host, Matcher};
use crate::telemetry::Telemetry;
use crate::tls::{ClientAuth, Interception, ServerTls};

/// Compiled policies that are remembered; each is compiled once for each version.
const COMPILED: u64 = 1_000;

/// One per process.
struct Gateway {
    control: Control,
    origins: Origins,
    interception: Option<Interception>,
    credentials: Credentials,
    /// By the policy's uid and version.
    compiled: Cache<(String, i64), Arc<Matcher>>,
    telemetry: Telemetry,
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
    fn new(config: &EgressConfig, sizes: &LimitsConfig, times: &TimeoutsConfig) -> Self {
        Self {
            head_bytes: sizes.head_bytes,
            streams: sizes.streams,
            connections: sizes.connections,
            tls_handshake: millis(times.tls_handshake_ms),
            header: millis(times.header_ms),
            client_idle: millis(times.client_idle_ms),
            stream_idle: millis(times.stream_idle_ms),
            sniff: millis(config.limits.sniff_ms),
            recheck: millis(config.limits.recheck_ms),
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
    /// The actor's policy as it is now (row E-17).
    async fn policy(&self, actor: &ActorRef) -> Result<Arc<Matcher>, Denial> {
        let policy = self.control.egress_policy(actor).await.map_err(|status| {
            tracing::warn!(%actor, code = ?status.code(), "cannot read an egress policy");
            Denial::PolicyUnavailable
        })?;
        let metadata = policy.metadata.as_ref();
        let Some((uid, version)) = metadata.map(|m| (m.uid.clone(), m.version)).filter(|(uid, _)| !uid.is_empty())
        else {
            return Ok(Arc::new(Matcher::new(&policy)));
        };
        Ok(self.compiled.get_with((uid, version), || Arc::new(Matcher::new(&policy))))
    }

    fn denied(&self, tunnel: &Tunnel, denial: Denial, host: Option<&Host>, rule: Option<usize>) {
        self.telemetry.egress_decision(denial.reason());
        tunnel.note(denial, host, rule);
    }
}

/// The running gateway.
pub struct Egress {
    name: String,
    address: SocketAddr,
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
        let auth = ClientAuth::RequireAny { roots: config.client_roots.clone() };
        let tls = ServerTls::new(config.tls.clone(), auth, &[b"http/1.1"]).map_err(failed("egress listener"))?;
        let interception = config.interception.clone().map(Interception::new).transpose();
        let floor = Floor::new(config.allow_cidrs.clone());
        let origins = Origins::new(config.origin_roots.clone(), floor, &config.limits);
        let gateway = Gateway {
            control: Control::new(&config.control)?,
            origins: origins.map_err(failed("egress origins"))?,
            interception: interception.map_err(failed("egress interception"))?,
            credentials: Credentials::new(&config.credential_providers, millis(config.limits.credential_ttl_ms))?,
            compiled: Cache::new(COMPILED),
            telemetry,
            drain,
            limits: Limits::new(config, sizes, times),
        };
        let listener = Listener::bind(&config.name, config.address, tls, Arc::new(gateway))?;
        let address = listener.address();
        tokio::spawn(listener.run());
        Ok(Self { name: config.name.clone(), address })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bound address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
