//! Handshakes over in-memory pipes, with real certificates.

use std::sync::Arc;

use rcgen::ExtendedKeyUsagePurpose as Usage;
use rustls::HandshakeKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::testing::pki::{Authority, Leaf, Scratch};

const ROUTER: &str = "spiffe://cluster.local/ns/ate-system/sa/atenet-router";
const WORKER: &str = "spiffe://cluster.local/ns/default/sa/local";

fn id(text: &str) -> SpiffeId {
    SpiffeId::parse(text).unwrap()
}

struct Setup {
    scratch: Scratch,
    authority: Authority,
    roots: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let (scratch, authority) = (Scratch::new(), Authority::new());
        let roots = scratch.put("roots.pem", &authority.pem);
        Self { scratch, authority, roots }
    }

    fn credential(&self, name: &str, leaf: &Leaf) -> CredentialFiles {
        self.authority.credential(&self.scratch, name, leaf)
    }

    /// A listener with this certificate that lets in only the router.
    fn server(&self, leaf: &Leaf) -> ServerTls {
        let auth = ClientAuth::Require { roots: self.roots.clone(), callers: Callers::OneOf(vec![id(ROUTER)]) };
        ServerTls::new(self.credential("server.pem", leaf), auth, &[b"h2"]).unwrap()
    }

    fn client(&self, leaf: &Leaf) -> ClientTls {
        ClientTls::new(Some(self.credential("client.pem", leaf)), self.roots.clone(), &[b"h2"]).unwrap()
    }
}

/// One handshake and one byte: in TLS 1.3 a client learns only by reading that the server refused it.
async fn meet(server: &ServerTls, client: &ClientTls, peer: PeerName) -> Result<(), String> {
    let (near, far) = duplex(65_536);
    let accepting = tokio::spawn(greet(server.clone(), far));
    let met = async {
        let mut stream = client.connect(near, peer).await.map_err(|error| error.to_string())?;
        stream.read_u8().await.map_err(|error| error.to_string()).map(drop)
    };
    let client_side = met.await;
    let server_side = accepting.await.unwrap();
    server_side.and(client_side)
}

async fn greet(server: ServerTls, stream: DuplexStream) -> Result<(), String> {
    let mut stream = server.acceptor().accept(stream).await.map_err(|error| error.to_string())?;
    stream.write_u8(1).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn only_the_allowed_identity_passes() {
    let setup = Setup::new();
    let server = setup.server(&Leaf::pod(WORKER));
    let peer = || PeerName::Spiffe(id(WORKER));
    meet(&server, &setup.client(&Leaf::pod(ROUTER)), peer()).await.unwrap();

    let two = Leaf { uris: vec![ROUTER.into(), "https://example.com/".into()], ..Leaf::pod(ROUTER) };
    let twice = Leaf { uris: vec![ROUTER.into(), ROUTER.into()], ..Leaf::pod(ROUTER) };
    let none = Leaf { uris: Vec::new(), dns: vec!["atenet-router.ate-system.svc".into()], ..Leaf::pod(ROUTER) };
    let authority = Leaf { authority: true, ..Leaf::pod(ROUTER) };
    let server_only = Leaf { usages: vec![Usage::ServerAuth], ..Leaf::pod(ROUTER) };
    let no_usage = Leaf { usages: Vec::new(), ..Leaf::pod(ROUTER) };
    let expired = Leaf { expired: true, ..Leaf::pod(ROUTER) };
    let cases = [
        ("another account", Leaf::pod("spiffe://cluster.local/ns/ate-system/sa/atenet-egress")),
        ("another trust domain", Leaf::pod("spiffe://cluster.other/ns/ate-system/sa/atenet-router")),
        ("upper case", Leaf::pod("spiffe://CLUSTER.local/ns/ate-system/sa/atenet-router")),
        ("trailing slash", Leaf::pod("spiffe://cluster.local/ns/ate-system/sa/atenet-router/")),
        ("two names", two),
        ("the name twice", twice),
        ("no name", none),
        ("an authority", authority),
        ("for servers only", server_only),
        ("for nothing", no_usage),
        ("expired", expired),
    ];
    for (what, leaf) in cases {
        assert!(meet(&server, &setup.client(&leaf), peer()).await.is_err(), "{what} passed");
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_or_of_another_authority_is_refused() {
    let setup = Setup::new();
    let server = setup.server(&Leaf::pod(WORKER));
    let bare = ClientTls::new(None, setup.roots.clone(), &[b"h2"]).unwrap();
    assert!(meet(&server, &bare, PeerName::AnyFromRoots).await.is_err());
    let files = Authority::new().credential(&setup.scratch, "foreign.pem", &Leaf::pod(ROUTER));
    let foreign = ClientTls::new(Some(files), setup.roots.clone(), &[b"h2"]).unwrap();
    assert!(meet(&server, &foreign, PeerName::AnyFromRoots).await.is_err());
}

#[tokio::test]
async fn a_server_must_be_who_the_connection_is_meant_for() {
    let setup = Setup::new();
    let leaf = Leaf { dns: vec!["worker.test".into()], ..Leaf::pod(WORKER) };
    let server = setup.server(&leaf);
    let client = setup.client(&Leaf::pod(ROUTER));
    for good in [PeerName::Spiffe(id(WORKER)), PeerName::Dns("worker.test".into()), PeerName::AnyFromRoots] {
        meet(&server, &client, good.clone()).await.unwrap_or_else(|error| panic!("{good:?}: {error}"));
    }
    for bad in [PeerName::Spiffe(id(ROUTER)), PeerName::Dns("other.test".into())] {
        assert!(meet(&server, &client, bad.clone()).await.is_err(), "{bad:?} passed");
    }
}

#[tokio::test]
async fn a_server_with_two_identities_or_of_another_authority_is_none() {
    let setup = Setup::new();
    let client = setup.client(&Leaf::pod(ROUTER));
    let two = Leaf { uris: vec![WORKER.into(), ROUTER.into()], ..Leaf::pod(WORKER) };
    assert!(meet(&setup.server(&two), &client, PeerName::Spiffe(id(WORKER))).await.is_err());
    let files = Authority::new().credential(&setup.scratch, "foreign.pem", &Leaf::pod(WORKER));
    let foreign = ServerTls::new(files, ClientAuth::None, &[b"h2"]).unwrap();
    for peer in [PeerName::Spiffe(id(WORKER)), PeerName::AnyFromRoots] {
        assert!(meet(&foreign, &client, peer).await.is_err());
    }
}

#[tokio::test]
async fn replaced_credentials_are_used_without_a_restart() {
    let setup = Setup::new();
    let server = setup.server(&Leaf::pod(WORKER));
    let client = setup.client(&Leaf::pod(ROUTER));
    let next = "spiffe://cluster.local/ns/default/sa/next";
    setup.credential("server.pem", &Leaf::pod(next));
    meet(&server, &client, PeerName::Spiffe(id(next))).await.unwrap();
    assert!(meet(&server, &client, PeerName::Spiffe(id(WORKER))).await.is_err());
    setup.credential("client.pem", &Leaf::pod(WORKER));
    assert!(meet(&server, &client, PeerName::Spiffe(id(next))).await.is_err(), "the old client certificate was sent");
}

#[tokio::test]
async fn an_unusable_replacement_keeps_the_last_good_one() {
    let setup = Setup::new();
    let server = setup.server(&Leaf::pod(WORKER));
    let client = setup.client(&Leaf::pod(ROUTER));
    let key_of_another = setup.authority.issue(&Leaf::pod(WORKER));
    let (key, _) = key_of_another.split_once("-----BEGIN CERTIFICATE").unwrap();
    let certificate = setup.authority.issue(&Leaf::pod(WORKER));
    let (_, certificate) = certificate.split_once("-----BEGIN CERTIFICATE").unwrap();
    for bad in ["", "no PEM", key, &format!("{key}-----BEGIN CERTIFICATE{certificate}")] {
        setup.scratch.put("server.pem", bad);
        meet(&server, &client, PeerName::Spiffe(id(WORKER))).await.unwrap();
    }
    std::fs::remove_file(setup.scratch.path("server.pem")).unwrap();
    meet(&server, &client, PeerName::Spiffe(id(WORKER))).await.unwrap();
    setup.credential("server.pem", &Leaf::pod(ROUTER));
    meet(&server, &client, PeerName::Spiffe(id(ROUTER))).await.unwrap();
}

#[tokio::test]
async fn a_replaced_trust_bundle_holds_from_the_next_handshake() {
    let setup = Setup::new();
    let server = setup.server(&Leaf::pod(WORKER));
    let client = setup.client(&Leaf::pod(ROUTER));
    let other = Authority::new();
    setup.scratch.put("roots.pem", &format!("{}{}", setup.authority.pem, other.pem));
    meet(&server, &client, PeerName::Spiffe(id(WORKER))).await.unwrap();
    setup.scratch.put("roots.pem", &other.pem);
    assert!(meet(&server, &client, PeerName::Spiffe(id(WORKER))).await.is_err());
}

/// B135: a client that keeps sessions must not get past the check of its certificate with one.
#[tokio::test]
async fn no_session_is_resumed_on_a_listener_that_authenticates() {
    let setup = Setup::new();
    let server = setup.server(&Leaf::service("worker.test"));
    let KeyPair { chain, key } = read_key_pair(&setup.credential("client.pem", &Leaf::pod(ROUTER))).unwrap();
    for version in VERSIONS {
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(read_roots(&setup.roots).unwrap())
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        for _ in 0..3 {
            let (near, far) = duplex(65_536);
            let accepting = tokio::spawn(greet(server.clone(), far));
            let mut stream = connector.connect("worker.test".try_into().unwrap(), near).await.unwrap();
            stream.read_u8().await.unwrap();
            accepting.await.unwrap().unwrap();
            let (_, session) = stream.get_ref();
            assert_eq!(session.handshake_kind(), Some(HandshakeKind::Full), "{version:?}");
            assert_eq!(session.tls13_tickets_received(), 0, "{version:?}");
        }
    }
}

#[test]
fn faulty_files_are_named_at_the_start() {
    let setup = Setup::new();
    let missing = CredentialFiles { cert: "/nowhere/a.pem".into(), key: "/nowhere/a.pem".into() };
    let Err(error) = ServerTls::new(missing, ClientAuth::None, &[]) else { panic!("made of nothing") };
    assert!(error.to_string().starts_with("cannot read /nowhere/a.pem"), "{error}");

    let roots = setup.scratch.put("empty.pem", "");
    let Err(error) = ClientTls::new(None, roots, &[]) else { panic!("made of nothing") };
    assert!(error.to_string().ends_with("empty.pem: holds no certificate"), "{error}");

    let one = setup.credential("one.pem", &Leaf::pod(ROUTER));
    let two = setup.credential("two.pem", &Leaf::pod(ROUTER));
    let mixed = CredentialFiles { cert: one.cert, key: two.key };
    let Err(error) = ServerTls::new(mixed, ClientAuth::None, &[]) else { panic!("made of two") };
    assert!(error.to_string().contains("one.pem: the certificate does not fit the key in"), "{error}");
}
