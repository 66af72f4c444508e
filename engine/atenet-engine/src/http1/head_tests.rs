use super::*;

fn request(text: &str) -> Result<RequestHead, HeadError> {
    let end = head_end(text.as_bytes(), 0)?.ok_or(HeadError::Malformed)?;
    let mut head = RequestHead::default();
    parse_request(&text.as_bytes()[..end], &mut head)?;
    Ok(head)
}

#[test]
fn a_plain_head_is_read() {
    let head = request("POST /a?b=c HTTP/1.1\r\nHost: example:81\r\nX-Y:  z \r\n\r\n").unwrap();
    assert_eq!(head.method, Method::POST);
    assert_eq!(head.target, b"/a?b=c");
    assert_eq!(head.fields.named(b"x-y"), Some(&b"z"[..]));
}

#[test]
fn smuggling_shapes_are_refused() {
    for text in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        "GET / \r\nHost: a\r\n\r\n",
        "GET path HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert!(request(text).is_err(), "{text:?} was accepted");
    }
}

#[test]
fn an_absolute_target_becomes_origin_form() {
    for (target, want) in [("http://a/x?y", "/x?y"), ("http://a", "/"), ("HTTP://a?q", "/?q")] {
        let head = request(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
        assert_eq!(head.target, want.as_bytes(), "{target}");
    }
}

#[test]
fn the_end_is_found_whatever_the_split() {
    let text = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
    let end = text.len() - 4;
    for split in 0..text.len() {
        let first = head_end(&text[..split], 0).unwrap();
        let whole = first.or(head_end(text, split).unwrap());
        assert_eq!(whole, Some(end), "split at {split}");
    }
}

#[test]
fn too_many_fields_are_a_flood() {
    let fields: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    assert_eq!(request(&text).err(), Some(HeadError::TooLarge));
}

#[test]
fn random_bytes_never_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let alphabet = b"GET /:\r\n\tHTP1.0abc\0\xff,=;*";
    for _ in 0..20_000 {
        let text: Vec<u8> = (0..48)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                alphabet[usize::try_from(seed % alphabet.len() as u64).unwrap()]
            })
            .collect();
        if let Ok(Some(end)) = head_end(&text, 0) {
            let _ = parse_request(&text[..end], &mut RequestHead::default());
            let _ = parse_response(&text[..end], &mut ResponseHead::default());
        }
    }
}

#[test]
fn white_space_around_the_actors_name_is_kept_to_be_refused() {
    for (value, want) in [(" a/b", "a/b"), ("a/b", "a/b"), (" a/b\t", "a/b\t"), ("  a/b", " a/b"), ("\ta/b ", "\ta/b ")]
    {
        let head = request(&format!("GET / HTTP/1.1\r\nHost: a\r\nate-target-actor:{value}\r\nX: y\r\n\r\n")).unwrap();
        assert_eq!(head.fields.get(Kind::TargetActor), Some(want.as_bytes()), "{value:?}");
    }
}
