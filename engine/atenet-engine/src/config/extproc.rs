//! The configuration of the decisions that Envoy asks for.

use std::net::SocketAddr;

use serde::Deserialize;

use super::{ConfigError, ControlConfig, ParkingConfig, TracingConfig, above_zero, from_json, host_and_port};

/// The external processing service beside Envoy.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtProcConfig {
    /// Loopback only: whoever reaches it can wake any actor.
    pub listen: SocketAddr,
    pub control: ControlConfig,
    #[serde(default)]
    pub parking: ParkingConfig,
    /// Where workers' atunnel listens.
    #[serde(default = "ExtProcConfig::default_port")]
    pub connect_port: u16,
    /// How many of the last requests are remembered for the status page.
    #[serde(default = "ExtProcConfig::default_recent")]
    pub recent: usize,
    /// Spans over OTLP; absent: none, but `traceparent` still travels.
    #[serde(default)]
    pub tracing: Option<TracingConfig>,
    /// Runtime threads; absent: one a core.
    #[serde(default)]
    pub threads: Option<usize>,
}

impl ExtProcConfig {
    const fn default_port() -> u16 {
        8443
    }

    const fn default_recent() -> usize {
        100
    }

    /// Reads and checks a configuration.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: Self = from_json(text)?;
        if !config.listen.ip().is_loopback() {
            return Err(ConfigError::new("listen", format!("must be a loopback address, not {}", config.listen)));
        }
        host_and_port("control.address", &config.control.address)?;
        config.parking.check()?;
        above_zero("connect_port", config.connect_port.into())?;
        config.tracing.as_ref().map_or(Ok(()), TracingConfig::validate)?;
        match config.threads {
            Some(0) => Err(ConfigError::new("threads", "must be above 0")),
            _ => Ok(config),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(listen: &str, parking: &str) -> String {
        let text = format!(
            r#"{{"listen": "{listen}", "parking": {parking}, "control": {{"address": "api:443", "server_name": "api",
                "credentials": {{"cert": "a", "key": "a"}}, "roots": "b"}}}}"#
        );
        ExtProcConfig::from_json(&text).map_err(|error| error.field).err().unwrap_or_default()
    }

    #[test]
    fn it_listens_on_loopback_only() {
        assert_eq!(problem("0.0.0.0:50051", "{}"), "listen");
        assert_eq!(problem("127.0.0.1:50051", "{}"), "");
    }

    #[test]
    fn parking_is_checked_as_for_the_native_router() {
        assert_eq!(problem("127.0.0.1:0", r#"{"budget_ms": 0}"#), "parking.budget_ms");
        assert_eq!(problem("127.0.0.1:0", r#"{"retry_factor": 0.5}"#), "parking.retry_factor");
    }
}
