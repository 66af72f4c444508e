//! The gateway's listener: a worker's mTLS connection, one CONNECT, then the actor's bytes.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::admit::{Caller, admit, caller, connect_target};
use super::denial::Denial;
use super::tunnel::Tunnel;
use super::{Gateway, Refused, inside};
use crate::error::EngineError;
use crate::exchange::client_http1::Respond;
use crate::exchange::party::Responder;
use crate::exchange::refuse::{Asked, refuse};
use crate::http1::{ReadError, Reader, RequestHead, Version, parse_request};
use crate::ingress::bind;
use crate::pipe::{IoSink, IoSource, Outbox, READ_MAX, Reset, Sink, Source, split};
use crate::policy::Host;
use crate::tls::{ServerStream, ServerTls};

/// After an accept that failed for want of descriptors.
const BREATHE: Duration = Duration::from_millis(50);
const OPENED: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const ASKED: Asked<'static> = Asked { method: &Method::CONNECT, grpc: false, allow: "CONNECT" };

pub(super) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: ServerTls,
    gateway: Arc<Gateway>,
    connections: Arc<Semaphore>,
}

impl Listener {
    pub(super) fn bind(
        name: &str,
        address: SocketAddr,
        tls: ServerTls,
        gateway: Arc<Gateway>,
    ) -> Result<Self, EngineError> {
        let failed = |source| EngineError::Listen { name: name.to_owned(), address, source };
        let socket = bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let connections = Arc::new(Semaphore::new(gateway.limits.connections));
        Ok(Self { socket, address, tls, gateway, connections })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts until the drain begins.
    pub(super) async fn run(self) {
        let drain = self.gateway.drain.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = drain.draining() => return,
                accepted = self.accept() => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let (tls, gateway, guard) = (self.tls.clone(), self.gateway.clone(), drain.guard());
                    let open = gateway.telemetry.egress_tunnel();
                    tokio::spawn(async move {
                        tokio::select! {
                            () = serve(&gateway, &tls, stream) => {}
                            () = gateway.drain.forced() => {}
                        }
                        drop((permit, guard, open));
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the egress gateway cannot accept");
                    sleep(BREATHE).await;
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
        // Never closed: an error cannot happen.
        let permit = self.connections.clone().acquire_owned().await.map_err(io::Error::other)?;
        let (stream, _) = self.socket.accept().await?;
        Ok((stream, permit))
    }
}

async fn serve(gateway: &Arc<Gateway>, tls: &ServerTls, stream: TcpStream) {
    // A socket that is already gone shows at the first read.
    let _gone = stream.set_nodelay(true);
    match timeout(gateway.limits.tls_handshake, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => serve_tls(gateway, stream).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake with a worker"),
        Err(_) => tracing::debug!("no TLS handshake with a worker in time"),
    }
}

async fn serve_tls(gateway: &Arc<Gateway>, mut stream: ServerStream<TcpStream>) {
    // What was read at once leaves in one write; empty while nothing moves.
    stream.get_mut().1.set_buffer_limit(Some(READ_MAX));
    let caller = caller(stream.get_ref().1.peer_certificates().and_then(<[_]>::first));
    let (read, write) = split(stream);
    let beneath = write.handle();
    let (mut reader, mut sink) = (Reader::new(IoSource::new(read)), IoSink::new(write));
    let tunnel = match open(gateway, caller, &mut reader).await {
        Ok(Some(tunnel)) => Arc::new(tunnel),
        Ok(None) => return,
        Err(denial) => return decline(gateway, denial, &mut sink).await,
    };
    let mut out = Outbox::default();
    out.push(Bytes::from_static(OPENED));
    let opened = timeout(gateway.limits.header, poll_fn(|cx| sink.poll_send(cx, &mut out))).await;
    if !matches!(opened, Ok(Ok(()))) {
        return;
    }
    tokio::select! {
        () = inside::serve(gateway, &tunnel, reader, sink) => {}
        host = withdrawal(gateway, &tunnel) => {
            gateway.denied(&tunnel, &Refused::new(Denial::Withdrawn).of(&host));
            beneath.reset_on_close();
        }
    }
}

/// Reads the CONNECT and asks whether it may be; none when the worker left without a word.
async fn open<S: Source>(
    gateway: &Gateway,
    caller: Result<Caller, Denial>,
    reader: &mut Reader<S>,
) -> Result<Option<Tunnel>, Denial> {
    let limits = &gateway.limits;
    let head = match timeout(limits.header, poll_fn(|cx| reader.poll_head(cx, limits.head_bytes))).await {
        Ok(Ok(Some(head))) => head,
        Ok(Err(ReadError::Head(error))) => return Err(error.into()),
        Ok(Ok(None) | Err(_)) | Err(_) => return Ok(None),
    };
    let mut request = RequestHead::default();
    parse_request(&head, &mut request)?;
    // Whatever else the CONNECT's fields claim plays no part.
    let caller = caller?;
    let dialled = connect_target(&request).inspect_err(|denial| gateway.unopened(&caller.actor, None, *denial))?;
    let port = Some(dialled.port());
    let admitted = admit(&gateway.control, &caller).await;
    let uid = admitted.inspect_err(|denial| gateway.unopened(&caller.actor, port, *denial))?;
    Ok(Some(Tunnel::new(caller.actor, uid, dialled)))
}

async fn decline<K: Sink>(gateway: &Gateway, denial: Denial, sink: &mut K) {
    gateway.telemetry.egress_decision(denial.reason());
    let mut out = Outbox::default();
    let mut respond = Respond::new(sink, &mut out, Version::Http11, false);
    refuse(&mut respond, denial, ASKED);
    // A worker that does not listen is not waited for.
    let told = timeout(gateway.limits.header, poll_fn(|cx| respond.poll_flush(cx))).await;
    if matches!(told, Ok(Ok(()))) {
        let _ended = timeout(gateway.limits.header, poll_fn(|cx| sink.poll_end(cx))).await;
    }
}

/// Resolves when the tunnel may no longer be, with what it was used for.
async fn withdrawal(gateway: &Gateway, tunnel: &Arc<Tunnel>) -> Host {
    loop {
        sleep(gateway.limits.recheck).await;
        if let Some(host) = tunnel.withdrawn(gateway).await {
            return host;
        }
    }
}
