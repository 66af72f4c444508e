use std::sync::Arc;

use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

/// What a real client sends first: hybrid post-quantum key share and all.
fn real(name: &str) -> Vec<u8> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768];
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let mut out = Vec::new();
    client.write_tls(&mut out).unwrap();
    out
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    let cut = message.chunks(size).map(|part| {
        let length = u16::try_from(part.len()).unwrap().to_be_bytes();
        [&[HANDSHAKE, 3, 1], &length[..], part].concat()
    });
    cut.collect::<Vec<_>>().concat()
}

fn block16(content: &[u8]) -> Vec<u8> {
    [&u16::try_from(content.len()).unwrap().to_be_bytes()[..], content].concat()
}

/// A small hello with these extensions, already encoded.
fn made(extensions: Option<&[Vec<u8>]>) -> Vec<u8> {
    let tail = extensions.map_or(vec![], |all| block16(&all.concat()));
    let body = [&[3, 3][..], &[7; 32], &[0], &block16(&[0x13, 0x01]), &[1, 0], &tail].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[CLIENT_HELLO][..], &length[1..], &body].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &block16(content)].concat()
}

fn named(names: &[&[u8]]) -> Vec<u8> {
    let list: Vec<u8> = names.iter().flat_map(|name| [vec![HOST_NAME], block16(name)].concat()).collect();
    extension(SERVER_NAME, &block16(&list))
}

fn read(message: &[u8]) -> Result<Option<Hello>, HelloError> {
    client_hello(&records(message, MAX_RECORD))
}

fn name_of(bytes: &[u8]) -> Option<String> {
    let hello = client_hello(bytes).unwrap()?;
    Some(String::from_utf8(hello.server_name.unwrap()).unwrap())
}

// B108
#[test]
fn a_post_quantum_hello_is_read_from_any_number_of_segments() {
    let bytes = real("api.example.com");
    assert!(bytes.len() > 1_200, "no hybrid key share: {} bytes", bytes.len());
    for n in 0..bytes.len() {
        assert_eq!(client_hello(&bytes[..n]), Ok(None), "{n} bytes");
    }
    assert_eq!(name_of(&bytes).as_deref(), Some("api.example.com"));
}

// B108, B109
#[test]
fn a_hello_is_read_from_any_number_of_records() {
    let message = real("denied.example.com").split_off(RECORD_HEADER);
    for size in [1, 3, message.len() - 1, message.len()] {
        assert_eq!(name_of(&records(&message, size)).as_deref(), Some("denied.example.com"), "records of {size}");
    }
}

// B110
#[test]
fn a_hello_without_extensions_or_name_names_nothing() {
    assert_eq!(read(&made(None)), Ok(Some(Hello { server_name: None })));
    assert_eq!(read(&made(Some(&[]))), Ok(Some(Hello { server_name: None })));
    assert_eq!(read(&made(Some(&[extension(0xfe0d, b"grease")]))), Ok(Some(Hello { server_name: None })));
}

#[test]
fn a_name_that_can_be_read_in_two_ways_is_refused() {
    let twice = [named(&[b"a.example"]), named(&[b"b.example"])];
    assert_eq!(read(&made(Some(&twice))), Err(HelloError::Malformed));
    for sni in [
        named(&[b"a.example", b"b.example"]),
        named(&[b""]),
        named(&[]),
        extension(SERVER_NAME, b""),
        extension(SERVER_NAME, &block16(&[1, 0, 1, b'a'])),
        extension(SERVER_NAME, &[0, 4, 0, 0, 1, b'a', b'b']),
        extension(SERVER_NAME, &[0, 9, 0, 0, 1, b'a']),
    ] {
        assert_eq!(read(&made(Some(std::slice::from_ref(&sni)))), Err(HelloError::ServerName), "{sni:?}");
    }
}

#[test]
fn a_broken_hello_is_malformed_as_soon_as_it_shows() {
    let good = made(Some(&[named(&[b"a.example"])]));
    assert_eq!(client_hello(b"GET /"), Err(HelloError::Record));
    assert_eq!(client_hello(&[HANDSHAKE, 2]), Err(HelloError::Record));
    assert_eq!(client_hello(&[HANDSHAKE, 3, 1, 0, 0]), Err(HelloError::Record));
    assert_eq!(client_hello(&[HANDSHAKE, 3, 1, 0x40, 1]), Err(HelloError::Record));
    assert_eq!(client_hello(&[HANDSHAKE, 3, 1, 0, 1, 2]), Err(HelloError::Malformed));
    assert_eq!(client_hello(&[HANDSHAKE, 3, 1, 0, 4, 1, 1, 0, 1]), Err(HelloError::TooLarge));
    let other_record = [&records(&good[..10], 10)[..], &[20, 3, 1, 0, 1, 1]].concat();
    assert_eq!(client_hello(&other_record), Err(HelloError::Record));
    assert_eq!(read(&[&good[..], &[0]].concat()), Err(HelloError::Malformed));
    let mut short = good.clone();
    short.pop();
    short[3] -= 1;
    assert_eq!(read(&short), Err(HelloError::Malformed));
}

#[test]
fn the_size_is_bounded() {
    let length = u32::try_from(MAX_HELLO + 1).unwrap().to_be_bytes();
    assert_eq!(read(&[&[CLIENT_HELLO][..], &length[1..]].concat()), Err(HelloError::TooLarge));
    let drip = [&[CLIENT_HELLO, 0, 0xff, 0xff][..], &[0; 0xffff]].concat();
    assert_eq!(client_hello(&records(&drip, 1)), Err(HelloError::TooLarge));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), as_handshake in any::<bool>()) {
        let bytes = if as_handshake { [&[HANDSHAKE, 3, 1, 1, 0, 1, 0][..], &bytes].concat() } else { bytes };
        let _ = client_hello(&bytes);
    }

    /// One changed byte never moves the name to something that was not sent, and a cut never makes one up.
    #[test]
    fn a_damaged_hello_is_whole_or_refused(at in 0usize..400, value in any::<u8>(), size in 1usize..200) {
        let mut message = made(Some(&[extension(10, &[0, 2, 0, 29]), named(&[b"allowed.example.com"])]));
        let at = at % message.len();
        message[at] = value;
        let whole = read(&message);
        let cut = client_hello(&records(&message, size));
        // A length that became shorter may end at a record's end, and what is behind it is the next message's.
        prop_assert!(cut == whole || whole == Err(HelloError::Malformed), "{cut:?} is not {whole:?}");
        let named = |hello: &Hello| hello.server_name.clone();
        let name = cut.ok().flatten().as_ref().and_then(named);
        prop_assert!(name.is_none_or(|name| name.len() == b"allowed.example.com".len()));
    }
}
