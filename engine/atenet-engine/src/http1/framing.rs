//! How long a body is, and whether its connection lives on.

use http::{Method, StatusCode};

use super::fields::{Fields, Kind, list_members};
use super::head::{HeadError, RequestHead, ResponseHead, Version};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body at all.
    Empty,
    Length(u64),
    Chunked,
    /// Until the connection closes: responses only.
    UntilClose,
}

impl Framing {
    /// Whether any byte of a body follows the head.
    #[must_use]
    pub fn has_body(self) -> bool {
        !matches!(self, Self::Empty | Self::Length(0))
    }
}

/// A request's framing; whatever two parsers could read differently is refused.
pub fn request_framing(head: &RequestHead) -> Result<Framing, HeadError> {
    let length = content_length(&head.fields)?;
    match (transfer_encoding(&head.fields)?, length) {
        (true, Some(_)) => Err(HeadError::Framing),
        (true, None) if head.version == Version::Http10 => Err(HeadError::Framing),
        (true, None) => Ok(Framing::Chunked),
        (false, None) => Ok(Framing::Empty),
        (false, Some(n)) => Ok(Framing::Length(n)),
    }
}

/// A final response's framing, given what was asked.
pub fn response_framing(method: &Method, head: &ResponseHead) -> Result<Framing, HeadError> {
    let length = content_length(&head.fields)?;
    let chunked = transfer_encoding(&head.fields)?;
    if chunked && (length.is_some() || head.version == Version::Http10) {
        return Err(HeadError::Framing);
    }
    let bodiless = head.status.is_informational()
        || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        || method == Method::HEAD;
    Ok(match (bodiless, chunked, length) {
        (true, ..) | (false, false, Some(0)) => Framing::Empty,
        (false, true, _) => Framing::Chunked,
        (false, false, Some(n)) => Framing::Length(n),
        (false, false, None) => Framing::UntilClose,
    })
}

/// Whether the sender of this head keeps its connection open.
#[must_use]
pub fn keep_alive(version: Version, fields: &Fields) -> bool {
    let says = |token: &str| {
        fields.all(Kind::Connection).flat_map(list_members).any(|m| m.eq_ignore_ascii_case(token.as_bytes()))
    };
    match version {
        Version::Http11 => !says("close"),
        Version::Http10 => says("keep-alive") && !says("close"),
    }
}

fn content_length(fields: &Fields) -> Result<Option<u64>, HeadError> {
    let mut values = fields.all(Kind::ContentLength);
    let Some(value) = values.next() else { return Ok(None) };
    // Even equal duplicates: a hop that joins them sees "5, 5" and may read it its own way.
    if values.next().is_some() || value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return Err(HeadError::Framing);
    }
    let digits = std::str::from_utf8(value).map_err(|_| HeadError::Framing)?;
    digits.parse().map(Some).map_err(|_| HeadError::Framing)
}

fn transfer_encoding(fields: &Fields) -> Result<bool, HeadError> {
    let mut values = fields.all(Kind::TransferEncoding);
    match (values.next(), values.next()) {
        (None, _) => Ok(false),
        (Some(value), None) if value.eq_ignore_ascii_case(b"chunked") => Ok(true),
        _ => Err(HeadError::Framing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)]) -> Result<Framing, HeadError> {
        let mut head = RequestHead::default();
        for (name, value) in fields {
            head.fields.push(name.as_bytes(), value.as_bytes());
        }
        request_framing(&head)
    }

    #[test]
    fn a_request_says_its_length_once_or_not_at_all() {
        assert_eq!(request(&[]), Ok(Framing::Empty));
        assert_eq!(request(&[("content-length", "0")]), Ok(Framing::Length(0)));
        assert_eq!(request(&[("Content-Length", "12")]), Ok(Framing::Length(12)));
        assert_eq!(request(&[("Transfer-Encoding", "Chunked")]), Ok(Framing::Chunked));
    }

    #[test]
    fn ambiguous_lengths_are_refused() {
        for fields in [
            &[("content-length", "5"), ("transfer-encoding", "chunked")][..],
            &[("content-length", "5"), ("content-length", "6")],
            &[("content-length", "5"), ("content-length", "5")],
            &[("content-length", "5, 5")],
            &[("content-length", "+5")],
            &[("content-length", "-1")],
            &[("content-length", "0x5")],
            &[("content-length", "")],
            &[("content-length", "99999999999999999999")],
            &[("transfer-encoding", "identity, chunked")],
            &[("transfer-encoding", "chunked, chunked")],
            &[("transfer-encoding", "chunked"), ("transfer-encoding", "identity")],
            &[("transfer-encoding", "gzip")],
            &[("transfer-encoding", "identity")],
            &[("transfer-encoding", "")],
            &[("transfer-encoding", "\x0bchunked")],
        ] {
            assert_eq!(request(fields), Err(HeadError::Framing), "{fields:?}");
        }
    }

    #[test]
    fn an_old_request_may_not_be_chunked() {
        let mut head = RequestHead { version: Version::Http10, ..RequestHead::default() };
        head.fields.push(b"transfer-encoding", b"chunked");
        assert_eq!(request_framing(&head), Err(HeadError::Framing));
    }

    #[test]
    fn responses_without_a_body_have_none_whatever_they_claim() {
        let mut head = ResponseHead::default();
        head.fields.push(b"content-length", b"10");
        assert_eq!(response_framing(&Method::GET, &head), Ok(Framing::Length(10)));
        assert_eq!(response_framing(&Method::HEAD, &head), Ok(Framing::Empty));
        head.status = StatusCode::NOT_MODIFIED;
        assert_eq!(response_framing(&Method::GET, &head), Ok(Framing::Empty));
    }

    #[test]
    fn a_response_without_a_length_ends_with_its_connection() {
        assert_eq!(response_framing(&Method::GET, &ResponseHead::default()), Ok(Framing::UntilClose));
    }

    #[test]
    fn keep_alive_follows_version_and_every_connection_line() {
        let mut fields = Fields::new();
        assert!(keep_alive(Version::Http11, &fields));
        assert!(!keep_alive(Version::Http10, &fields));
        fields.push(b"Connection", b"keep-alive");
        assert!(keep_alive(Version::Http10, &fields));
        fields.push(b"Connection", b"x, Close");
        assert!(!keep_alive(Version::Http11, &fields));
    }
}
