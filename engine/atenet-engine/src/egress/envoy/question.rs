//! What Envoy asks, as the rest of the gateway knows it. Pure.

use std::collections::HashMap;

use http::Method;
use prost_types::{Struct, value::Kind as ValueKind};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::egress::denial::Denial;
use crate::envoy_proto::{HeaderValue, HttpHeaders, ProcessingRequest};
use crate::http1::{Framing, Kind, RequestHead, Version, host_is_sane};

const CHAIN: &str = "xds.filter_chain_name";
const TUNNEL: &str = "filter_state['x-ate-tunnel']";
/// What Envoy says of the certificate that a worker showed; nobody else can set it there.
const CERTIFICATE: &str = "x-forwarded-client-cert";
/// What Envoy read in a ClientHello; python/atenet/router/resources/egress/names.py says the same.
const SERVER_NAME: &str = "x-ate-server-name";

/// The filter's attributes that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) chain: &'a str,
    pub(super) tunnel: &'a str,
}

pub(super) fn asked(attributes: &HashMap<String, Struct>) -> Asked<'_> {
    let mut asked = Asked::default();
    for (name, value) in attributes.values().flat_map(|values| &values.fields) {
        let Some(ValueKind::StringValue(text)) = &value.kind else { continue };
        match name.as_str() {
            CHAIN => asked.chain = text,
            TUNNEL => asked.tunnel = text,
            _ => {}
        }
    }
    asked
}

/// The head of a request, as if it had been read from HTTP/1.1.
pub(super) struct Asking {
    pub(super) head: RequestHead,
    /// Its framing, or why it is refused whatever it is for.
    pub(super) framing: Result<Framing, Denial>,
}

impl Asking {
    /// `None`: the message holds no request headers.
    pub(super) fn read(message: &ProcessingRequest) -> Option<Self> {
        let asked = message.request_headers.as_ref()?;
        let mut head = RequestHead { version: Version::Http11, ..RequestHead::default() };
        let (mut authority, mut method) = (None, Err(Denial::BadRequest));
        for header in &asked.headers.as_ref()?.headers {
            let value = bytes(header);
            match header.key.as_str() {
                ":method" => method = Method::from_bytes(value).map_err(|_| Denial::BadRequest),
                ":authority" => authority = Some(value),
                ":path" => head.target = value.to_vec(),
                name if name.starts_with(':') => {}
                name => head.fields.push(name.as_bytes(), value),
            }
        }
        let named = name_host(&mut head, authority);
        head.method = method.as_ref().map_or(Method::GET, Clone::clone);
        let framing = method.and(named).and_then(|()| framing(asked, &head));
        Some(Self { head, framing })
    }

    /// The target of a CONNECT; Envoy keeps it where Host stands.
    pub(super) fn connect(mut self) -> RequestHead {
        self.head.target = self.head.fields.get(Kind::Host).unwrap_or_default().to_vec();
        self.head
    }

    pub(super) fn path(&self) -> &[u8] {
        self.head.target.split(|b| *b == b'?').next().unwrap_or_default()
    }

    pub(super) fn server_name(&self) -> Option<&[u8]> {
        self.head.fields.named(SERVER_NAME.as_bytes())
    }

    /// The leaf that the worker showed.
    pub(super) fn certificate(&self) -> Option<CertificateDer<'static>> {
        let told = self.head.fields.named(CERTIFICATE.as_bytes())?;
        let quoted = std::str::from_utf8(told).ok()?.strip_prefix("Cert=\"").or_else(|| {
            let told = std::str::from_utf8(told).ok()?;
            told.split_once(";Cert=\"").map(|(_, rest)| rest)
        })?;
        let (encoded, _) = quoted.split_once('"')?;
        CertificateDer::from_pem_slice(&unescape(encoded)?).ok()
    }
}

/// Percent-encoded bytes. `None`: they are not.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let (high, low) = (char::from(bytes.next()?).to_digit(16)?, char::from(bytes.next()?).to_digit(16)?);
        plain.push(u8::try_from(high << 4 | low).ok()?);
    }
    Some(plain)
}

fn bytes(header: &HeaderValue) -> &[u8] {
    if header.raw_value.is_empty() { header.value.as_bytes() } else { &header.raw_value }
}

/// `:authority` becomes the one Host; a Host beside it must say the same.
fn name_host(head: &mut RequestHead, authority: Option<&[u8]>) -> Result<(), Denial> {
    let mut hosts = head.fields.all(Kind::Host);
    let host = match (authority, hosts.next(), hosts.next()) {
        (Some(authority), None, _) => authority.to_vec(),
        (Some(authority), Some(host), None) if authority.eq_ignore_ascii_case(host) => authority.to_vec(),
        (None, Some(host), None) => host.to_vec(),
        _ => return Err(Denial::BadHost),
    };
    drop(hosts);
    head.fields.set(b"host", &host);
    if host_is_sane(&host) { Ok(()) } else { Err(Denial::BadHost) }
}

fn framing(asked: &HttpHeaders, head: &RequestHead) -> Result<Framing, Denial> {
    if asked.end_of_stream {
        return Ok(Framing::Empty);
    }
    match head.fields.get(Kind::ContentLength) {
        None => Ok(Framing::Chunked),
        Some(length) => {
            let length = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok());
            length.map(Framing::Length).ok_or(Denial::BadRequest)
        }
    }
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
