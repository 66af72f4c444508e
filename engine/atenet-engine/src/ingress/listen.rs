//! Listeners: accept, TLS, and the choice of HTTP version.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::gateway::Front;
use super::{serve_http1, serve_http2};
use crate::config::Mode;
use crate::http1::Reader;
use crate::pipe::{IoSink, IoSource, Prefixed, split_tls};
use crate::tls::ServerTls;

const BACKLOG: u32 = 4096;
/// After an accept that failed for want of descriptors.
const BREATHE: Duration = Duration::from_millis(50);
/// What an HTTP/2 client says first; no HTTP/1.1 request begins so.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One bound listener.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) tls: Option<ServerTls>,
    pub(super) mode: Mode,
    pub(super) front: Front,
    pub(super) connections: Arc<Semaphore>,
}

pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
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
                    tokio::spawn(async move {
                        tokio::select! {
                            () = listener.serve(stream) => {}
                            () = listener.front.gateway.drain.forced() => {}
                        }
                        drop((permit, guard));
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
        let (read, write) = stream.into_split();
        let mut reader = Reader::new(IoSource::new(read));
        if self.mode == Mode::Direct {
            match first_bytes(&mut reader, self.front.gateway.limits.client_idle, &self.front).await {
                None => return,
                Some(first) if PREFACE.starts_with(&first[..first.len().min(PREFACE.len())]) => {
                    let (source, first) = reader.into_parts();
                    let Ok(stream) = source.into_inner().reunite(write) else { return };
                    return serve_http2::serve(self.front.clone(), Prefixed::new(first, stream)).await;
                }
                Some(_) => {}
            }
        }
        self.serve_http1(reader, IoSink::new(write)).await;
    }

    async fn serve_tls(&self, tls: &ServerTls, stream: TcpStream) {
        let limit = self.front.gateway.limits.tls_handshake;
        let stream = match timeout(limit, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(listener = %self.front.listener, %error, "no TLS handshake"),
            Err(_) => return tracing::debug!(listener = %self.front.listener, "no TLS handshake in time"),
        };
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            return serve_http2::serve(self.front.clone(), stream).await;
        }
        let (read, write) = split_tls(stream);
        self.serve_http1(Reader::new(IoSource::new(read)), IoSink::new(write)).await;
    }

    async fn serve_http1<S, K>(&self, reader: Reader<S>, sink: K)
    where
        S: crate::pipe::Source,
        K: crate::pipe::Sink,
    {
        serve_http1::serve(self.front.clone(), reader, sink).await;
    }
}

/// Enough of a connection's first bytes to tell HTTP/2 from HTTP/1.1; none when there will be none.
async fn first_bytes<S: crate::pipe::Source>(reader: &mut Reader<S>, limit: Duration, front: &Front) -> Option<Bytes> {
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
