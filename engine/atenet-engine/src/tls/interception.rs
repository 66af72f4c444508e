//! Leaves minted for the names that an actor asks for, and the TLS server that shows them (row E-20).

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use moka::sync::Cache;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::files::{KeyPair as Pair, Watched, read_key_pair};
use super::{CredentialFiles, TlsError, VERSIONS, provider};

/// Clocks of actors may be behind.
const BACKDATED: Duration = Duration::from_secs(300);
const LEAF_LIFE: Duration = Duration::from_secs(24 * 3600);
/// A leaf is shown for so long, well within its life.
const KEPT: Duration = Duration::from_secs(6 * 3600);
const LEAVES: u64 = 10_000;

/// Mints leaves. Names of one authority are minted once each, concurrent first requests included; a new authority
/// file means new leaves.
pub struct Interception(Watched<Arc<Authority>>);

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    chain: Vec<CertificateDer<'static>>,
    not_after: SystemTime,
    leaves: Cache<String, Arc<ServerConfig>>,
}

impl Interception {
    /// Reads the authority's certificate and key now, so that a bad one is an error at start.
    pub fn new(files: CredentialFiles) -> Result<Self, TlsError> {
        let paths = vec![files.cert.clone(), files.key.clone()];
        Ok(Self(Watched::new(paths, move || Authority::read(&files).map(Arc::new))?))
    }

    /// A server that shows a leaf for `name` (a normal host name, or an address) and speaks HTTP/2 and HTTP/1.1.
    pub fn acceptor(&self, name: &str) -> Result<TlsAcceptor, TlsError> {
        let authority = self.0.current();
        let minted = authority.leaves.try_get_with_by_ref(name, || authority.mint(name).map(Arc::new));
        let config = minted.map_err(|error: Arc<TlsError>| TlsError::Config(error.to_string()))?;
        Ok(TlsAcceptor::from(config))
    }

    /// Seconds for one leaf with its server: the mean over `count` new names, none of which is remembered. For measures.
    pub fn minting_seconds(&self, count: u32) -> Result<f64, TlsError> {
        let (authority, began) = (self.0.current(), Instant::now());
        for number in 0..count {
            authority.mint(&format!("host-{number}.example.com"))?;
        }
        Ok(began.elapsed().as_secs_f64() / f64::from(count.max(1)))
    }

    /// Leaves that are remembered now.
    #[cfg(test)]
    fn remembered(&self) -> u64 {
        let authority = self.0.current();
        authority.leaves.run_pending_tasks();
        authority.leaves.entry_count()
    }
}

impl Authority {
    fn read(files: &CredentialFiles) -> Result<Self, TlsError> {
        let Pair { chain, key } = read_key_pair(files)?;
        let bad = |problem: String| TlsError::Pem { path: files.cert.clone(), problem };
        let certificate = chain.first().ok_or_else(|| bad("holds no certificate".into()))?;
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| bad(error.to_string()))?;
        if !parsed.is_ca() {
            return Err(bad("is no certificate authority's certificate".into()));
        }
        if !parsed.validity().is_valid() {
            let validity = parsed.validity();
            return Err(bad(format!("is valid from {} to {} only", validity.not_before, validity.not_after)));
        }
        let end = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
        let pair = KeyPair::try_from(&key).map_err(|error| TlsError::Pem {
            path: files.key.clone(),
            problem: format!("is no key that can sign: {error}"),
        })?;
        if &*parsed.public_key().subject_public_key.data != pair.der_bytes() {
            let problem = "they are not a pair".to_owned();
            return Err(TlsError::Mismatch { cert: files.cert.clone(), key: files.key.clone(), problem });
        }
        let issuer = Issuer::from_ca_cert_der(certificate, pair).map_err(|error| bad(error.to_string()))?;
        let leaves = Cache::builder().max_capacity(LEAVES).time_to_live(KEPT).build();
        Ok(Self { issuer, not_after: UNIX_EPOCH + Duration::from_secs(end), leaves, chain })
    }

    fn mint(&self, name: &str) -> Result<ServerConfig, TlsError> {
        let (leaf, key) = self.leaf(name).map_err(|error| TlsError::Config(format!("no leaf for {name}: {error}")))?;
        let chain = std::iter::once(leaf).chain(self.chain.iter().cloned()).collect();
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| TlsError::Config(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Nothing outlives the leaf that it was agreed under.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    fn leaf(&self, name: &str) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), rcgen::Error> {
        let now = SystemTime::now();
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, "egress gateway"); // names may be longer than a CN
        params.not_before = (now - BACKDATED).into();
        params.not_after = (now + LEAF_LIFE).min(self.not_after).into();
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &self.issuer)?;
        Ok((leaf.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
    }
}

#[cfg(test)]
#[path = "interception_tests.rs"]
mod tests;
