//! Listeners: accept, TLS, and the choice of HTTP version.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::gateway::Front;
use super::{connect, serve_http1, serve_http2};
use crate::config::Mode;
use crate::exchange::sniff::{Spoken, spoken};
use crate::http1::Reader;
use crate::pipe::{IoSink, IoSource, Prefixed, Sink, Source, reunite, split};
use crate::tls::ServerTls;

const BACKLOG: u32 = 4096;
/// After an accept that failed for want of descriptors.
const BREATHE: Duration = Duration::from_millis(50);

/// One bound listener.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) tls: Option<ServerTls>,
    pub(super) mode: Mode,
    pub(super) front: Front,
    pub(super) connections: Arc<Semaphore>,
}

pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl Listener {
    /// Accepts until the drain begins.
    pub(super) async fn run(self) {
        let this = Arc::new(self);
        let drain = this.front.gateway.drain.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = drain.draining() => return,
                accepted = this.accept() => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let (listener, guard) = (this.clone(), drain.guard());
                    let open = this.front.gateway.telemetry.client_connection();
                    tokio::spawn(async move {
                        tokio::select! {
                            () = listener.serve(stream) => {}
                            () = listener.front.gateway.drain.forced() => {}
                        }
                        drop((permit, guard, open));
                    });
                }
                Err(error) => {
                    tracing::warn!(listener = %this.front.listener, %error, "cannot accept");
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

    async fn serve(&self, stream: TcpStream) {
        // A socket that is already gone shows at the first read.
        let _gone = stream.set_nodelay(true);
        match &self.tls {
            None => self.serve_plain(stream).await,
            Some(tls) => self.serve_tls(tls, stream).await,
        }
    }

    async fn serve_plain(&self, stream: TcpStream) {
        let (read, write) = split(stream);
        let mut reader = Reader::new(IoSource::new(read));
        let Some(first) = first_bytes(&mut reader, self.front.gateway.limits.client_idle, &self.front).await else {
            return;
        };
        if spoken(&first) != Spoken::Http2 {
            return self.serve_http1(reader, IoSink::new(write)).await;
        }
        let (source, first) = reader.into_parts();
        let Some(stream) = reunite(source.into_inner(), write) else { return };
        self.serve_http2(Prefixed::new(first, stream)).await;
    }

    async fn serve_tls(&self, tls: &ServerTls, stream: TcpStream) {
        let limit = self.front.gateway.limits.tls_handshake;
        let stream = match timeout(limit, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(listener = %self.front.listener, %error, "no TLS handshake"),
            Err(_) => return tracing::debug!(listener = %self.front.listener, "no TLS handshake in time"),
        };
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            return self.serve_http2(stream).await;
        }
        let (read, write) = split(stream);
        self.serve_http1(Reader::new(IoSource::new(read)), IoSink::new(write)).await;
    }

    async fn serve_http1<S: Source + Unpin, K: Sink + Unpin>(&self, reader: Reader<S>, sink: K) {
        match self.mode {
            Mode::Direct => serve_http1::serve(self.front.clone(), reader, sink).await,
            Mode::Connect => connect::serve_http1(self.front.clone(), reader, sink).await,
        }
    }

    async fn serve_http2<T: AsyncRead + AsyncWrite + Unpin + Send>(&self, io: T) {
        match self.mode {
            Mode::Direct => serve_http2::serve(self.front.clone(), io).await,
            Mode::Connect => connect::serve_http2(self.front.clone(), io).await,
        }
    }
}

/// Enough of a connection's first bytes to tell HTTP/2 from HTTP/1.1; none when there will be none.
async fn first_bytes<S: Source>(reader: &mut Reader<S>, limit: Duration, front: &Front) -> Option<Bytes> {
    let read = async {
        // "PRI" is no other method's beginning.
        while reader.buffered().len() < 3 {
            if !poll_fn(|cx| reader.poll_fill(cx)).await.ok()? {
                break;
            }
        }
        Some(reader.buffered().clone())
    };
    tokio::select! {
        biased;
        first = timeout(limit, read) => first.ok().flatten().filter(|first| !first.is_empty()),
        () = front.gateway.drain.draining() => None,
    }
}
