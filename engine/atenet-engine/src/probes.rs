//! What operators ask of the process: `/readyz`, `/healthz` and `/metrics`, on addresses of their own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::drain::Drain;
use crate::error::EngineError;
use crate::telemetry::Telemetry;

/// Pollers are few; more connections than this wait in the backlog.
const CONNECTIONS: usize = 64;
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// A poller that keeps its connection open has this long between two questions.
const CONNECTION_LIMIT: Duration = Duration::from_secs(300);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The text format that Prometheus asks for by default.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Ready or not; shared between the router and its readiness server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// One of the two servers.
#[derive(Clone)]
pub enum Probes {
    /// `/metrics`
    Stats(Telemetry),
    /// `/readyz`, `/healthz`
    Readiness(Readiness),
}

type Answer = Response<Full<Bytes>>;

impl Probes {
    /// Binds and serves until `drain` says otherwise: then whoever has connected is answered, and nobody after.
    /// Returns the bound address.
    pub async fn serve(self, name: &str, address: SocketAddr, drain: Drain) -> Result<SocketAddr, EngineError> {
        let failed = |source| EngineError::Listen { name: name.to_owned(), address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        tokio::spawn(accept(listener, self, drain));
        Ok(bound)
    }

    fn answer(&self, method: &Method, path: &str) -> Answer {
        if method != Method::GET && method != Method::HEAD {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            refused.headers_mut().insert(ALLOW, http::HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match (self, path) {
            (Self::Stats(telemetry), "/metrics") => {
                let mut answer = text(StatusCode::OK, telemetry.metrics_text());
                answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(METRICS_TYPE));
                answer
            }
            (Self::Readiness(readiness), "/readyz") if readiness.is_ready() => text(StatusCode::OK, "ready\n"),
            (Self::Readiness(_), "/readyz") => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            (Self::Readiness(_), "/healthz") => text(StatusCode::OK, "ok\n"),
            _ => text(StatusCode::NOT_FOUND, "not found\n"),
        }
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

async fn accept(listener: TcpListener, probes: Probes, drain: Drain) {
    // The server itself counts, so that the connections of the backlog are not forgotten.
    let _serving = drain.guard();
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = free.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = drain.draining() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (probes, drain, guard) = (probes.clone(), drain.clone(), drain.guard());
                tokio::spawn(async move {
                    converse(stream, probes, drain).await;
                    drop((place, guard));
                });
            }
            // Out of descriptors, or the peer left at once: neither may end the server or spin.
            Err(error) => {
                tracing::warn!(%error, "probe server cannot accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, probes: Probes, drain: Drain) {
    let (answered, stopping) = (AtomicBool::new(false), drain.clone());
    let service = service_fn(|request: Request<Incoming>| {
        answered.store(true, Ordering::Release);
        let mut answer = probes.answer(request.method(), request.uri().path());
        if stopping.is_draining() {
            answer.headers_mut().insert(CONNECTION, http::HeaderValue::from_static("close"));
        }
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // A poller that breaks off or stays too long is its own business.
    tokio::select! {
        biased;
        _ended = connection.as_mut() => return,
        () = tokio::time::sleep(CONNECTION_LIMIT) => return,
        () = drain.draining() => {}
    }
    // One that was not answered yet has its question on the way: closing over it would break the answer off.
    if answered.load(Ordering::Acquire) {
        connection.as_mut().graceful_shutdown();
    }
    tokio::time::timeout(HEAD_LIMIT, connection).await.ok();
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::drain::{self, DrainControl};

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn serve(probes: Probes) -> (SocketAddr, DrainControl) {
        let (control, drain) = drain::channel();
        (probes.serve("probes", "127.0.0.1:0".parse().unwrap(), drain).await.unwrap(), control)
    }

    #[tokio::test]
    async fn readyz_follows_readiness_and_healthz_does_not() {
        let readiness = Readiness::default();
        let (address, _control) = serve(Probes::Readiness(readiness.clone())).await;
        assert!(ask(address, "GET /readyz").await.starts_with("HTTP/1.1 503"));
        readiness.set(true);
        assert!(ask(address, "GET /readyz").await.starts_with("HTTP/1.1 200"));
        readiness.set(false);
        assert!(ask(address, "GET /readyz").await.starts_with("HTTP/1.1 503"));
        assert!(ask(address, "GET /healthz").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn metrics_are_openmetrics_text() {
        let (address, _control) = serve(Probes::Stats(Telemetry::default())).await;
        let answer = ask(address, "GET /metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(METRICS_TYPE), "{answer}");
        assert!(answer.contains("atenet_router_parking_active 0") && answer.ends_with("# EOF\n"), "{answer}");
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        let (address, _control) = serve(Probes::Readiness(Readiness::default())).await;
        assert!(ask(address, "GET /metrics").await.starts_with("HTTP/1.1 404"));
        assert!(ask(address, "POST /readyz").await.starts_with("HTTP/1.1 405"));
    }

    #[tokio::test]
    async fn the_end_answers_whoever_has_connected_and_nobody_after() {
        let (address, control) = serve(Probes::Readiness(Readiness::default())).await;
        let mut kept = TcpStream::connect(address).await.unwrap();
        kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        kept.read_exact(&mut first).await.unwrap();
        let mut waiting: Vec<_> = Vec::new();
        for _ in 0..8 {
            waiting.push(TcpStream::connect(address).await.unwrap());
        }
        control.begin();
        for stream in &mut waiting {
            stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("not ready\n"), "{answer}");
        }
        kept.read_to_end(&mut Vec::new()).await.unwrap();
        control.empty().await;
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn a_taken_address_is_named() {
        let (address, _control) = serve(Probes::Readiness(Readiness::default())).await;
        let drain = drain::channel().1;
        let error = Probes::Readiness(Readiness::default()).serve("readiness", address, drain).await.unwrap_err();
        assert!(error.to_string().starts_with(&format!("listener readiness: cannot listen on {address}")), "{error}");
    }
}
