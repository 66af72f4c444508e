//! Request and response heads, parsed strictly.

use std::mem::MaybeUninit;

use http::{Method, StatusCode};
use memchr::{memchr, memchr_iter};
use thiserror::Error;

use super::fields::{Fields, Kind};

/// More fields than this is a flood, not a message, unless the caller says otherwise.
pub const MAX_FIELDS: usize = 128;
/// Empty lines tolerated before a request line (RFC 9112, 2.2).
const MAX_LEADING_LINES: usize = 2;

#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HeadError {
    #[error("bare line feed or carriage return in the head")]
    BareLineEnd,
    #[error("malformed head")]
    Malformed,
    #[error("unsupported HTTP version")]
    Version,
    #[error("head or its number of fields is too large")]
    TooLarge,
    #[error("Host is missing, repeated or malformed")]
    Host,
    #[error("malformed request target")]
    Target,
    #[error("ambiguous body length")]
    Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    Http10,
    #[default]
    Http11,
}

/// A request's head, with its target in origin form (or authority form for CONNECT).
#[derive(Debug, Default)]
pub struct RequestHead {
    pub method: Method,
    pub target: Vec<u8>,
    pub version: Version,
    pub fields: Fields,
}

#[derive(Debug, Default)]
pub struct ResponseHead {
    pub status: StatusCode,
    pub reason: Vec<u8>,
    pub version: Version,
    pub fields: Fields,
}

/// Where the head ends (just past its empty line), scanning from `from`, the number of bytes seen
/// by an earlier call. A line feed without its carriage return is an error as soon as it is seen.
pub fn head_end(buf: &[u8], from: usize) -> Result<Option<usize>, HeadError> {
    let mut leading = 0;
    for at in memchr_iter(b'\n', buf.get(from..).unwrap_or_default()).map(|i| i + from) {
        if at == 0 || buf[at - 1] != b'\r' {
            return Err(HeadError::BareLineEnd);
        }
        let empty_line = at == 1 || buf[at - 2] == b'\n';
        if !empty_line {
            continue;
        }
        if !buf[..=at].iter().all(|b| matches!(b, b'\r' | b'\n')) {
            return Ok(Some(at + 1));
        }
        leading += 1;
        if leading > MAX_LEADING_LINES {
            return Err(HeadError::Malformed);
        }
    }
    Ok(None)
}

/// Parses a whole request head, `head_end` bytes long.
pub fn parse_request(head: &[u8], into: &mut RequestHead) -> Result<(), HeadError> {
    parse_request_within(head, into, MAX_FIELDS)
}

/// The same with another limit on the number of fields.
pub fn parse_request_within(head: &[u8], into: &mut RequestHead, fields: usize) -> Result<(), HeadError> {
    if fields > MAX_FIELDS {
        return read_request(head, into, &mut vec![MaybeUninit::uninit(); fields]);
    }
    let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    read_request(head, into, &mut slots[..fields])
}

fn read_request<'h>(
    head: &'h [u8],
    into: &mut RequestHead,
    slots: &mut [MaybeUninit<httparse::Header<'h>>],
) -> Result<(), HeadError> {
    let mut parsed = httparse::Request::new(&mut []);
    let status = parsed.parse_with_uninit_headers(head, slots).map_err(from_httparse)?;
    if status != httparse::Status::Complete(head.len()) {
        return Err(HeadError::Malformed);
    }
    into.method = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes()).map_err(|_| HeadError::Malformed)?;
    into.version = version(parsed.version)?;
    fill(&mut into.fields, parsed.headers)?;
    keep_target_untrimmed(head, &mut into.fields);
    check_host(&into.fields, into.version)?;
    into.target.clear();
    into.target.extend_from_slice(parsed.path.unwrap_or_default().as_bytes());
    normalise_target(into)
}

/// Parses a whole response head.
pub fn parse_response(head: &[u8], into: &mut ResponseHead) -> Result<(), HeadError> {
    let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let status = config.parse_response_with_uninit_headers(&mut parsed, head, &mut slots).map_err(from_httparse)?;
    if status != httparse::Status::Complete(head.len()) {
        return Err(HeadError::Malformed);
    }
    into.status = StatusCode::from_u16(parsed.code.unwrap_or_default()).map_err(|_| HeadError::Malformed)?;
    into.version = version(parsed.version)?;
    into.reason.clear();
    into.reason.extend_from_slice(parsed.reason.unwrap_or_default().as_bytes());
    fill(&mut into.fields, parsed.headers)
}

/// Parses a trailer section, its empty line included.
pub fn parse_trailers(block: &[u8]) -> Result<Fields, HeadError> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut fields = Fields::new();
    match httparse::parse_headers(block, &mut slots).map_err(from_httparse)? {
        httparse::Status::Complete((used, headers)) if used == block.len() => fill(&mut fields, headers)?,
        _ => return Err(HeadError::Malformed),
    }
    Ok(fields)
}

fn from_httparse(error: httparse::Error) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooLarge,
        httparse::Error::Version => HeadError::Version,
        _ => HeadError::Malformed,
    }
}

fn version(minor: Option<u8>) -> Result<Version, HeadError> {
    match minor {
        Some(0) => Ok(Version::Http10),
        Some(1) => Ok(Version::Http11),
        _ => Err(HeadError::Version),
    }
}

fn fill(fields: &mut Fields, headers: &[httparse::Header<'_>]) -> Result<(), HeadError> {
    fields.clear();
    for header in headers {
        // A NUL or a stray CR in a value never gets this far.
        if header.name.is_empty() {
            return Err(HeadError::Malformed);
        }
        fields.push(header.name.as_bytes(), header.value);
    }
    Ok(())
}

/// The parser trims white space around values; in the field that names the actor it is an error
/// (row I-01), so that value is taken again as it stands, less the one usual space.
fn keep_target_untrimmed(head: &[u8], fields: &mut Fields) {
    if !fields.has(Kind::TargetActor) {
        return;
    }
    fields.remove(Kind::TargetActor);
    for line in head.split(|b| *b == b'\n') {
        let Some(colon) = memchr(b':', line) else { continue };
        if Kind::of(&line[..colon]) == Kind::TargetActor {
            let value = &line[colon + 1..];
            let value = value.strip_suffix(b"\r").unwrap_or(value);
            fields.push(&line[..colon], value.strip_prefix(b" ").unwrap_or(value));
        }
    }
}

fn check_host(fields: &Fields, version: Version) -> Result<(), HeadError> {
    let mut hosts = fields.all(Kind::Host);
    match (hosts.next(), hosts.next(), version) {
        (None, _, Version::Http10) => Ok(()),
        (Some(host), None, _) if host_is_sane(host) => Ok(()),
        _ => Err(HeadError::Host),
    }
}

/// A host and an optional port; anything that another parser could read differently is refused.
#[must_use]
pub fn host_is_sane(host: &[u8]) -> bool {
    host.iter()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b'?' | b'#' | b'@' | b',' | b'\\' | b'"' | b'<' | b'>'))
}

/// Brings an absolute target into origin form; its authority must be the Host's.
fn normalise_target(head: &mut RequestHead) -> Result<(), HeadError> {
    if head.method == Method::CONNECT {
        return Ok(());
    }
    match head.target.first() {
        Some(b'/') if memchr(b'#', &head.target).is_none() => return Ok(()),
        Some(b'*') if head.target.len() == 1 && head.method == Method::OPTIONS => return Ok(()),
        _ => {}
    }
    let rest = [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| {
            let (start, rest) = head.target.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        })
        .ok_or(HeadError::Target)?;
    let cut = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(cut);
    if memchr(b'#', path).is_some() || !head.fields.get(Kind::Host).is_none_or(|h| h.eq_ignore_ascii_case(authority)) {
        return Err(HeadError::Target);
    }
    if !head.fields.has(Kind::Host) {
        if !host_is_sane(authority) {
            return Err(HeadError::Target);
        }
        let authority = authority.to_vec();
        let path = origin_form(path);
        head.fields.push(b"Host", &authority);
        head.target = path;
        return Ok(());
    }
    head.target = origin_form(path);
    Ok(())
}

fn origin_form(path: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if path.first() == Some(&b'/') { b"" } else { b"/" };
    [slash, path].concat()
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
