//! The listener: TCP, then TLS, then whichever HTTP was agreed on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::handshakes::Handshakes;
use super::{Shared, http1, http2};
use crate::tls::ServerTls;

/// For the TLS handshake, and again for HTTP/2's.
pub(super) const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
const BACKLOG: u32 = 1024;
/// After a failed accept; it is mostly a lack of descriptors, which only time helps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A router whose machine vanished is noticed within a minute, so that its tunnels do not stay for ever.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts until the server drains.
pub(super) async fn accept(listener: TcpListener, tls: ServerTls, shared: Arc<Shared>) {
    let drain = shared.drain.clone();
    let draining = drain.draining();
    tokio::pin!(draining);
    let handshakes = Arc::new(Handshakes::default());
    loop {
        let accepted = tokio::select! {
            () = &mut draining => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, router)) => {
                let (tls, shared, handshakes) = (tls.clone(), shared.clone(), handshakes.clone());
                tokio::spawn(async move { serve(stream, router, &tls, shared, &handshakes).await });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, router: SocketAddr, tls: &ServerTls, shared: Arc<Shared>, handshakes: &Handshakes) {
    let _in_flight = shared.drain.guard();
    let counted = shared.clone();
    let _open = counted.totals.connected();
    if let Err(error) = tune(&stream) {
        tracing::debug!(%router, %error, "connection was gone before it began");
        return;
    }
    let shaken = tokio::select! {
        shaken = timeout(HANDSHAKE_LIMIT, tls.acceptor().accept(stream)) => shaken,
        () = handshakes.displaced() => return,
        () = shared.drain.draining() => return,
    };
    let io = match shaken {
        Ok(Ok(io)) => io,
        failed => {
            shared.totals.handshake_failed();
            let error = failed
                .map_or_else(|_| "took too long".to_owned(), |r| r.err().map_or_else(String::new, |e| e.to_string()));
            tracing::debug!(%router, %error, "TLS handshake failed");
            return;
        }
    };
    if io.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2::serve(io, router, shared).await;
    } else {
        http1::serve(io, router, shared).await;
    }
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive =
        TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_PROBES);
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_LIMIT))
}
