use bytes::Bytes;

use super::*;

/// Feeds a transcript (`>` to the actor, `<` from it) in pieces of every size and asserts what it comes to.
fn told(transcript: &[(char, &[u8])]) -> bool {
    let whole = played(transcript, usize::MAX);
    for size in [1, 2, 7] {
        assert_eq!(played(transcript, size), whole, "in pieces of {size}");
    }
    whole
}

fn played(transcript: &[(char, &[u8])], size: usize) -> bool {
    let mut usage = Usage::new();
    for (way, bytes) in transcript {
        for piece in bytes.chunks(size.min(bytes.len().max(1))) {
            if *way == '>' {
                usage.asked(piece);
            } else {
                usage.answered(&Bytes::copy_from_slice(piece));
            }
        }
    }
    usage.in_flight()
}

const GET: (char, &[u8]) = ('>', b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
const HEAD: (char, &[u8]) = ('>', b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n");
const OK: (char, &[u8]) = ('<', b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");

#[test]
fn a_tunnel_without_a_byte_is_quiet() {
    assert!(!told(&[]));
}

#[test]
fn a_request_is_in_flight_until_its_response_has_ended() {
    assert!(told(&[GET]));
    assert!(told(&[GET, ('<', b"HTTP/1.1 200 OK\r\n")]));
    assert!(told(&[GET, ('<', b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nh")]));
    assert!(!told(&[GET, OK]));
    assert!(told(&[GET, OK, GET]));
    assert!(!told(&[GET, OK, GET, OK]));
}

#[test]
fn a_chunked_response_ends_with_its_last_chunk() {
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n";
    assert!(told(&[GET, ('<', head)]), "an event stream that is silent for now");
    assert!(!told(&[GET, ('<', head), ('<', b"0\r\nx: y\r\n\r\n")]));
}

#[test]
fn responses_without_a_body_end_with_their_head() {
    assert!(!told(&[GET, ('<', b"HTTP/1.1 204 No Content\r\n\r\n")]));
    assert!(!told(&[GET, ('<', b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n")]));
    assert!(!told(&[HEAD, ('<', b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")]));
    assert!(told(&[HEAD, ('<', b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"), GET]));
}

#[test]
fn an_interim_answer_ends_nothing() {
    let post: (char, &[u8]) = ('>', b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
    let proceed: (char, &[u8]) = ('<', b"HTTP/1.1 100 Continue\r\n\r\n");
    assert!(told(&[post, proceed]));
    assert!(told(&[post, proceed, ('>', b"ab")]));
    assert!(!told(&[post, proceed, ('>', b"ab"), ('<', b"HTTP/1.1 103 Early Hints\r\n\r\n"), OK]));
}

#[test]
fn what_cannot_be_followed_is_in_flight_as_long_as_it_lives() {
    assert!(told(&[GET, ('<', b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"), ('<', b"x")]));
    assert!(told(&[GET, ('<', b"HTTP/1.1 200 OK\r\n\r\nuntil the close")]));
    assert!(told(&[GET, ('<', b"HTTP/9.9 200 OK\r\ncontent-length: 0\r\n\r\n")]));
    assert!(told(&[('<', b"220 mail.example ready\r\n")]), "the actor speaks first");
    assert!(told(&[('>', b"\x00\x01binary"), ('<', b"\x00answer")]));
    assert!(told(&[GET, OK, ('<', b"unasked")]));
    assert!(told(&[('>', b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n"), ('<', b"HTTP/1.1 200 OK\r\n\r\n")]));
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

#[test]
fn an_http2_connection_is_as_busy_as_its_streams() {
    let settings = frame(4, 0, 0, &[]);
    let begin = [PREFACE, &settings, &frame(1, 4, 1, b"get")].concat();
    let ping = frame(6, 0, 0, &[0; 8]);
    let (head, data) = (frame(1, 4, 1, b"ok"), frame(0, 0, 1, b"some"));
    let (end, reset) = (frame(0, 1, 1, b""), frame(3, 0, 1, &[0; 4]));
    assert!(!told(&[('>', &[PREFACE, &settings].concat())]));
    assert!(told(&[('>', &begin)]));
    assert!(told(&[('>', &begin), ('<', &settings), ('<', &head), ('<', &data)]));
    assert!(!told(&[('>', &begin), ('<', &head), ('<', &data), ('<', &end)]));
    assert!(!told(&[('>', &begin), ('<', &head), ('<', &end), ('>', &ping), ('<', &ping)]), "kept alive, not used");
    assert!(!told(&[('>', &begin), ('>', &reset)]));
    assert!(!told(&[('>', &begin), ('<', &reset)]));
    assert!(told(&[('>', &begin), ('<', &end), ('>', &frame(1, 5, 3, b"get"))]));
    let trailers = frame(1, 5, 1, b"trailers");
    assert!(!told(&[('>', &begin), ('<', &end), ('>', &trailers)]), "trailers begin nothing");
}

/// Whether the tunnel is only kept, after these.
fn rests(transcript: &[(char, &[u8])]) -> bool {
    let mut usage = Usage::new();
    for (way, bytes) in transcript {
        if *way == '>' { usage.asked(bytes) } else { usage.answered(&Bytes::copy_from_slice(bytes)) }
    }
    usage.rests()
}

#[test]
fn a_tunnel_is_at_rest_between_an_answer_and_the_next_request() {
    assert!(!rests(&[]), "its first request may be on the way");
    assert!(!rests(&[GET]));
    assert!(rests(&[GET, OK]));
    assert!(!rests(&[GET, OK, GET]));
    assert!(!rests(&[('<', b"220 ready\r\n")]), "another protocol");
    assert!(!rests(&[('>', b"\x16\x03\x01"), ('<', b"\x16\x03\x03")]), "TLS");
    let upgrade: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    assert!(!rests(&[('>', upgrade), ('<', b"HTTP/1.1 101 Switching Protocols\r\n\r\n")]));
}

#[test]
fn an_http2_connection_is_at_rest_once_its_streams_were_answered() {
    let headers: &[u8] = b"\0\0\x01\x01\x05\0\0\0\x01\x82";
    let answer: &[u8] = b"\0\0\x01\x01\x05\0\0\0\x01\x88";
    assert!(!rests(&[('>', PREFACE)]));
    assert!(!rests(&[('>', PREFACE), ('>', headers)]));
    assert!(rests(&[('>', PREFACE), ('>', headers), ('<', answer)]));
}
