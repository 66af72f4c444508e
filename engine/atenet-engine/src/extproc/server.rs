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

/// Each waiting request is a stream; their number is the parking lot's to limit, not the connection's.
const STREAMS: u32 = 1 << 20;
/// Questions are small; this only must not be what delays one.
const CONNECTION_WINDOW: u32 = 1 << 24;

/// Accepts until the drain begins. `service`: what a connection's calls are answered by.
pub(crate) async fn accept<S>(ear: Ear, service: S, drain: Drain)
where
    S: Service<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    loop {
        let accepted = tokio::select! {
            accepted = ear.accept() => accepted,
            () = drain.draining() => return,
        };
        match accepted {
            Ok(Heard::Port(stream)) => {
                stream.set_nodelay(true).ok();
                tokio::spawn(serve(stream, service.clone(), drain.clone()));
            }
            Ok(Heard::Socket(stream)) => drop(tokio::spawn(serve(stream, service.clone(), drain.clone()))),
            Err(error) => {
                // Out of descriptors, most likely: others may close some.
                tracing::warn!(%error, "cannot accept a connection of Envoy");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve<T, S>(stream: T, service: S, drain: Drain)
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    S: Service<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(STREAMS)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = drain.draining() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = drain.forced() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of Envoy ended");
    }
}
