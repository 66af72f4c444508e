//! SPIFFE IDs and where they stand in a certificate.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

const SCHEME: &str = "spiffe://";
const MAX_ID: usize = 2048;

/// Why a value is not a SPIFFE ID.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum SpiffeError {
    #[error("must start with spiffe://")]
    Scheme,
    #[error("needs a trust domain of a-z, 0-9, '.', '-' and '_'")]
    TrustDomain,
    #[error("needs a path of non-empty segments of letters, digits, '.', '-' and '_'")]
    Path,
    #[error("must be at most 2048 characters")]
    TooLong,
}

/// A checked SPIFFE ID. Two IDs are equal only byte for byte. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpiffeId(Arc<str>);

impl SpiffeId {
    /// Parses the one canonical spelling; nothing is normalised.
    pub fn parse(value: &str) -> Result<Self, SpiffeError> {
        check(value)?;
        Ok(Self(value.into()))
    }

    /// The same check for text that is already shared.
    pub fn from_shared(value: Arc<str>) -> Result<Self, SpiffeError> {
        check(&value)?;
        Ok(Self(value))
    }

    /// `spiffe://cluster.local/ns/<namespace>/sa/<account>`.
    pub fn pod(namespace: &str, account: &str) -> Result<Self, SpiffeError> {
        Self::parse(&format!("{SCHEME}cluster.local/ns/{namespace}/sa/{account}"))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(value: &str) -> Result<(), SpiffeError> {
    if value.len() > MAX_ID {
        return Err(SpiffeError::TooLong);
    }
    let rest = value.strip_prefix(SCHEME).ok_or(SpiffeError::Scheme)?;
    let (domain, path) = rest.split_once('/').ok_or(SpiffeError::Path)?;
    let domain_byte = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    if domain.is_empty() || !domain.bytes().all(domain_byte) {
        return Err(SpiffeError::TrustDomain);
    }
    let path_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let segment = |s: &str| !s.is_empty() && s != "." && s != ".." && s.bytes().all(path_byte);
    if path.split('/').all(segment) { Ok(()) } else { Err(SpiffeError::Path) }
}

impl TryFrom<String> for SpiffeId {
    type Error = SpiffeError;

    fn try_from(value: String) -> Result<Self, SpiffeError> {
        check(&value)?;
        Ok(Self(value.into()))
    }
}

impl From<SpiffeId> for String {
    fn from(id: SpiffeId) -> Self {
        id.as_str().to_owned()
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a certificate names no peer.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum IdentityError {
    #[error("the certificate cannot be parsed")]
    Malformed,
    #[error("the certificate is a certificate authority's")]
    Authority,
    #[error("the certificate has {0} URI names, not exactly one")]
    UriCount(usize),
    #[error("the certificate's URI name is not a SPIFFE ID: {0}")]
    Uri(#[from] SpiffeError),
    #[error("the certificate is not meant for {0}")]
    Usage(&'static str),
}

/// What a peer's certificate must be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Client,
    Server,
}

/// The identity that a leaf certificate carries: exactly one URI name, a SPIFFE ID,
/// in a certificate that is no authority's and names the purpose. The chain is not checked here.
pub fn identity_of(der: &[u8], purpose: Purpose) -> Result<SpiffeId, IdentityError> {
    let (rest, cert) = X509Certificate::from_der(der).map_err(|_| IdentityError::Malformed)?;
    if !rest.is_empty() {
        return Err(IdentityError::Malformed);
    }
    if cert.is_ca() {
        return Err(IdentityError::Authority);
    }
    check_usage(&cert, purpose)?;
    sole_uri(&cert)
}

fn check_usage(cert: &X509Certificate<'_>, purpose: Purpose) -> Result<(), IdentityError> {
    let usage = cert.extended_key_usage().map_err(|_| IdentityError::Malformed)?;
    let (good, name) = match purpose {
        Purpose::Client => (usage.is_some_and(|u| u.value.client_auth), "client authentication"),
        Purpose::Server => (usage.is_some_and(|u| u.value.server_auth), "server authentication"),
    };
    if good { Ok(()) } else { Err(IdentityError::Usage(name)) }
}

fn sole_uri(cert: &X509Certificate<'_>) -> Result<SpiffeId, IdentityError> {
    // All SAN extensions are counted: a second one must not hide a second name.
    let mut uris = cert.extensions().iter().filter_map(|e| match e.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(san) => Some(&san.general_names),
        _ => None,
    });
    let uris: Vec<&str> = uris
        .by_ref()
        .flatten()
        .filter_map(|name| match name {
            GeneralName::URI(uri) => Some(*uri),
            _ => None,
        })
        .collect();
    match uris.as_slice() {
        [uri] => Ok(SpiffeId::parse(uri)?),
        other => Err(IdentityError::UriCount(other.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_spelling_is_kept_byte_for_byte() {
        let id = SpiffeId::pod("ate-system", "atenet-router").unwrap();
        assert_eq!(id.as_str(), "spiffe://cluster.local/ns/ate-system/sa/atenet-router");
    }

    #[test]
    fn every_other_spelling_is_refused() {
        let cases = [
            "",
            "spiffe://",
            "spiffe:///a",
            "spiffe://a",
            "spiffe://a/",
            "SPIFFE://a/b",
            "https://a/b",
            "spiffe://A/b",
            "spiffe://a//b",
            "spiffe://a/b/",
            "spiffe://a/./b",
            "spiffe://a/../b",
            "spiffe://a/b?c",
            "spiffe://a/b#c",
            "spiffe://a:1/b",
            "spiffe://u@a/b",
            "spiffe://a/%62",
            "spiffe://a/b c",
            "spiffe://a/b\0",
        ];
        for case in cases {
            assert!(SpiffeId::parse(case).is_err(), "{case:?} was accepted");
        }
    }
}
