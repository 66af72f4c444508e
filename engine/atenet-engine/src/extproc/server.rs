//! The listening side: plain HTTP/2, many streams a connection.

use std::convert::Infallible;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::body::Body;
use tower::Service;

use super::ear::{Ear, Heard};
use crate::drain::Drain;
use crate::pipe::{Corked, driven, last_words};

/// Each waiting request is a stream; their number is the parking lot's to limit, not the connection's.
pub(super) const STREAMS: u32 = 1 << 20;
/// Questions are small; this only must not be what delays one.
pub(super) const CONNECTION_WINDOW: u32 = 1 << 24;

/// A connection's bytes, whichever way it came in.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

pub(crate) type Stream = Box<dyn Io>;

/// Accepts until the drain begins. `serve`: what becomes of one connection.
pub(crate) async fn accept<F, W>(ear: Ear, drain: Drain, serve: F)
where
    F: Fn(Stream, Drain) -> W,
    W: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            accepted = ear.accept() => accepted,
            () = drain.draining() => return,
        };
        match accepted {
            Ok(heard) => drop(tokio::spawn(serve(stream(heard), drain.clone()))),
            Err(error) => {
                // Out of descriptors, most likely: others may close some.
                tracing::warn!(%error, "cannot accept a connection of Envoy");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

fn stream(heard: Heard) -> Stream {
    match heard {
        Heard::Port(stream) => {
            // A socket that is already gone shows at the first read.
            let _gone = stream.set_nodelay(true);
            Box::new(stream)
        }
        Heard::Socket(stream) => Box::new(stream),
    }
}

/// Serves one connection. `service`: what its calls are answered by.
pub(crate) async fn serve<S>(stream: Stream, service: S, drain: Drain)
where
    S: Service<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let (io, mut flusher, _) = Corked::new(stream);
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(STREAMS)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(io), TowerToHyperService::new(service));
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
        Ok(Err(error)) => tracing::debug!(%error, "a connection of Envoy ended"),
        Err(error) => tracing::debug!(%error, "a connection of Envoy broke"),
    }
}
