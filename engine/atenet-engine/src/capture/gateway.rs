//! One tunnel through the egress gateway: mTLS, then HTTP/1.1 CONNECT to the address that the actor dialled.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::CaptureError;
use super::listen::tune;
use super::refusal::Refusal;
use crate::config::{CaptureLimits, GatewayEnd, millis};
use crate::http1::{Reader, ResponseHead, parse_response};
use crate::pipe::{Handle, IoSink, IoSource, Outbox, READ_MAX, ReadHalf, Sink, WriteHalf, split};
use crate::tls::{ClientStream, ClientTls, HeldCertificate, PeerName, TlsError};

type Stream = ClientStream<TcpStream>;

const HEAD_LIMIT: usize = 16 << 10;
/// Of what a gateway says with a refusal.
const REASON_LIMIT: usize = 64;

/// An open tunnel. The gateway's bytes that came with its answer are the reader's first.
pub(super) struct Tunnel {
    pub(super) from: Reader<IoSource<ReadHalf<Stream>>>,
    pub(super) to: IoSink<WriteHalf<Stream>>,
    pub(super) beneath: Handle<Stream>,
}

/// The way to the gateway.
pub(super) struct Gateway {
    tls: ClientTls,
    name: String,
    connect: Duration,
    all: Duration,
}

impl Gateway {
    pub(super) fn new(end: &GatewayEnd, limits: CaptureLimits) -> Result<Self, TlsError> {
        let tls = ClientTls::new(None, end.trust_bundle.clone(), &[b"http/1.1"])?;
        let (connect, all) = (millis(limits.connect_ms), millis(limits.open_ms));
        Ok(Self { tls, name: end.server_name.clone(), connect, all })
    }

    /// Opens one, with this client certificate.
    pub(super) async fn open(
        &self,
        address: &str,
        certificate: &HeldCertificate,
        destination: SocketAddrV4,
    ) -> Result<Tunnel, Refusal> {
        let opening = async {
            let stream = self.connect(address).await?;
            let peer = PeerName::Dns(self.name.clone());
            let stream = self.tls.connect_as(stream, peer, certificate).await;
            ask(stream.map_err(|error| Refusal::Handshake(error.to_string()))?, destination).await
        };
        timeout(self.all, opening).await.unwrap_or(Err(Refusal::Late))
    }

    async fn connect(&self, address: &str) -> Result<TcpStream, Refusal> {
        let connecting = timeout(self.connect, connect(address)).await;
        let stream = connecting.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = stream.map_err(|error| Refusal::Unreachable(format!("{address}: {error}")))?;
        tune(&stream);
        Ok(stream)
    }
}

/// The first of the name's addresses that answers.
async fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for found in lookup_host(address).await? {
        match TcpStream::connect(found).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn ask(mut stream: Stream, destination: SocketAddrV4) -> Result<Tunnel, Refusal> {
    let broken = |error: &dyn std::fmt::Display| Refusal::NoAnswer(error.to_string());
    // What was read at once leaves in one write; empty while nothing moves.
    stream.get_mut().1.set_buffer_limit(Some(READ_MAX));
    let (read, write) = split(stream);
    let (beneath, mut to) = (write.handle(), IoSink::new(write));
    let mut from = Reader::new(IoSource::new(read));
    let mut out = Outbox::default();
    out.push(Bytes::from(format!("CONNECT {destination} HTTP/1.1\r\nhost: {destination}\r\n\r\n")));
    poll_fn(|cx| to.poll_send(cx, &mut out)).await.map_err(|error| broken(&error))?;
    loop {
        let head = poll_fn(|cx| from.poll_head(cx, HEAD_LIMIT)).await.map_err(|error| broken(&error))?;
        let head = head.ok_or_else(|| broken(&"the gateway closed the connection"))?;
        let mut answer = ResponseHead::default();
        parse_response(&head, &mut answer).map_err(|error| broken(&error))?;
        if answer.status.is_success() {
            return Ok(Tunnel { from, to, beneath });
        }
        if !answer.status.is_informational() {
            return Err(Refusal::Declined { status: answer.status.as_u16(), reason: reason(&answer) });
        }
    }
}

/// The gateway's own token for its refusal.
fn reason(answer: &ResponseHead) -> String {
    let said = answer.fields.named(b"ate-reason").unwrap_or_default();
    let token = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
    let said = said.get(..said.len().min(REASON_LIMIT)).unwrap_or_default();
    said.iter().filter(|b| token(b)).map(|b| char::from(*b)).collect()
}

/// `host:port`, as an address that can be looked up.
pub(super) fn check_address(address: &str) -> Result<(), CaptureError> {
    let good = address.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let plain = !host.contains([':', '[', ']']) && !host.contains(char::is_whitespace);
        !host.is_empty() && (bracketed || plain) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if good { Ok(()) } else { Err(CaptureError::GatewayAddress(address.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_has_a_host_and_a_port() {
        for good in ["10.0.0.1:443", "[fd00::1]:443", "atenet-egress.ate-system.svc:443"] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in ["", ":443", "a.example", "a.example:0", "a.example:70000", "fd00::1:443", "a b:443"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_reason_is_a_token_and_nothing_else() {
        let mut answer = ResponseHead::default();
        parse_response(b"HTTP/1.1 403 no\r\nate-reason: actor-unknown\x01\r\n\r\n", &mut answer).ok();
        parse_response(b"HTTP/1.1 403 no\r\nate-reason: actor unknown\r\n\r\n", &mut answer).unwrap();
        assert_eq!(reason(&answer), "actorunknown");
    }
}
