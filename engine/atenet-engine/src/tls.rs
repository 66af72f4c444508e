//! The one place that picks the TLS provider, suites and versions, verifies peers and reads key files.
//!
//! Files are read again when they change; a bad new file keeps the old one and is logged once. Listeners that
//! authenticate clients issue no tickets and keep no sessions: a resumed session would skip the check of the client.

mod files;
mod held;
mod interception;
#[cfg(test)]
mod tests;
mod verify;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::Deserialize;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use self::files::{KeyPair, Watched, read_key_pair, read_roots};
pub use self::held::HeldCertificate;
pub use self::interception::Interception;
use self::verify::{PinnedServer, client_verifier};
pub use crate::spiffe::SpiffeId;

/// A stream to a server that passed [`ClientTls::connect`].
pub type ClientStream<S> = tokio_rustls::client::TlsStream<S>;
/// A stream from a client that passed [`ServerTls::acceptor`].
pub type ServerStream<S> = tokio_rustls::server::TlsStream<S>;

const VERSIONS: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    PROVIDER.clone()
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], TlsError> {
    let mut bytes = [0; N];
    let filled = provider().secure_random.fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| TlsError::Config("no randomness".to_owned()))
}

/// A certificate chain (leaf first) and its private key, in PEM. Both may be the same file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// What keeps TLS from working: which file, or which side of a handshake.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path}: {problem}")]
    Pem { path: PathBuf, problem: String },
    #[error("{cert}: the certificate does not fit the key in {key}: {problem}")]
    Mismatch { cert: PathBuf, key: PathBuf, problem: String },
    #[error("configuration: {0}")]
    Config(String),
    #[error("handshake: {0}")]
    Handshake(io::Error),
}

/// Who may connect to a listener.
#[derive(Debug, Clone)]
pub enum ClientAuth {
    /// Anyone.
    None,
    /// A certificate that chains to `roots` and names one of `callers`.
    Require { roots: PathBuf, callers: Callers },
}

/// What a client's certificate must say besides chaining to the roots.
#[derive(Debug, Clone)]
pub enum Callers {
    /// Anything; who it names is looked at later.
    Any,
    /// Exactly one URI name; which, is for the listener to judge.
    OneUri,
    /// Exactly one URI name, which is one of these.
    OneOf(Vec<SpiffeId>),
}

/// Who a server must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// The certificate carries this DNS name (also sent as SNI).
    Dns(String),
    /// The certificate carries exactly this one URI name.
    Spiffe(SpiffeId),
    /// Any certificate that chains to the roots.
    AnyFromRoots,
}

/// A listener's side. Cheap to clone.
#[derive(Clone)]
pub struct ServerTls(Arc<Watched<Arc<ServerConfig>>>);

impl ServerTls {
    /// Reads the files now, so that a bad one is an error at start.
    pub fn new(credentials: CredentialFiles, client_auth: ClientAuth, alpn: &[&[u8]]) -> Result<Self, TlsError> {
        let alpn: Vec<Vec<u8>> = alpn.iter().map(|name| name.to_vec()).collect();
        let mut paths = vec![credentials.cert.clone(), credentials.key.clone()];
        if let ClientAuth::Require { roots, .. } = &client_auth {
            paths.push(roots.clone());
        }
        let build = move || server_config(&credentials, &client_auth, &alpn).map(Arc::new);
        Ok(Self(Arc::new(Watched::new(paths, build)?)))
    }

    /// For one handshake, with the files as they are now.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.current())
    }
}

fn server_config(files: &CredentialFiles, auth: &ClientAuth, alpn: &[Vec<u8>]) -> Result<ServerConfig, TlsError> {
    let KeyPair { chain, key } = read_key_pair(files)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .map_err(|error| TlsError::Config(error.to_string()))?;
    let authenticated = !matches!(auth, ClientAuth::None);
    let builder = match auth {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Require { roots, callers } => {
            builder.with_client_cert_verifier(client_verifier(read_roots(roots)?, roots, callers, provider())?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| mismatch(files, &error))?;
    config.alpn_protocols = alpn.to_vec();
    if authenticated {
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
    }
    Ok(config)
}

/// A dialler's side. Cheap to clone.
#[derive(Clone)]
pub struct ClientTls(Arc<Watched<Arc<ClientSide>>>);

struct ClientSide {
    config: ClientConfig,
    roots: Arc<RootCertStore>,
}

impl ClientTls {
    /// Reads the files now, so that a bad one is an error at start. `None`: no client certificate.
    pub fn new(credentials: Option<CredentialFiles>, roots: PathBuf, alpn: &[&[u8]]) -> Result<Self, TlsError> {
        let alpn: Vec<Vec<u8>> = alpn.iter().map(|name| name.to_vec()).collect();
        let mut paths = vec![roots.clone()];
        paths.extend(credentials.iter().flat_map(|files| [files.cert.clone(), files.key.clone()]));
        let build = move || client_side(credentials.as_ref(), &roots, &alpn).map(Arc::new);
        Ok(Self(Arc::new(Watched::new(paths, build)?)))
    }

    /// One handshake, with the files as they are now. Sets no time limit.
    pub async fn connect<S>(&self, stream: S, peer: PeerName) -> Result<ClientStream<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.handshake(stream, peer, None).await
    }

    /// The same, with a client certificate that is in no file.
    pub async fn connect_as<S>(
        &self,
        stream: S,
        peer: PeerName,
        certificate: &HeldCertificate,
    ) -> Result<ClientStream<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.handshake(stream, peer, Some(certificate)).await
    }

    async fn handshake<S>(
        &self,
        stream: S,
        peer: PeerName,
        certificate: Option<&HeldCertificate>,
    ) -> Result<ClientStream<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let side = self.0.current();
        let name = sni_of(&peer)?;
        let mut config = side.config.clone();
        if let Some(certificate) = certificate {
            config.client_auth_cert_resolver = certificate.resolver();
        }
        let verifier = PinnedServer::new(side.roots.clone(), peer, provider());
        config.dangerous().set_certificate_verifier(Arc::new(verifier));
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(TlsError::Handshake)
    }
}

/// Without a DNS name no SNI is sent: workers are told apart by their SPIFFE ID.
fn sni_of(peer: &PeerName) -> Result<ServerName<'static>, TlsError> {
    match peer {
        PeerName::Dns(name) => {
            ServerName::try_from(name.clone()).map_err(|_| TlsError::Config(format!("{name:?} is not a server name")))
        }
        PeerName::Spiffe(_) | PeerName::AnyFromRoots => {
            Ok(ServerName::IpAddress(std::net::IpAddr::from(std::net::Ipv4Addr::UNSPECIFIED).into()))
        }
    }
}

fn client_side(files: Option<&CredentialFiles>, roots: &Path, alpn: &[Vec<u8>]) -> Result<ClientSide, TlsError> {
    let roots = Arc::new(read_roots(roots)?);
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .map_err(|error| TlsError::Config(error.to_string()))?
        .with_root_certificates(roots.clone());
    let mut config = match files {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let KeyPair { chain, key } = read_key_pair(files)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| mismatch(files, &error))?
        }
    };
    config.alpn_protocols = alpn.to_vec();
    // A resumed session would carry over an earlier peer's identity, whatever is pinned now.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(ClientSide { config, roots })
}

fn mismatch(files: &CredentialFiles, error: &rustls::Error) -> TlsError {
    TlsError::Mismatch { cert: files.cert.clone(), key: files.key.clone(), problem: error.to_string() }
}
