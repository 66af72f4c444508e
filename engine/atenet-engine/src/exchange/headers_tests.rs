use super::*;

/// Fields as they came, how the body is framed, and what reaches the actor.
type Case<'a> = (&'a [(&'a str, &'a str)], Framing, &'a [&'a str]);

fn fields(text: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in text {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    fields
}

fn text(fields: &Fields) -> Vec<String> {
    fields.iter().map(|(_, n, v)| format!("{}: {}", String::from_utf8_lossy(n), String::from_utf8_lossy(v))).collect()
}

#[test]
fn what_reaches_the_actor() {
    let cases: &[Case] = &[
        (&[("Host", "a:81"), ("Accept", "*/*")], Framing::Empty, &["Host: a:81", "Accept: */*"]),
        // All Connection lines are one list, an empty one included (case B009).
        (
            &[("Connection", ""), ("Connection", "x-a, X-B"), ("X-A", "1"), ("x-b", "2"), ("x-c", "3")],
            Framing::Empty,
            &["x-c: 3"],
        ),
        // A client cannot take away what the router sets, nor the Host.
        (
            &[("Host", "a"), ("Connection", "host, content-length, close"), ("Content-Length", "5")],
            Framing::Length(5),
            &["Host: a", "content-length: 5"],
        ),
        (
            &[("ate-target-actor", "a/b"), ("X-Ate-Anything", "1"), ("ate-reason", "x"), ("Host", "a")],
            Framing::Empty,
            &["Host: a"],
        ),
        (
            &[("Upgrade", "h2c"), ("HTTP2-Settings", "AAA"), ("Connection", "Upgrade, HTTP2-Settings")],
            Framing::Empty,
            &[],
        ),
        (
            &[("Keep-Alive", "5"), ("Proxy-Connection", "x"), ("Proxy-Authorization", "x"), ("TE", "gzip")],
            Framing::Empty,
            &[],
        ),
        (&[("TE", "trailers"), ("Connection", "TE")], Framing::Empty, &["connection: te", "te: trailers"]),
        (&[("Transfer-Encoding", "chunked"), ("x", "y")], Framing::Chunked, &["x: y", "transfer-encoding: chunked"]),
        (&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")], Framing::Empty, &["x: y", "cookie: a=1; b=2"]),
        (
            &[("traceparent", "00-1-2-01"), ("expect", "100-continue")],
            Framing::Empty,
            &["traceparent: 00-1-2-01", "expect: 100-continue"],
        ),
    ];
    for (before, framing, want) in cases {
        let mut got = fields(before);
        to_actor(&mut got, *framing, false);
        assert_eq!(text(&got), *want, "{before:?}");
    }
}

#[test]
fn a_websocket_request_keeps_its_upgrade_and_nothing_else_does() {
    for (upgrade, connection, want) in [
        ("websocket", "Upgrade", true),
        ("WebSocket", "keep-alive, upgrade", true),
        ("h2c", "Upgrade", false),
        ("websocket, h2c", "Upgrade", false),
        ("websocket", "keep-alive", false),
    ] {
        let got = fields(&[("Upgrade", upgrade), ("Connection", connection)]);
        assert_eq!(asks_for_websocket(&Method::GET, &got), want, "{upgrade} {connection}");
    }
    assert!(!asks_for_websocket(&Method::POST, &fields(&[("Upgrade", "websocket"), ("Connection", "Upgrade")])));
    let mut got = fields(&[("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", "k")]);
    to_actor(&mut got, Framing::Empty, true);
    assert_eq!(text(&got), ["Sec-WebSocket-Key: k", "connection: Upgrade", "upgrade: websocket"]);
}

#[test]
fn what_reaches_the_client() {
    let mut got = fields(&[
        ("Content-Length", "3"),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("ate-reason", "forged"),
        ("X-ATE-Assignment-Stale", "true"),
        ("ate-target-actor", "a/b"),
        ("Retry-After", "9"),
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
    ]);
    to_client(&mut got);
    assert_eq!(text(&got), ["Content-Length: 3", "Retry-After: 9", "Set-Cookie: a", "Set-Cookie: b"]);
}

#[test]
fn trailers_cannot_smuggle_framing() {
    let mut got = fields(&[("Content-Length", "3"), ("Transfer-Encoding", "chunked"), ("Host", "b"), ("X-Sum", "1")]);
    trailers(&mut got);
    assert_eq!(text(&got), ["X-Sum: 1"]);
}

#[test]
fn grpc_is_told_by_its_media_type() {
    for (value, want) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("Application/gRPC; charset=x", true),
        ("application/grpc-web", false),
        ("application/json", false),
        ("", false),
    ] {
        assert_eq!(is_grpc(&fields(&[("Content-Type", value)])), want, "{value}");
    }
}

mod anything {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::http1::{Framing, RequestHead, parse_request, request_head};

    fn name() -> impl Strategy<Value = String> {
        let known = vec![
            "Connection",
            "Content-Length",
            "Cookie",
            "Expect",
            "HTTP2-Settings",
            "Keep-Alive",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
            "ate-reason",
            "ate-target-actor",
            "X-Ate-Port",
            "x-a",
            "X-B",
        ];
        prop_oneof![3 => prop::sample::select(known).prop_map(str::to_owned), 1 => "[A-Za-z][A-Za-z0-9_-]{0,8}"]
    }

    fn value() -> impl Strategy<Value = String> {
        let known = vec![
            "close",
            "keep-alive, x-a",
            "te",
            "trailers",
            "upgrade",
            "h2c",
            "websocket",
            "chunked",
            "5",
            "a/b",
            "x-b,,host",
            "",
        ];
        prop_oneof![2 => prop::sample::select(known).prop_map(str::to_owned), 1 => "[!-~]([ -~]{0,6}[!-~])?"]
    }

    fn framing() -> impl Strategy<Value = Framing> {
        prop_oneof![Just(Framing::Empty), Just(Framing::Chunked), (0_u64..9).prop_map(Framing::Length)]
    }

    /// Names and values by name, in the order that each name's values have.
    fn by_name(fields: &Fields) -> Vec<(String, Vec<u8>)> {
        let mut list: Vec<_> = fields
            .iter()
            .map(|(_, name, value)| (String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec()))
            .collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn nothing_of_the_clients_hop_reaches_an_actor(
            list in vec((name(), value()), 0..10), framing in framing(), websocket in any::<bool>(),
        ) {
            let list: Vec<(&str, &str)> = list.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            let mut given = fields(&[&[("Host", "a:81")], &list[..]].concat());
            to_actor(&mut given, framing, websocket && framing == Framing::Empty);
            for kind in [
                Kind::TargetActor, Kind::Internal, Kind::Http2Settings, Kind::KeepAlive, Kind::ProxyAuthorization,
                Kind::ProxyConnection,
            ] {
                prop_assert!(!given.has(kind), "{:?} in {:?}", kind, text(&given));
            }
            prop_assert_eq!(given.get(Kind::Host), Some(&b"a:81"[..]));
            let count = |kind| given.all(kind).count();
            prop_assert_eq!(count(Kind::ContentLength), usize::from(matches!(framing, Framing::Length(_))));
            prop_assert_eq!(count(Kind::TransferEncoding), usize::from(framing == Framing::Chunked));
            prop_assert!(count(Kind::Connection) <= 1 && count(Kind::Upgrade) <= 1 && count(Kind::Cookie) <= 1);

            // What an actor reads is what was meant.
            let head = RequestHead { target: b"/".to_vec(), fields: given, ..RequestHead::default() };
            let (mut out, mut read) = (bytes::BytesMut::new(), RequestHead::default());
            request_head(&head, &mut out);
            parse_request(&out, &mut read).unwrap();
            prop_assert_eq!(crate::http1::request_framing(&read), Ok(framing));
            prop_assert_eq!(by_name(&read.fields), by_name(&head.fields));

            // And over HTTP/2 no hop's field is left.
            let mut fields = head.fields;
            for_http2(&mut fields);
            let map = to_map(&fields);
            prop_assert_eq!(map.len(), fields.len());
            for name in ["connection", "transfer-encoding", "upgrade", "keep-alive", "host"] {
                prop_assert!(!map.contains_key(name));
            }
            let mut back = Fields::new();
            from_map(&map, &mut back);
            prop_assert_eq!(by_name(&back), by_name(&fields));
        }
    }
}
