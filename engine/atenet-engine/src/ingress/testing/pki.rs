//! Authorities and credentials of one test, as files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType, string::Ia5String,
};

use crate::config::RouterConfig;
use crate::spiffe::SpiffeId;
use crate::tls::{Callers, ClientAuth, ClientTls, CredentialFiles, PeerName, ServerTls};

pub(in crate::ingress) struct Pki {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Drop for Pki {
    fn drop(&mut self) {
        let _best_effort = std::fs::remove_dir_all(&self.directory);
    }
}

impl Pki {
    pub(in crate::ingress) fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("atenet-ingress-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap();
        std::fs::write(directory.join("roots.pem"), ca.pem()).unwrap();
        let pki = Arc::new(Self { directory, issuer: Issuer::new(params, key) });
        pki.credential("router", Self::router_id().as_str(), "router.test");
        pki
    }

    pub(in crate::ingress) fn router_id() -> SpiffeId {
        SpiffeId::pod("ate-system", "atenet-router").unwrap()
    }

    fn roots(&self) -> PathBuf {
        self.directory.join("roots.pem")
    }

    fn files(&self, name: &str) -> CredentialFiles {
        let file = self.directory.join(format!("{name}.pem"));
        CredentialFiles { cert: file.clone(), key: file }
    }

    fn credential(&self, name: &str, uri: &str, dns: &str) {
        let mut params = CertificateParams::new(vec![dns.to_owned()]).unwrap();
        if !uri.is_empty() {
            params.subject_alt_names.push(SanType::URI(Ia5String::try_from(uri).unwrap()));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        write(&self.files(name).cert, &format!("{}{}", cert.pem(), key.serialize_pem()));
    }

    /// A worker's TLS, presenting `id`.
    pub(in crate::ingress) fn worker_tls(&self, id: &SpiffeId) -> ServerTls {
        let name = format!("worker-{}", id.as_str().replace(['/', ':'], "_"));
        self.credential(&name, id.as_str(), "worker.test");
        let auth = ClientAuth::Require { roots: self.roots(), callers: Callers::OneOf(vec![Self::router_id()]) };
        ServerTls::new(self.files(&name), auth, &[b"h2"]).unwrap()
    }

    /// A client's TLS to the router's secure listeners.
    pub(in crate::ingress) async fn connect(
        &self,
        stream: tokio::net::TcpStream,
        alpn: &[&[u8]],
    ) -> crate::tls::ClientStream<tokio::net::TcpStream> {
        let tls = ClientTls::new(None, self.roots(), alpn).unwrap();
        tls.connect(stream, PeerName::Dns("router.test".into())).await.unwrap()
    }

    /// All four listeners on ports of the system's choice.
    pub(in crate::ingress) fn router_config(&self) -> RouterConfig {
        let files = self.files("router");
        let credentials = serde_json::json!({"cert": files.cert, "key": files.key});
        let listener = |name: &str, protocol: &str, mode: &str| {
            let tls = if protocol == "https" { credentials.clone() } else { serde_json::Value::Null };
            serde_json::json!({"name": name, "address": "127.0.0.1:0", "protocol": protocol, "mode": mode, "tls": tls})
        };
        let config = serde_json::json!({
            "listeners": [
                listener("plain", "http", "direct"),
                listener("secure", "https", "direct"),
                listener("connect", "http", "connect"),
                listener("connect-secure", "https", "connect"),
            ],
            "control": {"address": "127.0.0.1:1", "server_name": "api.test", "credentials": credentials, "roots": self.roots()},
            "worker": {"credentials": credentials, "roots": self.roots()},
        });
        RouterConfig::from_json(&config.to_string()).unwrap()
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
