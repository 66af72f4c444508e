//! Whatever is read is read in one way: properties over generated input.

use bytes::{Bytes, BytesMut};
use http::Method;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Pieces that heads are made of, and that parsers differ over.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "GET ",
        "POST ",
        "CONNECT ",
        "/",
        "/a?b#c",
        "http://a/",
        "*",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "\r",
        "Host: a",
        "host:a:80",
        "Content-Length: 5",
        "content-length:0",
        "Content-Length: 5, 5",
        "Transfer-Encoding: chunked",
        "transfer-encoding: identity, chunked",
        "Connection: close",
        "Expect: 100-continue",
        "ate-target-actor: a/b",
        "ate-target-actor:\ta/b ",
        "X-Y: ",
        " folded",
        "\0",
        ":",
        " ",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "0\r\nT: v\r\n\r\n",
        "5;x=y\r\n",
        "ffffffffffffffff\r\n",
        "HTTP/1.1 200 OK",
        "HTTP/1.1 101 ",
    ]);
    prop_oneof![6 => known.prop_map(|text| text.as_bytes().to_vec()), 1 => vec(any::<u8>(), 0..4)]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

/// A head that has a chance: lines joined as they should be.
fn head_text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "[A-Za-z-]{1,12}:[ \t]?[ -~]{0,16}".prop_map(String::into_bytes),
        piece(),
        Just(b"Transfer-Encoding: chunked".to_vec()),
        (0_u64..20).prop_map(|n| format!("Content-Length: {n}").into_bytes()),
    ];
    let start = "(GET|POST|PUT|HEAD|OPTIONS|CONNECT|M-X) (/[a-z?=%/]{0,9}|\\*|a:80|http://a/x) HTTP/1\\.[01]";
    (start, vec(line, 0..6)).prop_map(|(start, lines)| {
        let mut text = format!("{start}\r\nHost: a\r\n").into_bytes();
        for line in lines {
            text.extend_from_slice(&line);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        text
    })
}

fn request(text: &[u8]) -> Option<(RequestHead, Framing)> {
    let end = head_end(text, 0).ok()??;
    let mut head = RequestHead::default();
    parse_request(&text[..end], &mut head).ok()?;
    let framing = request_framing(&head).ok()?;
    Some((head, framing))
}

fn listed(fields: &Fields) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.iter().map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Another reading of the same bytes: lines end in CR LF, a name ends at the first colon, nothing else.
fn plainly(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let text = text.strip_prefix(b"\r\n").unwrap_or(text);
    let text = text.strip_prefix(b"\r\n").unwrap_or(text);
    let lines = text.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| {
            let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            (line[..colon].to_vec(), line.get(colon + 1..).unwrap_or_default().trim_ascii().to_vec())
        })
        .collect()
}

/// The body and the trailers, fed in pieces of these sizes.
fn decoded(framing: Framing, text: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, usize, usize), BodyError> {
    let (mut body, mut data, mut used, mut at) = (BodyDecoder::new(framing), Vec::new(), 0, 0);
    let mut cuts = cuts.iter().copied().chain([text.len()]);
    loop {
        let size = cuts.next().unwrap_or(text.len()).clamp(1, text.len() - at + 1).min(text.len() - at);
        let mut input = Bytes::copy_from_slice(&text[at..at + size]);
        at += size;
        loop {
            let before = input.len();
            match body.decode(&mut input)? {
                Some(Frame::Data(piece)) => data.extend_from_slice(&piece),
                Some(Frame::End(trailers)) => {
                    used += before - input.len();
                    return Ok((data, trailers.map_or(0, |t| t.len()), used));
                }
                None => {
                    used += before - input.len();
                    break;
                }
            }
            used += before - input.len();
        }
        if at == text.len() {
            let Frame::End(_) = body.end_of_stream()? else { unreachable!("an end is an end") };
            return Ok((data, 0, used));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_bytes_are_a_message_or_refused(text in text()) {
        let _ = request(&text);
        if let Ok(Some(end)) = head_end(&text, 0) {
            let mut head = ResponseHead::default();
            if parse_response(&text[..end], &mut head).is_ok() {
                let _ = response_framing(&Method::GET, &head);
            }
        }
        for framing in [Framing::Chunked, Framing::Length(7), Framing::UntilClose] {
            let _ = decoded(framing, &text, &[3, 5]);
        }
        let _ = parse_trailers(&text);
    }

    #[test]
    fn a_head_that_is_taken_reads_back_the_same(text in prop_oneof![head_text(), text()]) {
        let Some((head, framing)) = request(&text) else { return Ok(()) };
        let mut out = BytesMut::new();
        request_head(&head, &mut out);
        let Some((again, framed)) = request(&out) else { panic!("we wrote what we would not read: {out:?}") };
        prop_assert_eq!((&again.method, &again.target, framed), (&head.method, &head.target, framing));
        prop_assert_eq!(listed(&again.fields), listed(&head.fields));
        let mut twice = BytesMut::new();
        request_head(&again, &mut twice);
        prop_assert_eq!(out, twice);
    }

    #[test]
    fn fields_are_what_a_plain_reader_sees(text in head_text()) {
        let Some((head, _)) = request(&text) else { return Ok(()) };
        let mut read = listed(&head.fields);
        // The actor's name is kept untrimmed and goes last.
        for (_, value) in &mut read {
            *value = value.trim_ascii().to_vec();
        }
        let mut plain = plainly(&text);
        read.sort();
        plain.sort();
        prop_assert_eq!(read, plain);
    }

    #[test]
    fn two_lengths_are_never_taken(text in head_text()) {
        let Some((head, framing)) = request(&text) else { return Ok(()) };
        let count = |kind| head.fields.all(kind).count();
        prop_assert!(count(Kind::ContentLength) + count(Kind::TransferEncoding) <= 1);
        prop_assert_eq!(framing == Framing::Chunked, count(Kind::TransferEncoding) == 1);
        prop_assert!(count(Kind::Host) <= 1);
    }

    #[test]
    fn a_body_is_the_same_however_it_arrives(
        text in prop_oneof![text(), vec(piece(), 0..6).prop_map(|p| [b"5\r\nhello\r\n".to_vec(), p.concat()].concat())],
        cuts in vec(1_usize..9, 0..40),
    ) {
        for framing in [Framing::Chunked, Framing::Length(11), Framing::UntilClose] {
            let (whole, split) = (decoded(framing, &text, &[]), decoded(framing, &text, &cuts));
            prop_assert_eq!(&whole, &split, "{:?}", framing);
        }
    }

    #[test]
    fn what_is_chunked_is_read_back(pieces in vec(vec(any::<u8>(), 1..40), 0..8), cuts in vec(1_usize..9, 0..40)) {
        let mut out = BytesMut::new();
        for piece in &pieces {
            chunk_head(piece.len(), &mut out);
            out.extend_from_slice(piece);
            chunk_end(&mut out);
        }
        last_chunk(None, &mut out);
        let length = out.len();
        out.extend_from_slice(b"GET / HTTP/1.1\r\n");
        prop_assert_eq!(decoded(Framing::Chunked, &out, &cuts), Ok((pieces.concat(), 0, length)));
    }
}
