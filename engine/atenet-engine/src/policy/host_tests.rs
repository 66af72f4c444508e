use serde::Deserialize;

use super::*;

/// One spelling of the table that every reader of a host is held to.
#[derive(Deserialize)]
struct Row {
    written: String,
    /// The one spelling; absent: refused.
    means: Option<String>,
}

fn table() -> Vec<Row> {
    serde_json::from_str(include_str!("../../../../tests/conformance/names.json")).unwrap()
}

// B088, B090, B101, B102
#[test]
fn each_spelling_of_the_name_table_is_read_as_it_says() {
    for row in table() {
        let read = Host::parse(row.written.as_bytes()).ok().map(|host| host.to_string());
        assert_eq!(read, row.means, "{:?}", row.written);
    }
}

#[test]
fn an_authority_reads_its_host_as_the_table_says() {
    for row in table().iter().filter(|row| !row.written.contains(':') || row.written.starts_with('[')) {
        let read = Authority::parse(format!("{}:8443", row.written).as_bytes());
        let expected = row.means.clone().map(|host| (host, Some(8443)));
        assert_eq!(read.ok().map(|a| (a.host.to_string(), a.port)), expected, "{:?}", row.written);
    }
}

#[test]
fn a_server_name_is_never_an_address() {
    assert_eq!(Host::from_sni(b"127.0.0.1"), Err(HostError::Numeral));
    assert_eq!(Host::from_sni(b"[::1]"), Err(HostError::Numeral));
    assert_eq!(Host::from_sni(b"API.Example.com.").unwrap().name(), Some("api.example.com"));
}

#[test]
fn a_port_is_decimal_and_in_range() {
    let port = |text: &str| Authority::parse(text.as_bytes()).map(|authority| authority.port);
    assert_eq!(port("a.example"), Ok(None));
    assert_eq!(port("a.example:1"), Ok(Some(1)));
    assert_eq!(port("[::1]:65535"), Ok(Some(65_535)));
    for bad in
        ["a.example:", "a.example:0", "a.example:65536", "a.example:+1", "a.example: 1", "a.example:1:2", "[::1]:"]
    {
        assert_eq!(port(bad), Err(HostError::Port), "{bad}");
    }
    for bad in ["::1", "::1:80", "[a.example]:80", "[::1", "::1]", "[::1]80", "[[::1]]", "[fe80::1%eth0]:80"] {
        assert!(port(bad).is_err(), "{bad}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    assert_eq!(Host::parse(b"a.example\xff"), Err(HostError::Character));
    assert_eq!(Host::parse(b"\xef\xbc\x8e.example"), Err(HostError::Character));
}
