//! Authorities and credentials of one test, as files in a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use crate::tls::CredentialFiles;

/// A directory that goes with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("atenet-engine-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// By rename, as credentials are replaced.
    pub(crate) fn put(&self, name: &str, text: &str) -> PathBuf {
        let (scratch, path) = (self.path(".new"), self.path(name));
        std::fs::write(&scratch, text).unwrap();
        std::fs::rename(scratch, &path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// One certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// What a leaf says.
pub(crate) struct Leaf {
    pub(crate) uris: Vec<String>,
    pub(crate) dns: Vec<String>,
    pub(crate) usages: Vec<ExtendedKeyUsagePurpose>,
    pub(crate) authority: bool,
    pub(crate) expired: bool,
}

impl Leaf {
    /// A pod's certificate: one URI, both usages.
    pub(crate) fn pod(uri: &str) -> Self {
        Self {
            uris: vec![uri.to_owned()],
            dns: Vec::new(),
            usages: vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth],
            authority: false,
            expired: false,
        }
    }

    /// A service's certificate: a DNS name, for servers.
    pub(crate) fn service(dns: &str) -> Self {
        let usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Self { uris: Vec::new(), dns: vec![dns.to_owned()], usages, authority: false, expired: false }
    }
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Key and chain in one PEM text.
    pub(crate) fn issue(&self, leaf: &Leaf) -> String {
        let mut params = CertificateParams::new(leaf.dns.clone()).unwrap();
        let uris = leaf.uris.iter().map(|uri| SanType::URI(Ia5String::try_from(uri.as_str()).unwrap()));
        params.subject_alt_names.extend(uris);
        params.extended_key_usages.clone_from(&leaf.usages);
        if leaf.authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        if leaf.expired {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
            params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        format!("{}{}", key.serialize_pem(), certificate.pem())
    }

    /// The same as a file.
    pub(crate) fn credential(&self, scratch: &Scratch, name: &str, leaf: &Leaf) -> CredentialFiles {
        one_file(&scratch.put(name, &self.issue(leaf)))
    }
}

pub(crate) fn one_file(path: &Path) -> CredentialFiles {
    CredentialFiles { cert: path.to_owned(), key: path.to_owned() }
}
