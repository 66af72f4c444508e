//! What the engine could not do: the phase, the peer and the cause, in one line.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use crate::config::ConfigError;
use crate::tls::TlsError;

/// Everything that can keep the engine from starting or going on. Per-request
/// failures are [`crate::refusal::Refusal`]s instead.
#[derive(Debug, Error)]
pub enum EngineError {
    #[error("configuration: {0}")]
    Config(#[from] ConfigError),
    #[error("listener {name}: cannot listen on {address}: {source}")]
    Listen { name: String, address: SocketAddr, source: io::Error },
    /// The same for an address that may hold a host's name.
    #[error("{name}: cannot listen on {address}: {source}")]
    Bind { name: String, address: String, source: io::Error },
    #[error("{role}: {source}")]
    Tls { role: String, source: TlsError },
    #[error("egress name servers: {0}")]
    Names(String),
    #[error("egress: cannot read this machine's addresses: {0}")]
    Addresses(io::Error),
    #[error("control plane {address}: {reason}")]
    Control { address: String, reason: String },
    #[error("cannot start the runtime: {0}")]
    Runtime(io::Error),
    /// The object is in no state for this call: `not started`, `already started`, `closed`.
    #[error("{0}")]
    State(&'static str),
}

impl EngineError {
    /// A TLS failure with the part of the configuration it belongs to, e.g. `listener direct-tls`.
    #[must_use]
    pub fn tls(role: impl Into<String>, source: TlsError) -> Self {
        Self::Tls { role: role.into(), source }
    }
}
