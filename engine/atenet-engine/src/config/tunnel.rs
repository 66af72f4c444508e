//! atunnel's configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::{ConfigError, above_zero, from_json};
use crate::spiffe::SpiffeId;
use crate::tls::CredentialFiles;

/// The worker's end of the tunnels.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelConfig {
    pub listen: SocketAddr,
    /// The worker's own identity.
    pub credentials: CredentialFiles,
    /// The authorities of the router's certificate.
    pub trust_bundle: PathBuf,
    /// The only client that passes the handshake.
    pub allowed_client: SpiffeId,
    #[serde(default)]
    pub actor_dial: ActorDial,
    /// Runtime threads; absent: one a core.
    #[serde(default)]
    pub threads: Option<usize>,
}

/// Connecting to an actor's port.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActorDial {
    /// One dial, its attempts together.
    pub timeout_ms: u64,
    /// How long a refused port is tried again after the actor's activation.
    pub retry_window_ms: u64,
}

impl Default for ActorDial {
    fn default() -> Self {
        Self { timeout_ms: 5_000, retry_window_ms: 500 }
    }
}

impl TunnelConfig {
    /// Reads and checks a configuration.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: Self = from_json(text)?;
        above_zero("actor_dial.timeout_ms", config.actor_dial.timeout_ms)?;
        if config.threads == Some(0) {
            return Err(ConfigError::new("threads", "must be above 0"));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_no_spiffe_id_is_named() {
        let text = r#"{"listen": "127.0.0.1:0", "credentials": {"cert": "a", "key": "a"}, "trust_bundle": "b",
                       "allowed_client": "router"}"#;
        assert_eq!(TunnelConfig::from_json(text).unwrap_err().field, "allowed_client");
    }
}
