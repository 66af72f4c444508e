//! The egress gateway's part of the configuration.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ConfigError, ControlConfig, above_zero, from_json, host_and_port};
use crate::tls::CredentialFiles;

/// Everything that the egress gateway needs besides the router's common parts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressConfig {
    /// Unique among listeners; names the bound address.
    pub name: String,
    pub address: SocketAddr,
    /// The gateway's server certificate.
    pub tls: CredentialFiles,
    /// The actor-identity authority, which issues tunnel certificates.
    pub client_roots: PathBuf,
    pub control: ControlConfig,
    /// The authority that leaves are minted with; absent: `https` rules cannot be served.
    #[serde(default)]
    pub interception: Option<CredentialFiles>,
    /// What origins' certificates must chain to.
    pub origin_roots: PathBuf,
    /// Addresses that are dialled although they are not public.
    #[serde(default)]
    pub allow_cidrs: Vec<Cidr>,
    /// Who resolves origins' names; none: the system's resolver.
    #[serde(default)]
    pub name_servers: Vec<SocketAddr>,
    #[serde(default)]
    pub credential_providers: Vec<CredentialProviderConfig>,
    #[serde(default)]
    pub limits: EgressLimits,
}

/// The decisions of an egress gateway whose bytes an Envoy carries.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressDecisionsConfig {
    /// Loopback only: whoever reaches it speaks for any actor.
    pub listen: SocketAddr,
    /// In its place: a Unix socket, for this account alone.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    pub control: ControlConfig,
    /// What origins' certificates must chain to: Envoy checks that, but a bad file is an error at start.
    pub origin_roots: PathBuf,
    #[serde(default)]
    pub allow_cidrs: Vec<Cidr>,
    #[serde(default)]
    pub name_servers: Vec<SocketAddr>,
    #[serde(default)]
    pub credential_providers: Vec<CredentialProviderConfig>,
    #[serde(default)]
    pub limits: EgressLimits,
    /// Whether Envoy can show leaves: else `https` rules pass nothing.
    pub intercepts: bool,
    /// How long a policy is used, and that there is none.
    pub policy_ttl_ms: u64,
    /// How many of the last requests are remembered for the status page.
    #[serde(default = "EgressDecisionsConfig::default_recent")]
    pub recent: usize,
    /// Runtime threads; absent: one a core.
    #[serde(default)]
    pub threads: Option<usize>,
}

impl EgressDecisionsConfig {
    const fn default_recent() -> usize {
        100
    }

    /// Reads and checks a configuration.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: Self = from_json(text)?;
        if !config.listen.ip().is_loopback() {
            return Err(ConfigError::new("listen", format!("must be a loopback address, not {}", config.listen)));
        }
        config.decides().check()?;
        match config.threads {
            Some(0) => Err(ConfigError::new("threads", "must be above 0")),
            _ => Ok(config),
        }
    }

    pub(crate) fn decides(&self) -> Decides<'_> {
        Decides {
            control: &self.control,
            origin_roots: &self.origin_roots,
            allow_cidrs: &self.allow_cidrs,
            name_servers: &self.name_servers,
            credential_providers: &self.credential_providers,
            limits: &self.limits,
        }
    }
}

/// Who is asked for the secrets of one provider class.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialProviderConfig {
    /// The authority of its `ate-secret://` URIs.
    pub class: String,
    pub target: ControlConfig,
}

/// Times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressLimits {
    /// A connection must show what it is within this.
    pub sniff_ms: u64,
    /// One name look-up, and the TCP connection to one address.
    pub connect_ms: u64,
    /// The TLS handshake with an origin.
    pub origin_handshake_ms: u64,
    /// How often a live tunnel's actor and rules are looked at again.
    pub recheck_ms: u64,
    /// How long a credential is used.
    pub credential_ttl_ms: u64,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            sniff_ms: 5_000,
            connect_ms: 10_000,
            origin_handshake_ms: 10_000,
            recheck_ms: 10_000,
            credential_ttl_ms: 30_000,
        }
    }
}

/// What decisions need, whoever carries the bytes.
pub(crate) struct Decides<'a> {
    pub(crate) control: &'a ControlConfig,
    pub(crate) origin_roots: &'a PathBuf,
    pub(crate) allow_cidrs: &'a [Cidr],
    pub(crate) name_servers: &'a [SocketAddr],
    pub(crate) credential_providers: &'a [CredentialProviderConfig],
    pub(crate) limits: &'a EgressLimits,
}

impl EgressConfig {
    pub(crate) fn decides(&self) -> Decides<'_> {
        Decides {
            control: &self.control,
            origin_roots: &self.origin_roots,
            allow_cidrs: &self.allow_cidrs,
            name_servers: &self.name_servers,
            credential_providers: &self.credential_providers,
            limits: &self.limits,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.decides().check()
    }
}

impl Decides<'_> {
    /// Names fields as they stand below `egress`.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_peer("egress.control", self.control)?;
        for (at, server) in self.name_servers.iter().enumerate() {
            above_zero(&format!("egress.name_servers[{at}].port"), server.port().into())?;
        }
        let mut classes = HashSet::new();
        for (at, provider) in self.credential_providers.iter().enumerate() {
            let field = format!("egress.credential_providers[{at}]");
            check_peer(&format!("{field}.target"), &provider.target)?;
            if provider.class.is_empty() || !classes.insert(&provider.class) {
                let problem = format!("must be unique and not empty: {:?}", provider.class);
                return Err(ConfigError::new(format!("{field}.class"), problem));
            }
        }
        for (field, value) in [
            ("egress.limits.sniff_ms", self.limits.sniff_ms),
            ("egress.limits.connect_ms", self.limits.connect_ms),
            ("egress.limits.origin_handshake_ms", self.limits.origin_handshake_ms),
            ("egress.limits.recheck_ms", self.limits.recheck_ms),
        ] {
            above_zero(field, value)?;
        }
        Ok(())
    }
}

fn check_peer(field: &str, peer: &ControlConfig) -> Result<(), ConfigError> {
    host_and_port(&format!("{field}.address"), &peer.address)?;
    if peer.server_name.is_empty() {
        return Err(ConfigError::new(format!("{field}.server_name"), "must not be empty"));
    }
    Ok(())
}

/// A block of addresses, `10.0.0.0/8`; a lone address is a block of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    network: IpAddr,
    bits: u8,
}

impl Cidr {
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => same_prefix(net.to_bits().into(), ip.to_bits().into(), 32 - self.bits),
            (IpAddr::V6(net), IpAddr::V6(ip)) => same_prefix(net.to_bits(), ip.to_bits(), 128 - self.bits),
            _ => false,
        }
    }
}

fn same_prefix(a: u128, b: u128, rest: u8) -> bool {
    (a ^ b).checked_shr(rest.into()).unwrap_or(0) == 0
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("must be a block of addresses such as 10.0.0.0/8 or fd00::/8, not {text:?}");
        let (network, bits) = text.split_once('/').map_or((text, None), |(network, bits)| (network, Some(bits)));
        let network: IpAddr = network.parse().map_err(|_| bad())?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|b| b.is_ascii_digit()) => bits.parse().map_err(|_| bad())?,
            Some(_) => return Err(bad()),
        };
        if bits > most { Err(bad()) } else { Ok(Self { network, bits }) }
    }
}

impl TryFrom<String> for Cidr {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> Self {
        cidr.to_string()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_its_addresses() {
        let holds = |cidr: &str, ip: &str| cidr.parse::<Cidr>().unwrap().contains(ip.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("0.0.0.0/0", "255.0.0.1") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("::/0", "ffff::1") && holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe00::1"));
        for bad in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0/8", "a/8", "::/129"] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
    }
}
