use std::collections::VecDeque;
use std::future::poll_fn;

use super::super::framing::{Framing, request_framing};
use super::super::head::{RequestHead, parse_request};
use super::*;

/// Gives its pieces one at a time, then ends.
struct Script(VecDeque<Bytes>);

impl Script {
    fn new(pieces: &[&[u8]]) -> Self {
        Self(pieces.iter().filter(|p| !p.is_empty()).map(|p| Bytes::copy_from_slice(p)).collect())
    }
}

impl Source for Script {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        Poll::Ready(Ok(self.0.pop_front().unwrap_or_default()))
    }
}

/// Every request on the connection: target and body, until the end or an error.
async fn requests(pieces: &[&[u8]]) -> (Vec<(Vec<u8>, Vec<u8>)>, Option<String>) {
    let mut reader = Reader::new(Script::new(pieces));
    let mut seen = Vec::new();
    loop {
        let head = match poll_fn(|cx| reader.poll_head(cx, 4096)).await {
            Ok(Some(head)) => head,
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(error.to_string())),
        };
        let mut parsed = RequestHead::default();
        parse_request(&head, &mut parsed).unwrap();
        let mut body = BodyDecoder::new(request_framing(&parsed).unwrap());
        let mut text = Vec::new();
        loop {
            match poll_fn(|cx| reader.poll_frame(cx, &mut body)).await {
                Ok(Frame::Data(data)) => text.extend_from_slice(&data),
                Ok(Frame::End(_)) => break,
                Err(error) => return (seen, Some(error.to_string())),
            }
        }
        seen.push((parsed.target.clone(), text));
    }
}

const PIPELINE: &[u8] = b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n\
    POST /two HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
    POST /three HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n\
    GET /four HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn a_pipeline_reads_the_same_at_every_split() {
    let whole = requests(&[PIPELINE]).await;
    assert_eq!(whole.1, None);
    let bodies: Vec<_> = whole.0.iter().map(|(_, b)| b.as_slice()).collect();
    assert_eq!(bodies, [&b""[..], b"hello", b"abcde", b""]);
    for at in 0..PIPELINE.len() {
        assert_eq!(requests(&[&PIPELINE[..at], &PIPELINE[at..]]).await, whole, "split at {at}");
    }
    let single: Vec<&[u8]> = PIPELINE.chunks(1).collect();
    assert_eq!(requests(&single).await, whole);
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_refused() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(5000));
    let (seen, error) = requests(&[long.as_bytes()]).await;
    assert!(seen.is_empty());
    assert_eq!(error, Some(HeadError::TooLarge.to_string()));
}

#[tokio::test]
async fn an_end_inside_a_head_or_body_is_an_error() {
    for text in ["GET / HTTP/1.1\r\nHo", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel"] {
        assert!(requests(&[text.as_bytes()]).await.1.is_some(), "{text:?}");
    }
}

#[tokio::test]
async fn reading_ahead_is_bounded_and_keeps_the_bytes() {
    let mut reader = Reader::new(Script::new(&[b"abc", b"def"]));
    poll_fn(|cx| {
        assert!(reader.poll_gone(cx, 3).is_pending());
        Poll::Ready(())
    })
    .await;
    assert_eq!(reader.buffered(), "abc");
    poll_fn(|cx| reader.poll_gone(cx, 100)).await;
    assert_eq!(poll_fn(|cx| reader.poll_raw(cx)).await.unwrap(), "abcdef");
    assert_eq!(poll_fn(|cx| reader.poll_raw(cx)).await.unwrap(), "");
}

#[tokio::test]
async fn a_body_until_the_close_ends_cleanly() {
    let mut reader = Reader::new(Script::new(&[b"abc"]));
    let mut body = BodyDecoder::new(Framing::UntilClose);
    assert!(matches!(poll_fn(|cx| reader.poll_frame(cx, &mut body)).await, Ok(Frame::Data(d)) if d == "abc"));
    assert!(matches!(poll_fn(|cx| reader.poll_frame(cx, &mut body)).await, Ok(Frame::End(None))));
}
