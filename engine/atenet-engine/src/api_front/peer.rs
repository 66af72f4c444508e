//! Who the caller is: for warm calls its SPIFFE ID; for the control plane the names of its certificate as they stand.

use http::{HeaderName, HeaderValue};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::spiffe::{Purpose, SpiffeId, identity_of};

/// A certificate was shown, and its chain is good.
pub(super) const CERTIFIED: HeaderName = HeaderName::from_static("x-atenet-certified");
const URI: HeaderName = HeaderName::from_static("x-atenet-peer-uri");
const DNS: HeaderName = HeaderName::from_static("x-atenet-peer-dns");

/// What the handshake of one connection proved.
pub(super) struct Peer {
    /// None unless the leaf carries exactly one, as components' certificates do.
    pub(super) identity: Option<SpiffeId>,
    /// What the control plane is told.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

impl Peer {
    /// `leaf`: of a verified chain, DER; none if the caller showed no certificate.
    pub(super) fn new(leaf: Option<&[u8]>) -> Self {
        let Some(leaf) = leaf else { return Self { identity: None, headers: Vec::new() } };
        let identity = identity_of(leaf, Purpose::Client).ok();
        let mut headers = vec![(CERTIFIED, HeaderValue::from_static("yes"))];
        headers.extend(names(leaf).unwrap_or_default());
        Self { identity, headers }
    }
}

/// All or none: a name that is left out might be the one that makes two of one.
fn names(leaf: &[u8]) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let mut found = Vec::new();
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => {
                for name in &names.general_names {
                    match name {
                        GeneralName::URI(uri) => found.push((URI, printable(uri)?)),
                        GeneralName::DNSName(dns) => found.push((DNS, printable(dns)?)),
                        GeneralName::Invalid(..) => return None,
                        _ => {}
                    }
                }
            }
            ParsedExtension::ParseError { .. } => return None,
            _ => {}
        }
    }
    Some(found)
}

/// gRPC trims metadata and joins nothing, but some stacks split it at commas.
fn printable(name: &str) -> Option<HeaderValue> {
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    HeaderValue::from_str(name).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use rcgen::ExtendedKeyUsagePurpose as Usage;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::testing::pki::{Authority, Leaf};

    const ROUTER: &str = "spiffe://cluster.local/ns/ate-system/sa/atenet-router";

    fn peer(uris: &[&str], dns: &[&str]) -> Peer {
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let leaf = Leaf {
            uris: text(uris),
            dns: text(dns),
            usages: vec![Usage::ClientAuth],
            authority: false,
            expired: false,
        };
        let der = CertificateDer::from_pem_slice(Authority::new().issue(&leaf).as_bytes()).unwrap();
        Peer::new(Some(&der))
    }

    fn said(peer: &Peer) -> Vec<String> {
        peer.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn one_name_is_an_identity_and_all_names_are_told() {
        let router = peer(&[ROUTER], &["a.b", "c.d"]);
        assert_eq!(router.identity.as_ref().map(SpiffeId::as_str), Some(ROUTER));
        let wanted = [
            "x-atenet-certified: yes".to_owned(),
            format!("x-atenet-peer-uri: {ROUTER}"),
            "x-atenet-peer-dns: a.b".to_owned(),
            "x-atenet-peer-dns: c.d".to_owned(),
        ];
        let mut found = said(&router);
        found.sort();
        let mut sorted = wanted.to_vec();
        sorted.sort();
        assert_eq!(found, sorted);
    }

    #[test]
    fn two_names_are_no_identity_and_both_are_told() {
        let two = peer(&[ROUTER, "spiffe://cluster.local/ns/a/sa/b"], &[]);
        assert_eq!(two.identity, None);
        assert_eq!(two.headers.len(), 3);
    }

    #[test]
    fn a_name_that_cannot_be_told_takes_the_others_with_it() {
        for odd in ["spiffe://a/b c", "spiffe://a,spiffe://b", ""] {
            assert_eq!(said(&peer(&[ROUTER, odd], &["a.b"])), ["x-atenet-certified: yes"], "{odd:?}");
        }
    }

    #[test]
    fn nobody_is_nobody() {
        assert!(Peer::new(None).headers.is_empty());
        assert_eq!(said(&Peer::new(Some(b"not a certificate"))), ["x-atenet-certified: yes"]);
    }
}
