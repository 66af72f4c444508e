//! The router's end of the tunnels: one HTTP/2 connection per worker, a CONNECT stream per
//! connection to an actor, idle ones kept for the same activation.

mod actor_conn;
mod actor_h2;
mod connection;
mod idle;
mod shared;
mod worker;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode, Uri};
use parking_lot::Mutex;
use thiserror::Error;

use self::connection::{Connection, Slot};
use self::idle::IdleConns;
use self::shared::SharedConns;
use self::worker::Worker;
use crate::actor_ref::TARGET_HEADER;
use crate::assignment::Assignment;
use crate::config::{TimeoutsConfig, WorkerHop};
use crate::pipe::{H2Duplex, H2Sink, H2Source};
use crate::spiffe::SpiffeId;
use crate::telemetry::{Open, Telemetry};
use crate::tls::{ClientTls, TlsError};
use crate::tunnel::server::STALE_HEADER;

pub use self::actor_conn::ActorConn;
pub use self::actor_h2::{ActorH2, Heard, Spoken};

/// A fresh connection may be told to go away while the first CONNECT is under way.
const CONNECTIONS_TRIED: usize = 3;

/// Why no tunnel was opened. Nothing of the request has been sent in any of these.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// The worker says that the actor is not there.
    #[error("the worker does not host the actor")]
    Stale,
    /// No connection, no answer, or not the worker that was meant.
    #[error("{0}")]
    Unreachable(String),
    /// The actor's port refused.
    #[error("the actor's port refused")]
    PortRefused,
    #[error("the worker rejected the port")]
    BadPort,
    #[error("the worker answered {0}")]
    Rejected(StatusCode),
}

/// Opens tunnels. Cheap to clone; the last clone closes the connections as their streams end.
#[derive(Clone)]
pub struct TunnelClient(Arc<Inner>);

struct Inner {
    tls: ClientTls,
    limits: Limits,
    telemetry: Telemetry,
    workers: Mutex<HashMap<WorkerKey, Arc<Worker>>>,
    idle: IdleConns,
    shared: SharedConns,
}

type WorkerKey = (SocketAddr, Arc<str>);

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The TCP connection.
    connect: Duration,
    /// TCP, TLS and SETTINGS together; also one CONNECT's answer.
    handshake: Duration,
}

/// A stream to an actor's port.
pub struct Tunnel {
    pub source: H2Source,
    pub sink: H2Sink,
    pub(crate) connection: Arc<Connection>,
    slot: Slot,
    open: Open,
}

impl Tunnel {
    /// As one object that reads and writes, with what keeps the connection's count right.
    pub(crate) fn into_duplex(self) -> (H2Duplex, (Slot, Open)) {
        (H2Duplex::new(self.source, self.sink), (self.slot, self.open))
    }
}

impl TunnelClient {
    /// Reads the router's credentials; starts the sweeper of idle connections, so it must run
    /// inside a tokio runtime.
    pub fn new(hop: &WorkerHop, timeouts: &TimeoutsConfig, telemetry: Telemetry) -> Result<Self, TlsError> {
        let tls = ClientTls::new(Some(hop.credentials.clone()), hop.roots.clone(), &[b"h2"])?;
        let limits = Limits {
            connect: Duration::from_millis(hop.connect_timeout_ms),
            handshake: Duration::from_millis(hop.handshake_timeout_ms),
        };
        let kept = Duration::from_millis(timeouts.actor_idle_ms);
        let (idle, shared) = (IdleConns::new(kept), SharedConns::new(kept));
        let inner = Arc::new(Inner { tls, limits, telemetry, workers: Mutex::default(), idle, shared });
        idle::spawn_sweeper(&inner);
        Ok(Self(inner))
    }

    /// An idle HTTP/1.1 connection to this activation's port, if one lives.
    #[must_use]
    pub fn take_idle(&self, to: &Arc<Assignment>, port: u16, idempotent: bool) -> Option<Box<ActorConn>> {
        self.0.idle.take(to, port, idempotent)
    }

    /// Keeps a connection whose last exchange ended cleanly.
    pub fn put_idle(&self, conn: Box<ActorConn>) {
        self.0.idle.put(conn);
    }

    /// Ends, in order, every connection to an actor that carries nothing now. Those in use are kept no longer than
    /// their exchange if whoever uses them does not put them back.
    pub fn end_idle(&self) {
        self.0.idle.sweep(Duration::ZERO);
        self.0.shared.sweep(Duration::ZERO);
    }

    /// The open HTTP/2 connection to this activation's port, if one lives.
    #[must_use]
    pub fn shared(&self, to: &Arc<Assignment>, port: u16) -> Option<ActorH2> {
        self.0.shared.get(to, port)
    }

    /// Offers a connection to later requests of its activation.
    pub fn share(&self, conn: ActorH2) {
        self.0.shared.offer(conn);
    }

    /// A fresh tunnel. Retries by itself only where a connection went away before the CONNECT was answered.
    pub async fn open(&self, to: &Arc<Assignment>, port: u16) -> Result<Tunnel, OpenError> {
        let worker = self.worker(to)?;
        let mut last = OpenError::Unreachable("no connection".into());
        for _ in 0..CONNECTIONS_TRIED {
            let (connection, slot) = worker.acquire().await?;
            if !connection.answers().await {
                connection.retire();
                last = OpenError::Unreachable("the worker went silent".into());
                continue;
            }
            let asked = tokio::time::timeout(self.0.limits.handshake, ask(&connection, to, port));
            match asked.await {
                Ok(Ok((source, sink))) => {
                    let open = self.0.telemetry.tunnel();
                    return Ok(Tunnel { source, sink, connection, slot, open });
                }
                Ok(Err(Asked::Answer(error))) => return Err(error),
                Ok(Err(Asked::Lost(error))) => {
                    connection.retire();
                    last = OpenError::Unreachable(error);
                }
                Err(_) => {
                    connection.retire();
                    return Err(OpenError::Unreachable("the worker did not answer the CONNECT in time".into()));
                }
            }
        }
        Err(last)
    }

    fn worker(&self, to: &Assignment) -> Result<Arc<Worker>, OpenError> {
        let key = (to.worker, to.worker_spiffe_id.clone());
        let mut workers = self.0.workers.lock();
        if let Some(worker) = workers.get(&key) {
            return Ok(worker.clone());
        }
        let id = SpiffeId::from_shared(key.1.clone())
            .map_err(|error| OpenError::Unreachable(format!("the assignment's SPIFFE ID {error}")))?;
        let worker =
            Arc::new(Worker::new(self.0.tls.clone(), self.0.limits, self.0.telemetry.clone(), (to.worker, id)));
        workers.insert(key, worker.clone());
        Ok(worker)
    }
}

/// A CONNECT's fate.
enum Asked {
    Answer(OpenError),
    /// The connection ended, or the peer is leaving: another one may serve.
    Lost(String),
}

async fn ask(connection: &Connection, to: &Assignment, port: u16) -> Result<(H2Source, H2Sink), Asked> {
    let lost = |error: h2::Error| Asked::Lost(error.to_string());
    let request = connect_request(to, port).map_err(|error| Asked::Lost(error.to_string()))?;
    let (response, send) = connection.request(request).await.map_err(lost)?;
    let response = response.await.map_err(lost)?;
    if response.status().is_success() {
        return Ok((H2Source::new(response.into_body()), H2Sink::new(send)));
    }
    Err(Asked::Answer(refusal_of(response.status(), response.headers())))
}

fn connect_request(to: &Assignment, port: u16) -> Result<Request<()>, http::Error> {
    let authority = SocketAddr::new(to.worker.ip(), port).to_string();
    let uri = Uri::builder().authority(authority).build()?;
    Request::builder().method(Method::CONNECT).uri(uri).header(TARGET_HEADER, to.actor.as_str()).body(())
}

/// What a worker's refusal means (row T-02).
fn refusal_of(status: StatusCode, headers: &http::HeaderMap) -> OpenError {
    let stale = headers.get(STALE_HEADER).is_some_and(|value| value == "true");
    match status {
        StatusCode::MISDIRECTED_REQUEST if stale => OpenError::Stale,
        StatusCode::BAD_REQUEST => OpenError::BadPort,
        StatusCode::BAD_GATEWAY => OpenError::PortRefused,
        other => OpenError::Rejected(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_refusals_are_told_apart() {
        let mut stale = http::HeaderMap::new();
        stale.insert(STALE_HEADER, http::HeaderValue::from_static("true"));
        let none = http::HeaderMap::new();
        for (status, headers, want) in [
            (421, &stale, OpenError::Stale),
            (421, &none, OpenError::Rejected(StatusCode::MISDIRECTED_REQUEST)),
            (400, &none, OpenError::BadPort),
            (502, &none, OpenError::PortRefused),
            (405, &none, OpenError::Rejected(StatusCode::METHOD_NOT_ALLOWED)),
        ] {
            assert_eq!(refusal_of(StatusCode::from_u16(status).unwrap(), headers), want);
        }
    }
}
