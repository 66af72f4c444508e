use super::*;
use crate::envoy_proto::HeaderMap;

fn asking(headers: &[(&str, &str)], ended: bool) -> Asking {
    let header = |(key, value): &(&str, &str)| HeaderValue {
        key: (*key).to_owned(),
        value: String::new(),
        raw_value: value.as_bytes().to_vec(),
    };
    let headers = HeaderMap { headers: headers.iter().map(header).collect() };
    let asked = HttpHeaders { headers: Some(headers), end_of_stream: ended };
    Asking::read(&ProcessingRequest { request_headers: Some(asked), ..ProcessingRequest::default() }).unwrap()
}

const GET: [(&str, &str); 3] = [(":method", "GET"), (":authority", "A.example:80"), (":path", "/a?b")];

#[test]
fn a_head_reads_as_if_it_had_come_over_http1() {
    let asking = asking(&[&GET[..], &[("x-one", "1")]].concat(), true);
    assert_eq!((asking.head.method.as_str(), asking.path()), ("GET", &b"/a"[..]));
    assert_eq!(asking.head.fields.get(Kind::Host), Some(&b"A.example:80"[..]));
    assert_eq!(asking.head.fields.named(b"x-one"), Some(&b"1"[..]));
    assert_eq!(asking.framing, Ok(Framing::Empty));
}

#[test]
fn a_body_is_framed_by_its_length_or_its_end() {
    assert_eq!(asking(&GET, false).framing, Ok(Framing::Chunked));
    let of = |length| asking(&[&GET[..], &[("content-length", length)]].concat(), false).framing;
    assert_eq!(of("7"), Ok(Framing::Length(7)));
    assert_eq!(of("7, 8"), Err(Denial::BadRequest));
}

#[test]
fn two_hosts_must_agree() {
    assert_eq!(asking(&[&GET[..], &[("host", "a.EXAMPLE:80")]].concat(), true).framing, Ok(Framing::Empty));
    for hosts in [&[("host", "b.example")][..], &[("host", "A.example:80"), ("host", "A.example:80")]] {
        assert_eq!(asking(&[&GET[..], hosts].concat(), true).framing, Err(Denial::BadHost));
    }
    assert_eq!(asking(&[(":method", "GET"), (":path", "/")], true).framing, Err(Denial::BadHost));
    assert_eq!(asking(&[(":method", "GET"), (":authority", "a,a")], true).framing, Err(Denial::BadHost));
}

#[test]
fn a_connects_target_stands_where_host_does() {
    let asking = asking(&[(":method", "CONNECT"), (":authority", "192.0.2.1:443")], false);
    assert_eq!(asking.connect().target, b"192.0.2.1:443");
}

#[test]
fn the_workers_certificate_is_taken_from_what_envoy_says_of_it() {
    let pem = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
    let encoded: String = pem
        .bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).into() } else { format!("%{b:02X}") })
        .collect();
    for said in [format!("Cert=\"{encoded}\""), format!("Hash=ab;Cert=\"{encoded}\"")] {
        let found = asking(&[&GET[..], &[(CERTIFICATE, &said)]].concat(), true).certificate();
        assert_eq!(found.unwrap().as_ref(), [1, 2, 3]);
    }
    for said in ["", "Cert=", "Cert=\"%4\"", "Cert=\"abc\"", "URI=spiffe://a/b"] {
        assert!(asking(&[&GET[..], &[(CERTIFICATE, said)]].concat(), true).certificate().is_none(), "{said}");
    }
}
