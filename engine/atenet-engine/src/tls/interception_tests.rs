use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::BasicConstraints;
use x509_parser::extensions::{GeneralName, ParsedExtension};

use super::*;

struct Ca {
    files: CredentialFiles,
    certificate: rcgen::Certificate,
}

impl Drop for Ca {
    fn drop(&mut self) {
        for file in [&self.files.cert, &self.files.key] {
            fs::remove_file(file).ok();
        }
    }
}

fn ca(change: impl FnOnce(&mut CertificateParams)) -> Ca {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("atenet-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let at = |end: &str| std::env::temp_dir().join(format!("{name}.{end}"));
    let files = CredentialFiles { cert: at("crt"), key: at("key") };
    fs::write(&files.cert, certificate.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    Ca { files, certificate }
}

fn leaf(interception: &Interception, name: &str) -> CertificateDer<'static> {
    interception.0.current().leaf(name).unwrap().0
}

// B114
#[test]
fn a_leaf_has_every_field_that_strict_clients_look_at() {
    let ca = ca(|_| {});
    let minted = leaf(&Interception::new(ca.files.clone()).unwrap(), "api.example.com");
    let (_, cert) = X509Certificate::from_der(&minted).unwrap();
    let (_, issuer) = X509Certificate::from_der(ca.certificate.der()).unwrap();
    cert.verify_signature(Some(issuer.public_key())).unwrap();
    assert_eq!(cert.issuer(), issuer.subject());
    assert!(!cert.is_ca());
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    assert!((now - 310..=now - 290).contains(&cert.validity().not_before.timestamp()));
    assert!(cert.validity().not_after.timestamp() <= now + 24 * 3600);
    let san = cert.subject_alternative_name().unwrap().unwrap();
    assert_eq!(san.value.general_names, [GeneralName::DNSName("api.example.com")]);
    let usage = cert.extended_key_usage().unwrap().unwrap();
    assert!(usage.value.server_auth && !usage.value.client_auth);
    assert!(cert.key_usage().unwrap().unwrap().value.digital_signature());
    assert!(cert.raw_serial().len() <= 20 && cert.raw_serial()[0] < 0x80);
    let id = |cert: &X509Certificate<'_>, own: bool| {
        cert.iter_extensions().find_map(|e| match e.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) if own => Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(aki) if !own => aki.key_identifier.as_ref().map(|id| id.0.to_vec()),
            _ => None,
        })
    };
    assert_eq!(id(&cert, false), id(&issuer, true));
    assert!(id(&issuer, true).is_some());
}

#[test]
fn no_leaf_outlives_its_authority() {
    let soon = SystemTime::now() + Duration::from_secs(3600);
    let ca = ca(|params| params.not_after = soon.into());
    let minted = leaf(&Interception::new(ca.files.clone()).unwrap(), "a.example");
    let (_, cert) = X509Certificate::from_der(&minted).unwrap();
    let end = i64::try_from(soon.duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    assert!(cert.validity().not_after.timestamp() <= end);
}

// B115
#[test]
fn the_longest_names_are_minted_and_each_only_once() {
    let ca = ca(|_| {});
    let interception = Interception::new(ca.files.clone()).unwrap();
    let long = ["x".repeat(63), "y".repeat(63), "z".repeat(63), "w".repeat(61)].join(".");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| interception.acceptor(&long).map(drop).unwrap());
        }
    });
    let same = |a: &TlsAcceptor, b: &TlsAcceptor| Arc::ptr_eq(a.config(), b.config());
    assert!(same(&interception.acceptor(&long).unwrap(), &interception.acceptor(&long).unwrap()));
    interception.acceptor("192.0.2.1").unwrap();
    assert_eq!(interception.remembered(), 2);
    assert!(interception.acceptor("\u{e4}.example").is_err());
    assert!(interception.acceptor("good.example").is_ok());
}

// B137
#[test]
fn an_unusable_authority_is_refused_by_name() {
    let problem = |files: &CredentialFiles| Interception::new(files.clone()).err().unwrap().to_string();
    let leaf = ca(|params| params.is_ca = IsCa::ExplicitNoCa);
    assert!(problem(&leaf.files).contains("no certificate authority"), "{}", problem(&leaf.files));
    let tomorrow = ca(|params| params.not_before = (SystemTime::now() + LEAF_LIFE).into());
    assert!(problem(&tomorrow.files).contains("is valid from"), "{}", problem(&tomorrow.files));
    let (one, other) = (ca(|_| {}), ca(|_| {}));
    let mixed = CredentialFiles { cert: one.files.cert.clone(), key: other.files.key.clone() };
    assert!(problem(&mixed).contains("not a pair"), "{}", problem(&mixed));
    assert!(problem(&CredentialFiles { cert: Path::new("/none").into(), ..mixed }).contains("/none"));
}

#[test]
fn a_new_authority_mints_new_leaves() {
    let (old, new) = (ca(|_| {}), ca(|_| {}));
    let interception = Interception::new(old.files.clone()).unwrap();
    let before = interception.acceptor("a.example").unwrap();
    fs::write(&old.files.key, fs::read(&new.files.key).unwrap()).unwrap();
    fs::write(&old.files.cert, [&fs::read(&new.files.cert).unwrap()[..], b"\n"].concat()).unwrap();
    let after = interception.acceptor("a.example").unwrap();
    assert!(!Arc::ptr_eq(before.config(), after.config()));
    let minted = leaf(&interception, "a.example");
    let (_, cert) = X509Certificate::from_der(&minted).unwrap();
    let (_, issuer) = X509Certificate::from_der(new.certificate.der()).unwrap();
    cert.verify_signature(Some(issuer.public_key())).unwrap();
}
