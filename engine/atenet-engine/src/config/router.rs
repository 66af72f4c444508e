//! The native ingress router's configuration.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::{ConfigError, EgressConfig, above_zero, from_json, host_and_port};
use crate::tls::CredentialFiles;

/// Everything the router needs; see [`RouterConfig::from_json`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterConfig {
    /// The ingress's; none: there is no ingress.
    #[serde(default)]
    pub listeners: Vec<ListenerConfig>,
    /// The ingress's control plane.
    #[serde(default)]
    pub control: Option<ControlConfig>,
    #[serde(default)]
    pub worker: Option<WorkerHop>,
    /// The egress gateway; absent: there is none.
    #[serde(default)]
    pub egress: Option<EgressConfig>,
    #[serde(default)]
    pub cache: CacheConfig,
    #[serde(default)]
    pub parking: ParkingConfig,
    #[serde(default)]
    pub timeouts: TimeoutsConfig,
    #[serde(default)]
    pub limits: LimitsConfig,
    /// `/metrics`; absent: not served.
    #[serde(default)]
    pub stats_address: Option<SocketAddr>,
    /// `/readyz` and `/healthz`; absent: not served.
    #[serde(default)]
    pub readiness_address: Option<SocketAddr>,
    #[serde(default)]
    pub drain: DrainConfig,
    /// One JSON line a request on stderr.
    #[serde(default = "yes")]
    pub access_log: bool,
    /// Spans over OTLP; absent: none, but `traceparent` still travels.
    #[serde(default)]
    pub tracing: Option<TracingConfig>,
    /// Runtime threads; absent: one a core.
    #[serde(default)]
    pub threads: Option<usize>,
}

/// One client listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerConfig {
    /// Unique; names the bound address in `Router.start()` and the metrics' `listener` label.
    pub name: String,
    pub address: SocketAddr,
    pub protocol: Protocol,
    pub mode: Mode,
    /// Required for https, forbidden for http.
    #[serde(default)]
    pub tls: Option<CredentialFiles>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Http,
    Https,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Requests to actor port 80.
    Direct,
    /// CONNECT names the actor's port; requests travel inside.
    Connect,
}

/// The control plane.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlConfig {
    /// `host:port`; the name is resolved anew for each connection.
    pub address: String,
    /// The DNS name that its certificate must carry.
    pub server_name: String,
    /// The router's own identity.
    pub credentials: CredentialFiles,
    pub roots: PathBuf,
}

/// The hop to the workers' atunnel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerHop {
    pub credentials: CredentialFiles,
    pub roots: PathBuf,
    #[serde(default = "WorkerHop::default_port")]
    pub connect_port: u16,
    /// The TCP connection.
    #[serde(default = "WorkerHop::default_connect")]
    pub connect_timeout_ms: u64,
    /// TCP, TLS and HTTP/2 settings together.
    #[serde(default = "WorkerHop::default_handshake")]
    pub handshake_timeout_ms: u64,
}

impl WorkerHop {
    const fn default_port() -> u16 {
        8443
    }
    const fn default_connect() -> u64 {
        1_000
    }
    const fn default_handshake() -> u64 {
        5_000
    }
}

/// The assignment cache.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// How long an answer is used, counted from its arrival; 0: never.
    pub ttl_ms: u64,
    /// Upper bound of remembered actors.
    pub entries: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { ttl_ms: 5_000, entries: 200_000 }
    }
}

/// Requests that wait for an actor to become routable.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ParkingConfig {
    /// From the look-up's start; no new attempt starts after it.
    pub budget_ms: u64,
    /// Waiting requests at most; 0 turns parking off.
    pub max: usize,
    /// The first pause between attempts.
    pub retry_interval_ms: u64,
    /// Each pause is this much longer than the one before.
    pub retry_factor: f64,
}

impl Default for ParkingConfig {
    fn default() -> Self {
        Self { budget_ms: 5_000, max: 1_024, retry_interval_ms: 100, retry_factor: 1.1 }
    }
}

impl ParkingConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        above_zero("parking.budget_ms", self.budget_ms)?;
        above_zero("parking.retry_interval_ms", self.retry_interval_ms)?;
        if !(1.0..=10.0).contains(&self.retry_factor) {
            return Err(ConfigError::new("parking.retry_factor", "must be between 1 and 10"));
        }
        Ok(())
    }
}

/// Time limits of the client's side and of streams.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutsConfig {
    /// A client's TLS handshake.
    pub tls_handshake_ms: u64,
    /// From a request's first byte to the end of its head.
    pub header_ms: u64,
    /// A kept-alive client connection without a request.
    pub client_idle_ms: u64,
    /// A stream on which nothing moves either way.
    pub stream_idle_ms: u64,
    /// A connection to an actor that is kept for reuse.
    pub actor_idle_ms: u64,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        Self {
            tls_handshake_ms: 15_000,
            header_ms: 10_000,
            client_idle_ms: 600_000,
            stream_idle_ms: 300_000,
            actor_idle_ms: 5_000,
        }
    }
}

/// Sizes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// A request's head, in bytes.
    pub head_bytes: usize,
    /// Header fields in a request's head.
    pub headers: usize,
    /// Open client connections over all listeners.
    pub connections: usize,
    /// Concurrent streams on one HTTP/2 client connection.
    pub streams: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { head_bytes: 65_536, headers: 128, connections: 65_536, streams: 256 }
    }
}

/// How the process leaves.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrainConfig {
    /// Not ready but serving on, while the endpoint's removal spreads.
    pub delay_ms: u64,
    /// From the end of the delay until what is left is reset; must exceed the park budget.
    pub timeout_ms: u64,
}

impl Default for DrainConfig {
    fn default() -> Self {
        Self { delay_ms: 13_000, timeout_ms: 30_000 }
    }
}

/// Where spans go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracingConfig {
    /// The OTLP collector, `host:port`.
    pub collector: String,
    pub protocol: OtlpProtocol,
    /// For [`OtlpProtocol::Http`].
    #[serde(default = "TracingConfig::default_path")]
    pub path: String,
    /// The share of requests without a trace that start one, 0 to 1.
    pub random_sampling: f64,
    /// The share of incoming sampled traces that is continued, 0 to 1.
    #[serde(default = "TracingConfig::default_client_sampling")]
    pub client_sampling: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OtlpProtocol {
    Http,
    Grpc,
}

impl TracingConfig {
    fn default_path() -> String {
        "/v1/traces".to_owned()
    }

    const fn default_client_sampling() -> f64 {
        1.0
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        host_and_port("tracing.collector", &self.collector)?;
        if !self.path.starts_with('/') {
            return Err(ConfigError::new("tracing.path", "must start with a slash"));
        }
        for (field, share) in [("random_sampling", self.random_sampling), ("client_sampling", self.client_sampling)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(ConfigError::new(format!("tracing.{field}"), "must be between 0 and 1"));
            }
        }
        Ok(())
    }
}

const fn yes() -> bool {
    true
}

impl RouterConfig {
    /// Reads and checks a configuration.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: Self = from_json(text)?;
        config.validate()?;
        Ok(config)
    }

    /// Checks what types cannot say.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.listeners.is_empty() && self.egress.is_none() {
            return Err(ConfigError::new("listeners", "must name at least one listener, unless there is egress"));
        }
        check_listeners(&self.listeners)?;
        self.check_ingress()?;
        self.check_egress()?;
        self.check_durations()?;
        self.check_parking()?;
        self.check_limits()?;
        if self.threads == Some(0) {
            return Err(ConfigError::new("threads", "must be above 0"));
        }
        self.tracing.as_ref().map_or(Ok(()), TracingConfig::validate)
    }

    fn check_ingress(&self) -> Result<(), ConfigError> {
        if self.listeners.is_empty() {
            return Ok(());
        }
        let missing = |field: &str| ConfigError::new(field, "is required for listeners");
        let control = self.control.as_ref().ok_or_else(|| missing("control"))?;
        let worker = self.worker.as_ref().ok_or_else(|| missing("worker"))?;
        host_and_port("control.address", &control.address)?;
        if control.server_name.is_empty() {
            return Err(ConfigError::new("control.server_name", "must not be empty"));
        }
        above_zero("worker.connect_port", worker.connect_port.into())?;
        above_zero("worker.connect_timeout_ms", worker.connect_timeout_ms)?;
        above_zero("worker.handshake_timeout_ms", worker.handshake_timeout_ms)
    }

    fn check_egress(&self) -> Result<(), ConfigError> {
        let Some(egress) = &self.egress else { return Ok(()) };
        let taken = |name: &String| RESERVED.contains(&name.as_str()) || self.listeners.iter().any(|l| l.name == *name);
        if egress.name.is_empty() || taken(&egress.name) {
            return Err(ConfigError::new("egress.name", format!("must be unique and not empty: {:?}", egress.name)));
        }
        egress.check()
    }

    fn check_durations(&self) -> Result<(), ConfigError> {
        for (field, value) in [
            ("timeouts.tls_handshake_ms", self.timeouts.tls_handshake_ms),
            ("timeouts.header_ms", self.timeouts.header_ms),
            ("timeouts.client_idle_ms", self.timeouts.client_idle_ms),
            ("timeouts.stream_idle_ms", self.timeouts.stream_idle_ms),
        ] {
            above_zero(field, value)?;
        }
        Ok(())
    }

    fn check_parking(&self) -> Result<(), ConfigError> {
        self.parking.check()?;
        if self.drain.timeout_ms <= self.parking.budget_ms {
            let problem =
                format!("must exceed parking.budget_ms ({}), or parked requests are cut", self.parking.budget_ms);
            return Err(ConfigError::new("drain.timeout_ms", problem));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), ConfigError> {
        above_zero("cache.entries", self.cache.entries)?;
        above_zero("limits.headers", self.limits.headers as u64)?;
        if self.limits.headers > 4_096 {
            return Err(ConfigError::new("limits.headers", "must be at most 4096"));
        }
        above_zero("limits.connections", self.limits.connections as u64)?;
        above_zero("limits.streams", self.limits.streams.into())?;
        if self.limits.head_bytes < 1_024 {
            return Err(ConfigError::new("limits.head_bytes", "must be at least 1024"));
        }
        Ok(())
    }
}

/// Names under which the probes' addresses are reported.
const RESERVED: [&str; 2] = ["stats", "readiness"];

fn check_listeners(listeners: &[ListenerConfig]) -> Result<(), ConfigError> {
    let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
    for (at, listener) in listeners.iter().enumerate() {
        let field = |name: &str| format!("listeners[{at}].{name}");
        if RESERVED.contains(&listener.name.as_str()) {
            return Err(ConfigError::new(field("name"), format!("{:?} is the probes' own", listener.name)));
        }
        if listener.name.is_empty() || !names.insert(&listener.name) {
            return Err(ConfigError::new(field("name"), format!("must be unique and not empty: {:?}", listener.name)));
        }
        if listener.address.port() != 0 && !addresses.insert(listener.address) {
            return Err(ConfigError::new(
                field("address"),
                format!("{} is taken by another listener", listener.address),
            ));
        }
        match (listener.protocol, &listener.tls) {
            (Protocol::Https, None) => return Err(ConfigError::new(field("tls"), "is required for https")),
            (Protocol::Http, Some(_)) => return Err(ConfigError::new(field("tls"), "is only for https")),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> serde_json::Value {
        serde_json::json!({
            "listeners": [{"name": "plain", "address": "127.0.0.1:0", "protocol": "http", "mode": "direct"}],
            "control": {"address": "127.0.0.1:7443", "server_name": "api.ate-system.svc",
                        "credentials": {"cert": "pod.pem", "key": "pod.pem"}, "roots": "svc.pem"},
            "worker": {"credentials": {"cert": "pod.pem", "key": "pod.pem"}, "roots": "pods.pem"},
        })
    }

    fn problem(value: &serde_json::Value) -> ConfigError {
        RouterConfig::from_json(&value.to_string()).unwrap_err()
    }

    #[test]
    fn the_smallest_configuration_has_the_documented_defaults() {
        let config = RouterConfig::from_json(&sample().to_string()).unwrap();
        assert_eq!((config.cache.ttl_ms, config.parking.budget_ms, config.parking.max), (5_000, 5_000, 1_024));
        let worker = config.worker.as_ref().unwrap();
        assert_eq!((worker.connect_port, worker.connect_timeout_ms), (8443, 1_000));
        assert_eq!((config.drain.delay_ms, config.timeouts.stream_idle_ms), (13_000, 300_000));
        assert!(config.access_log);
    }

    #[test]
    fn an_unknown_field_is_named_with_its_path() {
        let mut value = sample();
        value["worker"]["conect_port"] = 1.into();
        let error = problem(&value);
        assert_eq!(error.field, "worker.conect_port");
        assert!(error.problem.contains("unknown field `conect_port`"), "{error}");
    }

    #[test]
    fn each_bad_value_is_named() {
        let cases: &[(&str, serde_json::Value, &str)] = &[
            ("/listeners/0/protocol", "https".into(), "listeners[0].tls"),
            ("/listeners/0/name", "".into(), "listeners[0].name"),
            ("/listeners/0/name", "stats".into(), "listeners[0].name"),
            ("/listeners/0/address", "nowhere".into(), "listeners[0].address"),
            ("/control/address", "api".into(), "control.address"),
            ("/control/address", "api:0".into(), "control.address"),
            ("/control/server_name", "".into(), "control.server_name"),
            ("/listeners", serde_json::json!([]), "listeners"),
        ];
        for (pointer, bad, field) in cases {
            let mut value = sample();
            *value.pointer_mut(pointer).unwrap() = bad.clone();
            assert_eq!(problem(&value).field, *field, "{pointer}");
        }
    }

    #[test]
    fn a_drain_shorter_than_the_park_budget_is_refused() {
        let mut value = sample();
        value["drain"] = serde_json::json!({"timeout_ms": 5_000});
        assert_eq!(problem(&value).field, "drain.timeout_ms");
    }

    #[test]
    fn two_listeners_cannot_share_a_name_or_an_address() {
        for (name, address, field) in
            [("plain", "127.0.0.1:0", "listeners[1].name"), ("b", "127.0.0.1:9", "listeners[1].address")]
        {
            let mut value = sample();
            value["listeners"][0]["address"] =
                if field.ends_with("address") { "127.0.0.1:9" } else { "127.0.0.1:0" }.into();
            let other = serde_json::json!({"name": name, "address": address, "protocol": "http", "mode": "connect"});
            value["listeners"].as_array_mut().unwrap().push(other);
            assert_eq!(problem(&value).field, field);
        }
    }
}
