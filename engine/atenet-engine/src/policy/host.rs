//! One spelling for each host, wherever it was written: SNI, Host, `:authority`, CONNECT, a DNS question (row E-09).
//!
//! What resolvers, libraries and people read differently is refused, not interpreted: a name that two readers
//! understand differently passes one check and is dialled by another.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use thiserror::Error;

pub(super) const MAX_NAME: usize = 253;
pub(super) const MAX_LABEL: usize = 63;

/// Why bytes are no host.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    #[error("must not be empty")]
    Empty,
    #[error("must be at most 253 characters")]
    TooLong,
    #[error("must use only letters, digits, '-' and '.' (names in other scripts in their xn-- form)")]
    Character,
    #[error("must not have an empty label, a label over 63 characters, or one that starts or ends with '-'")]
    Label,
    #[error("must be a name or an address in its usual form (four decimal numbers, or IPv6 in brackets)")]
    Numeral,
    #[error("must have an IPv6 address and nothing else between brackets")]
    Bracket,
    #[error("must have a port from 1 to 65535 after the colon")]
    Port,
}

/// A host in the one spelling that everything compares, dials, mints for and logs. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// Lower case, no final dot, 1 to 253 bytes.
    Name(Arc<str>),
    /// An address; one that maps IPv4 into IPv6 is the IPv4 address.
    Address(IpAddr),
}

impl Host {
    /// Parses a host without a port. IPv6 stands in brackets, as in a URL.
    pub fn parse(text: &[u8]) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix(b"[") {
            let inner = rest.strip_suffix(b"]").ok_or(HostError::Bracket)?;
            return Self::v6(inner);
        }
        if let Some(address) = ascii(text).and_then(|text| text.parse::<Ipv4Addr>().ok()) {
            return Ok(Self::Address(address.into()));
        }
        let name = normal_name(text)?;
        Ok(Self::Name(name.into()))
    }

    /// Parses a TLS server name: a name, never an address (RFC 6066, section 3).
    pub fn from_sni(text: &[u8]) -> Result<Self, HostError> {
        match Self::parse(text)? {
            Self::Address(_) => Err(HostError::Numeral),
            name @ Self::Name(_) => Ok(name),
        }
    }

    fn v6(text: &[u8]) -> Result<Self, HostError> {
        let address: Ipv6Addr = ascii(text).and_then(|text| text.parse().ok()).ok_or(HostError::Bracket)?;
        Ok(Self::Address(IpAddr::V6(address).to_canonical()))
    }

    /// The name, unless it is an address.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

/// As it stands in a Host header, without a port.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `host` or `host:port`, as in a Host header, `:authority` or the target of a CONNECT.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

impl Authority {
    /// Parses the one form: no user, no path, no white space; a colon is followed by a port.
    pub fn parse(text: &[u8]) -> Result<Self, HostError> {
        let after_bracket = text.iter().rposition(|b| *b == b']').map_or(0, |at| at + 1);
        let colon = memchr::memchr(b':', text.get(after_bracket..).unwrap_or_default()).map(|at| at + after_bracket);
        let Some(colon) = colon else {
            return Ok(Self { host: Host::parse(text)?, port: None });
        };
        let (host, port) = text.split_at(colon);
        let host = Host::parse(host)?;
        Ok(Self { host, port: Some(port_number(&port[1..])?) })
    }
}

fn port_number(text: &[u8]) -> Result<u16, HostError> {
    // `u16::from_str` would take a plus sign.
    if text.is_empty() || text.len() > 5 || !text.iter().all(u8::is_ascii_digit) {
        return Err(HostError::Port);
    }
    match ascii(text).and_then(|text| text.parse().ok()) {
        None | Some(0) => Err(HostError::Port),
        Some(port) => Ok(port),
    }
}

fn ascii(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok().filter(|text| text.is_ascii())
}

fn normal_name(text: &[u8]) -> Result<String, HostError> {
    let text = text.strip_suffix(b".").unwrap_or(text);
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.len() > MAX_NAME {
        return Err(HostError::TooLong);
    }
    let text = ascii(text).ok_or(HostError::Character)?.to_ascii_lowercase();
    check_name(&text)?;
    Ok(text)
}

/// Checks a name that is already in its normal spelling.
pub(super) fn check_name(name: &str) -> Result<(), HostError> {
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if name.len() > MAX_NAME {
        return Err(HostError::TooLong);
    }
    if !name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')) {
        return Err(HostError::Character);
    }
    let good =
        |label: &str| !label.is_empty() && label.len() <= MAX_LABEL && !label.starts_with('-') && !label.ends_with('-');
    if !name.split('.').all(good) {
        return Err(HostError::Label);
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if is_numeral(last) { Err(HostError::Numeral) } else { Ok(()) }
}

/// A last label that some resolvers read as a number, and then the whole as an IPv4 address.
fn is_numeral(label: &str) -> bool {
    let hex = |digits: &str| digits.bytes().all(|b| b.is_ascii_hexdigit());
    label.bytes().all(|b| b.is_ascii_digit()) || label.strip_prefix("0x").is_some_and(hex)
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
