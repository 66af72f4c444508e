//! The listening side: mutual TLS, HTTP/2, one service for each connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::Shared;
use super::body::{Reply, Resumed};
use super::forward::Upstream;
use super::locate::Located;
use super::peer::Peer;
use super::warm::{self, Read};
use crate::config::WarmMethod;
use crate::drain::Drain;
use crate::pipe::{Corked, driven, last_words};
use crate::spiffe::SpiffeId;
use crate::tls::ServerStream;

/// Calls that wait are streams, and a router may have thousands of them waiting.
const STREAMS: u32 = 1 << 16;
const CONNECTION_WINDOW: u32 = 1 << 24;
/// As much as the control plane's own server takes.
const HEADERS: u32 = 64 << 10;
/// Callers that give up at once are ordinary here.
const RESETS: usize = 4096;
const HANDSHAKE: Duration = Duration::from_secs(20);
/// As the control plane's own server has it: a caller that vanished without a word is noticed in seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// After an accept that failed for want of descriptors.
const BREATHE: Duration = Duration::from_millis(50);

/// Accepts until the drain begins.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, drain: Drain) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = drain.draining() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, shared.clone(), drain.clone()))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a caller's connection");
                tokio::time::sleep(BREATHE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, drain: Drain) {
    let _guard = drain.guard();
    // A socket that is already gone shows at the first read.
    let _gone = stream.set_nodelay(true);
    let shaken = tokio::select! {
        shaken = timeout(HANDSHAKE, shared.tls.acceptor().accept(stream)) => shaken,
        () = drain.draining() => return,
    };
    match shaken {
        Ok(Ok(stream)) => serve(stream, shared, drain).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
        Err(_) => tracing::debug!("no TLS handshake in time"),
    }
}

async fn serve(stream: ServerStream<TcpStream>, shared: Arc<Shared>, drain: Drain) {
    let caller = Arc::new(Caller::new(&stream, shared, drain.clone()));
    let service = service_fn(move |request| {
        let caller = caller.clone();
        async move { Ok::<_, Infallible>(caller.answer(request).await) }
    });
    let (io, mut flusher, _) = Corked::new(stream);
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .max_pending_accept_reset_streams(RESETS)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = driven(connection.as_mut(), &mut flusher) => ended,
        () = drain.draining() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = driven(connection.as_mut(), &mut flusher) => ended,
                () = drain.forced() => return last_words(&mut flusher).await,
            }
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a caller's connection ended"),
        Err(error) => tracing::debug!(%error, "a caller's connection broke"),
    }
}

/// One connection's other side.
struct Caller {
    identity: Option<SpiffeId>,
    upstream: Upstream,
    shared: Arc<Shared>,
    drain: Drain,
}

impl Caller {
    fn new(stream: &ServerStream<TcpStream>, shared: Arc<Shared>, drain: Drain) -> Self {
        let leaf = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let Peer { identity, headers } = Peer::new(leaf.map(AsRef::as_ref));
        let upstream = Upstream::new(shared.config.upstream.clone(), headers);
        Self { identity, upstream, shared, drain }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Reply> {
        let (head, mut body) = request.into_parts();
        let identity = self.identity.as_ref().map(SpiffeId::as_str);
        let Some(method) = self.shared.grants.warm(identity, &head) else {
            return self.upstream.carry(head, Resumed::new(bytes::Bytes::new(), body)).await;
        };
        if method == WarmMethod::Locate {
            let located = Located::new(body, self.shared.clone(), self.drain.clone());
            return reply(Reply::Located(Box::new(located)));
        }
        let read = warm::read(&mut body).await;
        if let Read::Whole(whole) = &read
            && let Some(actor) = warm::named(method, whole)
            && let Some(message) = self.shared.actors.answer(method, &actor)
        {
            self.shared.answered.of(method).fetch_add(1, Ordering::Relaxed);
            return reply(Reply::Answer(Some(message)));
        }
        self.upstream.carry(head, Resumed::new(read.into_bytes(), body)).await
    }
}

fn reply(body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}
