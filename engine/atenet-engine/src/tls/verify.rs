//! Who the other side is: chain first, then the name.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::{Callers, PeerName, TlsError};
use crate::spiffe::{IdentityError, Purpose, SpiffeId, identity_of};

/// The proof that a peer holds its key: the same for clients and servers, which rustls asks by two traits.
macro_rules! handshake_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            leaf: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, leaf, signature, &self.provider.signature_verification_algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            leaf: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, leaf, signature, &self.provider.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

fn refuse(error: IdentityError) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
}

/// Clients whose certificate chains to `roots`, read from `path`, and names one of `callers`.
pub(super) fn client_verifier(
    roots: RootCertStore,
    path: &Path,
    callers: &Callers,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let chain = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| TlsError::Pem { path: path.to_owned(), problem: error.to_string() })?;
    let allowed = match callers {
        Callers::Any => return Ok(chain),
        Callers::OneUri => None,
        Callers::OneOf(allowed) => Some(allowed.clone()),
    };
    Ok(Arc::new(AllowedClients { chain, allowed, provider }))
}

/// Clients whose certificate carries one SPIFFE ID, of a list if there is one.
struct AllowedClients {
    chain: Arc<dyn ClientCertVerifier>,
    allowed: Option<Vec<SpiffeId>>,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for AllowedClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllowedClients").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl ClientCertVerifier for AllowedClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.chain.verify_client_cert(leaf, intermediates, now)?;
        let id = identity_of(leaf, Purpose::Client).map_err(refuse)?;
        if self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&id)) {
            return Ok(verified);
        }
        tracing::debug!(peer = %id, "client identity is not allowed here");
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    handshake_signatures!();
}

/// The one server that a connection is meant for.
pub(super) struct PinnedServer {
    roots: Arc<RootCertStore>,
    peer: PeerName,
    provider: Arc<CryptoProvider>,
}

impl PinnedServer {
    pub(super) fn new(roots: Arc<RootCertStore>, peer: PeerName, provider: Arc<CryptoProvider>) -> Self {
        Self { roots, peer, provider }
    }

    fn check_name(
        &self,
        leaf: &CertificateDer<'_>,
        parsed: &ParsedCertificate<'_>,
        sni: &ServerName<'_>,
    ) -> Result<(), Error> {
        match &self.peer {
            PeerName::AnyFromRoots => Ok(()),
            PeerName::Dns(_) => verify_server_name(parsed, sni),
            PeerName::Spiffe(wanted) => {
                let found = identity_of(leaf, Purpose::Server).map_err(refuse)?;
                if found == *wanted {
                    return Ok(());
                }
                tracing::warn!(%wanted, %found, "the server presented another identity");
                Err(Error::InvalidCertificate(CertificateError::NotValidForName))
            }
        }
    }
}

impl fmt::Debug for PinnedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedServer").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for PinnedServer {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        sni: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(leaf)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        self.check_name(leaf, &parsed, sni)?;
        Ok(ServerCertVerified::assertion())
    }

    handshake_signatures!();
}
