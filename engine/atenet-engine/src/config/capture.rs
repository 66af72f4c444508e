//! The worker's end of the egress: capture and DNS relay.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

use super::{ConfigError, above_zero, from_json};

/// What every actor's capture and relay share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureConfig {
    /// The gateway end of each actor's network.
    pub address: Ipv4Addr,
    /// Where redirected connections arrive; 0 picks one, for tests.
    pub capture_port: u16,
    #[serde(default = "dns_port")]
    pub dns_port: u16,
    /// Absent: no gateway can be used, and nothing leaves.
    #[serde(default)]
    pub gateway: Option<GatewayEnd>,
    #[serde(default)]
    pub limits: CaptureLimits,
    #[serde(default)]
    pub dns: DnsConfig,
    /// Runtime threads; absent: one a core.
    #[serde(default)]
    pub threads: Option<usize>,
}

const fn dns_port() -> u16 {
    53
}

/// How the egress gateway proves itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayEnd {
    pub trust_bundle: PathBuf,
    pub server_name: String,
}

/// What one actor may use.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaptureLimits {
    /// Connections open at a time.
    pub connections: usize,
    /// Finding the gateway's address and connecting to it.
    pub connect_ms: u64,
    /// All until the gateway has answered.
    pub open_ms: u64,
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self { connections: 1024, connect_ms: 3_000, open_ms: 10_000 }
    }
}

/// What a name that the policy allows is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DnsAnswers {
    /// An address of the relay's own: no query leaves.
    Synthetic,
    /// What the node's resolvers say.
    Upstream,
}

/// The relay.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DnsConfig {
    pub answers: DnsAnswers,
    pub range: Range,
    /// For `upstream`, in the order in which they are asked.
    pub upstream: Vec<SocketAddr>,
    /// A policy that nobody confirmed for so long is not used.
    pub policy_max_age_ms: u64,
    /// Names that have an address of their own at a time.
    pub names: u32,
    pub queries_per_second: u32,
}

impl Default for DnsConfig {
    fn default() -> Self {
        Self {
            answers: DnsAnswers::Synthetic,
            range: Range { first: Ipv4Addr::new(198, 18, 0, 0), bits: 15 },
            upstream: Vec::new(),
            policy_max_age_ms: 10_000,
            names: 8192,
            queries_per_second: 1000,
        }
    }
}

/// A block of IPv4 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Range {
    pub first: Ipv4Addr,
    pub bits: u8,
}

impl Range {
    /// How many addresses it has.
    #[must_use]
    pub const fn size(self) -> u32 {
        1 << (32 - self.bits)
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("must be a block from /8 to /24 such as 198.18.0.0/15, not {text:?}");
        let (first, bits) = text.split_once('/').ok_or_else(bad)?;
        let (first, bits): (Ipv4Addr, u8) = (first.parse().map_err(|_| bad())?, bits.parse().map_err(|_| bad())?);
        if !(8..=24).contains(&bits) || first.to_bits() & (u32::MAX >> bits) != 0 {
            return Err(bad());
        }
        Ok(Self { first, bits })
    }
}

impl TryFrom<String> for Range {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl CaptureConfig {
    /// Reads and checks a configuration.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: Self = from_json(text)?;
        for (field, value) in [
            ("limits.connections", config.limits.connections as u64),
            ("limits.connect_ms", config.limits.connect_ms),
            ("limits.open_ms", config.limits.open_ms),
            ("dns.policy_max_age_ms", config.dns.policy_max_age_ms),
            ("dns.names", config.dns.names.into()),
            ("dns.queries_per_second", config.dns.queries_per_second.into()),
        ] {
            above_zero(field, value)?;
        }
        if config.dns.answers == DnsAnswers::Upstream && config.dns.upstream.is_empty() {
            return Err(ConfigError::new("dns.upstream", "must name a resolver when answers are upstream's"));
        }
        if config.gateway.as_ref().is_some_and(|gateway| gateway.server_name.is_empty()) {
            return Err(ConfigError::new("gateway.server_name", "must not be empty"));
        }
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
    fn what_is_wrong_is_named() {
        let field = |more: &str| {
            let text = format!(r#"{{"address": "169.254.17.1", "capture_port": 15001{more}}}"#);
            CaptureConfig::from_json(&text).err().map(|error| error.field)
        };
        assert_eq!(field(""), None);
        assert_eq!(field(r#", "dns": {"answers": "upstream"}"#).as_deref(), Some("dns.upstream"));
        assert_eq!(field(r#", "dns": {"range": "198.18.0.1/15"}"#).as_deref(), Some("dns.range"));
        assert_eq!(field(r#", "dns": {"range": "0.0.0.0/0"}"#).as_deref(), Some("dns.range"));
        assert_eq!(field(r#", "limits": {"connections": 0}"#).as_deref(), Some("limits.connections"));
        let gateway = r#", "gateway": {"trust_bundle": "x", "server_name": ""}"#;
        assert_eq!(field(gateway).as_deref(), Some("gateway.server_name"));
    }

    #[test]
    fn a_range_has_its_size() {
        assert_eq!("198.18.0.0/15".parse::<Range>().unwrap().size(), 131_072);
    }
}
