//! The listening side: plain HTTP/2 on loopback, many streams a connection.

use std::convert::Infallible;
use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tonic::body::Body;
use tower::Service;

use crate::drain::Drain;
use crate::error::EngineError;

/// Each waiting request is a stream; their number is the parking lot's to limit, not the connection's.
const STREAMS: u32 = 1 << 20;
/// Questions are small; this only must not be what delays one.
const CONNECTION_WINDOW: u32 = 1 << 24;

pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, EngineError> {
    let listen = |source| EngineError::Listen { name: "ext_proc".into(), address, source };
    TcpListener::bind(address).await.map_err(listen)
}

/// Accepts until the drain begins. `service`: what a connection's calls are answered by.
pub(crate) async fn accept<S>(listener: TcpListener, service: S, drain: Drain)
where
    S: Service<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = drain.draining() => return,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, service.clone(), drain.clone()))),
            Err(error) => {
                // Out of descriptors, most likely: others may close some.
                tracing::warn!(%error, "cannot accept a connection of Envoy");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve<S>(stream: TcpStream, service: S, drain: Drain)
where
    S: Service<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    stream.set_nodelay(true).ok();
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
