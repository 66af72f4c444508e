//! The TLS ClientHello: the server name that a connection asks for, read without answering. Pure.
//!
//! It may come in any number of segments and records. What cannot be read whole is never taken for a connection
//! without a name: it is malformed, and its connection is closed (row E-07).

use thiserror::Error;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
const RECORD_HEADER: usize = 5;
/// RFC 8446, section 5.1.
const MAX_RECORD: usize = 1 << 14;
/// Post-quantum key shares make hellos of 2 kB, long tickets some more.
const MAX_HELLO: usize = 64 * 1024;
/// Records that a hello may be cut into; one byte each is a way to keep us busy.
const MAX_RECORDS: usize = 4_096;

/// The most bytes that are ever looked at.
pub(super) const MAX_BYTES: usize = MAX_HELLO + MAX_RECORDS * RECORD_HEADER;

/// Why bytes are no ClientHello.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelloError {
    #[error("a record is malformed")]
    Record,
    #[error("the ClientHello is malformed")]
    Malformed,
    #[error("the ClientHello is too large")]
    TooLarge,
    #[error("the ClientHello names no server or several")]
    ServerName,
}

/// What a ClientHello says of its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    /// The server name's bytes as sent; none: the extension is absent.
    pub(super) server_name: Option<Vec<u8>>,
}

/// Reads the first bytes of a TLS connection. `None`: more are needed.
pub(super) fn client_hello(bytes: &[u8]) -> Result<Option<Hello>, HelloError> {
    let mut message = Vec::new();
    let mut rest = bytes;
    for _ in 0..MAX_RECORDS {
        let Some((fragment, after)) = record(rest)? else { return Ok(None) };
        message.extend_from_slice(fragment);
        rest = after;
        // What has come of a record counts before its end, so that nobody waits for a hello that is none.
        let Some(length) = message_length(&message)? else { continue };
        if message.len() >= length {
            // A server says something before its client goes on: bytes after the hello in its record are no TLS.
            return if message.len() == length { parse(&message[4..]).map(Some) } else { Err(HelloError::Malformed) };
        }
    }
    Err(HelloError::TooLarge)
}

/// A record's payload and what follows it.
type Record<'a> = (&'a [u8], &'a [u8]);

/// The first record, once it is whole.
fn record(bytes: &[u8]) -> Result<Option<Record<'_>>, HelloError> {
    let version_and_type = [bytes.first(), bytes.get(1)];
    if let [Some(kind), ..] = version_and_type
        && *kind != HANDSHAKE
    {
        return Err(HelloError::Record);
    }
    if let [_, Some(major)] = version_and_type
        && *major != 3
    {
        return Err(HelloError::Record);
    }
    let Some((header, rest)) = bytes.split_at_checked(RECORD_HEADER) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if length == 0 || length > MAX_RECORD {
        return Err(HelloError::Record);
    }
    Ok(rest.split_at_checked(length))
}

/// Header and body of the handshake message together.
fn message_length(message: &[u8]) -> Result<Option<usize>, HelloError> {
    match message {
        [] => Ok(None),
        [CLIENT_HELLO, high, middle, low, ..] => {
            let length = usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low);
            if length > MAX_HELLO { Err(HelloError::TooLarge) } else { Ok(Some(length + 4)) }
        }
        [CLIENT_HELLO, ..] => Ok(None),
        _ => Err(HelloError::Malformed),
    }
}

fn parse(body: &[u8]) -> Result<Hello, HelloError> {
    let mut body = Bytes(body);
    let (version, _random) = (body.take(2)?, body.take(32)?);
    if version[0] != 3 || body.block8()?.len() > 32 {
        return Err(HelloError::Malformed);
    }
    let (ciphers, compressions) = (body.block16()?, body.block8()?);
    if ciphers.is_empty() || ciphers.len() % 2 != 0 || compressions.is_empty() {
        return Err(HelloError::Malformed);
    }
    if body.0.is_empty() {
        return Ok(Hello { server_name: None });
    }
    let extensions = Bytes(body.block16()?);
    if body.0.is_empty() { server_name(extensions) } else { Err(HelloError::Malformed) }
}

fn server_name(mut extensions: Bytes<'_>) -> Result<Hello, HelloError> {
    let (mut server_name, mut seen) = (None, std::collections::HashSet::new());
    while !extensions.0.is_empty() {
        let (kind, content) = (extensions.u16()?, extensions.block16()?);
        // Of two equal extensions two readers may each take another one.
        if !seen.insert(kind) {
            return Err(HelloError::Malformed);
        }
        if kind == SERVER_NAME {
            server_name = Some(sole_name(content)?);
        }
    }
    Ok(Hello { server_name })
}

/// RFC 6066, section 3; one name, since no rule says which of two counts.
fn sole_name(content: &[u8]) -> Result<Vec<u8>, HelloError> {
    let bad = |_| HelloError::ServerName;
    let mut content = Bytes(content);
    let mut list = Bytes(content.block16().map_err(bad)?);
    let (kind, name) = (list.take(1).map_err(bad)?, list.block16().map_err(bad)?);
    if kind != [HOST_NAME] || name.is_empty() || !list.0.is_empty() || !content.0.is_empty() {
        return Err(HelloError::ServerName);
    }
    Ok(name.to_vec())
}

/// Bytes that are taken from the front, never beyond their end.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], HelloError> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(HelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, HelloError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn block8(&mut self) -> Result<&'a [u8], HelloError> {
        let length = self.take(1)?[0];
        self.take(length.into())
    }

    fn block16(&mut self) -> Result<&'a [u8], HelloError> {
        let length = self.u16()?;
        self.take(length.into())
    }
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;
