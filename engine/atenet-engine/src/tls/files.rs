//! Key and certificate files: reading them, and noticing that they changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{CredentialFiles, TlsError};

pub(super) struct KeyPair {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn pem_error(path: &Path, problem: impl ToString) -> TlsError {
    TlsError::Pem { path: path.to_owned(), problem: problem.to_string() }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| pem_error(path, error))?;
    if found.is_empty() { Err(pem_error(path, "holds no certificate")) } else { Ok(found) }
}

pub(super) fn read_key_pair(files: &CredentialFiles) -> Result<KeyPair, TlsError> {
    let chain = certificates(&files.cert, &read(&files.cert)?)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|_| pem_error(&files.key, "holds no private key that can be read"))?;
    Ok(KeyPair { chain, key })
}

pub(super) fn read_roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, &read(path)?)? {
        roots.add(certificate).map_err(|error| pem_error(path, error))?;
    }
    Ok(roots)
}

/// One file's state: any replacement or rewrite changes it.
type Fingerprint = Option<(u64, u64, i64, i64, u64)>;

fn fingerprint(path: &Path) -> Fingerprint {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.mtime() * 1_000_000_000 + meta.mtime_nsec(), meta.ctime_nsec(), meta.size()))
}

/// A value built from files and rebuilt when one of them changes.
///
/// The check is one `stat` a file and happens per handshake, which costs a thousand times as much.
pub(super) struct Watched<T> {
    paths: Vec<PathBuf>,
    build: Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>,
    state: Mutex<State<T>>,
}

struct State<T> {
    seen: Vec<Fingerprint>,
    value: T,
}

impl<T: Clone> Watched<T> {
    pub(super) fn new(
        paths: Vec<PathBuf>,
        build: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        // Looked at before it is read: a change in between is then seen as one.
        let seen = look(&paths);
        let value = build()?;
        Ok(Self { paths, build: Box::new(build), state: Mutex::new(State { seen, value }) })
    }

    /// The value of the files as they are, or of the last good ones.
    pub(super) fn current(&self) -> T {
        let now = look(&self.paths);
        let mut state = self.state.lock();
        if state.seen != now {
            match (self.build)() {
                Ok(value) => {
                    tracing::info!(files = ?self.paths, "credential files changed and were read again");
                    state.value = value;
                }
                // `seen` moves on all the same: logged once for each change, not for each handshake.
                Err(error) => tracing::error!(%error, "changed credential files are unusable; the last good ones stay"),
            }
            state.seen = now;
        }
        state.value.clone()
    }
}

fn look(paths: &[PathBuf]) -> Vec<Fingerprint> {
    paths.iter().map(|path| fingerprint(path)).collect()
}
