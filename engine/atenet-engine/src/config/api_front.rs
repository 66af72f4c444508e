//! The configuration of the control plane's front.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::{ConfigError, from_json};
use crate::tls::CredentialFiles;

/// What stands before the control plane's own server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiFrontConfig {
    /// `host:port` to serve gRPC over mutual TLS on; port 0 is any free one.
    pub listen: String,
    pub credentials: CredentialFiles,
    /// Authorities that callers must chain to.
    pub client_roots: PathBuf,
    /// The Unix socket of the control plane's own server. Whoever can open it is believed.
    pub upstream: PathBuf,
    /// The control plane's SQLite file. No other copy of SQLite in this process may have it open.
    pub store: PathBuf,
    /// Which SPIFFE ID may call which warm method, as the control plane's table of roles has it.
    pub grants: HashMap<String, HashSet<WarmMethod>>,
    /// Runtime threads; absent: one a core.
    #[serde(default)]
    pub threads: Option<usize>,
}

/// A method that the front can answer by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum WarmMethod {
    GetActor,
    GetActorEgressPolicy,
    ResumeActor,
    /// A stream of look-ups, each answered as `ResumeActor` of a running actor is.
    Locate,
}

impl ApiFrontConfig {
    /// Reads and checks a configuration.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: Self = from_json(text)?;
        let port = config.listen.rsplit_once(':').map(|(host, port)| (host.is_empty(), port.parse::<u16>().is_ok()));
        if port != Some((false, true)) {
            return Err(ConfigError::new("listen", format!("must be host:port, not {:?}", config.listen)));
        }
        match config.threads {
            Some(0) => Err(ConfigError::new("threads", "must be above 0")),
            _ => Ok(config),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(listen: &str, grants: &str) -> String {
        let text = format!(
            r#"{{"listen": "{listen}", "credentials": {{"cert": "a", "key": "a"}}, "client_roots": "b",
                "upstream": "c", "store": "d", "grants": {grants}}}"#
        );
        ApiFrontConfig::from_json(&text).map_err(|error| error.field).err().unwrap_or_default()
    }

    #[test]
    fn faulty_fields_are_named() {
        assert_eq!(
            problem("127.0.0.1:0", r#"{"spiffe://a/b": ["GetActor", "GetActorEgressPolicy", "ResumeActor"]}"#),
            ""
        );
        assert_eq!(problem("127.0.0.1", "{}"), "listen");
        assert_eq!(problem(":7443", "{}"), "listen");
        assert_eq!(problem("127.0.0.1:0", r#"{"spiffe://a/b": ["DeleteActor"]}"#), "grants.spiffe://a/b[0]");
    }
}
