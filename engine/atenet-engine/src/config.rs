//! Whole, validated configuration snapshots, read from JSON.
//!
//! Durations are whole milliseconds in fields that end in `_ms`. Unknown fields are errors. Every error names the
//! field by its path, e.g. `listeners[2].tls`.

mod api_front;
mod capture;
mod egress;
mod extproc;
mod router;
mod tunnel;

use std::time::Duration;

use serde::de::DeserializeOwned;
use thiserror::Error;

pub use api_front::{ApiFrontConfig, WarmMethod};
pub use capture::{CaptureConfig, CaptureLimits, DnsAnswers, DnsConfig, GatewayEnd, Range};
pub(crate) use egress::Decides;
pub use egress::{Cidr, CredentialProviderConfig, EgressConfig, EgressDecisionsConfig, EgressLimits};
pub use extproc::ExtProcConfig;
pub use router::{
    CacheConfig, ControlConfig, DrainConfig, LimitsConfig, ListenerConfig, Mode, OtlpProtocol, ParkingConfig, Protocol,
    RouterConfig, TimeoutsConfig, TracingConfig, WorkerHop,
};
pub use tunnel::{ActorDial, TunnelConfig};

/// What is wrong with a configuration, and where.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{field}: {problem}")]
pub struct ConfigError {
    pub field: String,
    pub problem: String,
}

impl ConfigError {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let field = if field == "." { "configuration".to_owned() } else { field };
        ConfigError::new(field, error.into_inner().to_string())
    })?;
    reader.end().map_err(|error| ConfigError::new("configuration", error.to_string()))?;
    Ok(value)
}

/// The shared checks: each says what a field may be.
fn above_zero(field: &str, value: u64) -> Result<(), ConfigError> {
    if value == 0 { Err(ConfigError::new(field, "must be above 0")) } else { Ok(()) }
}

fn host_and_port(field: &str, value: &str) -> Result<(), ConfigError> {
    let good = value.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) && !host.contains(char::is_whitespace)
    });
    if good { Ok(()) } else { Err(ConfigError::new(field, format!("must be host:port, not {value:?}"))) }
}

/// A `*_ms` field as a duration.
#[must_use]
pub const fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}
