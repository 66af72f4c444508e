//! One HTTP/2 connection to the control plane, replaced as soon as it is no good.
//!
//! Each new connection looks the name up again and reads credential files that changed. A peer that hangs is noticed
//! by unanswered pings: with the limits of [`Watch`] a control plane that moved is found again within 13 s.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, request};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};
use tonic::Status;

use super::call::{Method, broken};
use super::wire::{End, Wire, finds_pings_too_many};
use crate::config::ControlConfig;
use crate::error::EngineError;
use crate::tls::{ClientTls, PeerName};

/// How soon a peer that is gone is noticed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    ping_every: Duration,
    ping_limit: Duration,
    /// Name, TCP, TLS and HTTP/2 together.
    connect_limit: Duration,
}

#[cfg(test)]
impl Watch {
    pub(super) const fn of(ping_every: Duration, ping_limit: Duration, connect_limit: Duration) -> Self {
        Self { ping_every, ping_limit, connect_limit }
    }
}

impl Default for Watch {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { ping_every: seconds(5), ping_limit: seconds(5), connect_limit: seconds(3) }
    }
}

/// One of several addresses of the name.
const ADDRESS_LIMIT: Duration = Duration::from_secs(1);
/// Pings grow this many times rarer at most when the peer finds them too many.
const MAX_PING_DOUBLINGS: u32 = 6;
/// Connections tried for one call while nothing of it was sent.
const TRIES: u32 = 3;

/// A stream whose request goes on.
pub(super) type Opened = (ResponseFuture, SendStream<Bytes>);

/// Cheap to clone; clones share the connection.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Shared>);

struct Shared {
    /// What the peer is, in messages.
    peer: &'static str,
    address: String,
    server_name: String,
    authority: Authority,
    tls: ClientTls,
    watch: Watch,
    current: ArcSwapOption<Wire>,
    connecting: Connecting,
    ping_doublings: Arc<AtomicU32>,
    /// Connections made so far.
    made: watch::Sender<u64>,
}

/// Callers that need a connection share one attempt at it.
struct Connecting {
    /// The last failure; held while connecting.
    last: Mutex<Status>,
    /// Attempts that ended.
    ended: AtomicU64,
    down: AtomicBool,
}

impl Default for Connecting {
    fn default() -> Self {
        Self {
            last: Mutex::new(Status::unavailable("never tried")),
            ended: AtomicU64::new(0),
            down: AtomicBool::new(false),
        }
    }
}

impl Connection {
    /// To a credential provider. Reads the credential files; connects at the first call.
    pub(crate) fn to_provider(config: &ControlConfig) -> Result<Self, EngineError> {
        let tls = ClientTls::new(Some(config.credentials.clone()), config.roots.clone(), &[b"h2"])
            .map_err(|error| EngineError::tls("credential provider client", error))?;
        let mut connection = Self::new(&config.address, &config.server_name, tls, Watch::default())?;
        if let Some(shared) = Arc::get_mut(&mut connection.0) {
            shared.peer = "credential provider";
        }
        Ok(connection)
    }

    pub(super) fn new(address: &str, server_name: &str, tls: ClientTls, watch: Watch) -> Result<Self, EngineError> {
        let authority = server_name.parse().map_err(|_| EngineError::Control {
            address: address.to_owned(),
            reason: format!("{server_name:?} is not a server name"),
        })?;
        Ok(Self(Arc::new(Shared {
            peer: "control plane",
            address: address.to_owned(),
            server_name: server_name.to_owned(),
            authority,
            tls,
            watch,
            current: ArcSwapOption::empty(),
            connecting: Connecting::default(),
            ping_doublings: Arc::default(),
            made: watch::Sender::new(0),
        })))
    }

    /// Resolves once there is another connection than the present one.
    pub(super) async fn replaced(&self) {
        // The sender lives as long as this does.
        self.0.made.subscribe().changed().await.ok();
    }
}

#[cfg(test)]
impl Connection {
    pub(super) fn is_open(&self) -> bool {
        self.0.usable().is_some()
    }
}

impl Connection {
    /// A method that this peer serves.
    pub(super) fn method(&self, path: &'static str, timeout: &'static str) -> Result<Method, EngineError> {
        Method::new(&self.0.authority, path, timeout)
            .map_err(|error| EngineError::Control { address: self.0.address.clone(), reason: error.to_string() })
    }

    /// The generated clients know only the path.
    pub(super) fn absolute(&self, head: request::Parts) -> Result<Request<()>, Status> {
        let mut request = Request::from_parts(head, ());
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(self.0.authority.clone());
        *request.uri_mut() = Uri::from_parts(parts).map_err(|error| Status::internal(error.to_string()))?;
        Ok(request)
    }

    /// How many connections were made: another one is another peer, perhaps.
    pub(super) fn number(&self) -> u64 {
        *self.0.made.borrow()
    }

    /// Begins a request that goes on, on the live connection; none when there is none.
    pub(super) fn begin(&self, head: Request<()>) -> Option<BoxFuture<'static, Result<Opened, h2::Error>>> {
        let wire = self.0.usable()?;
        Some(Box::pin(async move { wire.begin_request(head).await }))
    }

    /// Sends on the live connection, and once more on another one if it provably never left or was not looked at.
    pub(super) async fn send(
        &self,
        head: impl Fn() -> Request<()>,
        body: Bytes,
    ) -> Result<Response<RecvStream>, Status> {
        let shared = &self.0;
        let mut tries = 0..TRIES;
        loop {
            let last = tries.next().is_none_or(|at| at + 1 == TRIES);
            let wire = shared.ready().await?;
            let error = match wire.send(head(), body.clone()).await {
                Ok(response) => match response.await {
                    Ok(response) => return Ok(response),
                    Err(error) if error.reason() == Some(h2::Reason::REFUSED_STREAM) => error,
                    Err(error) => return Err(shared.told(&broken(&error))),
                },
                Err(error) => error,
            };
            wire.leave();
            if last {
                return Err(shared.unavailable("broke off", error));
            }
        }
    }
}

impl Shared {
    async fn ready(&self) -> Result<Wire, Status> {
        if let Some(sender) = self.usable() {
            return Ok(sender);
        }
        let before = self.connecting.ended.load(Ordering::Acquire);
        let mut last = self.connecting.last.lock().await;
        if let Some(sender) = self.usable() {
            return Ok(sender);
        }
        if self.connecting.ended.load(Ordering::Acquire) != before {
            // An attempt failed while this caller waited for its turn: it failed for both.
            return Err(last.clone());
        }
        let connected = self.connect_in_time().await;
        match &connected {
            Ok(sender) => {
                self.current.store(Some(Arc::new(sender.clone())));
                self.made.send_modify(|made| *made += 1);
            }
            Err(status) => *last = status.clone(),
        }
        self.note(connected.as_ref().err());
        self.connecting.ended.fetch_add(1, Ordering::AcqRel);
        connected
    }

    async fn connect_in_time(&self) -> Result<Wire, Status> {
        match tokio::time::timeout(self.watch.connect_limit, self.connect()).await {
            Ok(connected) => connected,
            Err(_elapsed) => Err(self.unavailable("cannot connect", "took too long")),
        }
    }

    /// Said when it changes, not for each of many attempts.
    fn note(&self, failure: Option<&Status>) {
        let was_down = self.connecting.down.swap(failure.is_some(), Ordering::AcqRel);
        match failure {
            None => tracing::info!(address = %self.address, "connected to the {}", self.peer),
            Some(status) if !was_down => tracing::warn!(problem = status.message(), "the {} is unreachable", self.peer),
            Some(status) => tracing::debug!(problem = status.message(), "the {} is still unreachable", self.peer),
        }
    }

    fn usable(&self) -> Option<Wire> {
        let wire = self.current.load();
        wire.as_ref().filter(|wire| !wire.is_over()).map(|wire| Wire::clone(wire))
    }

    async fn connect(&self) -> Result<Wire, Status> {
        let tcp = self.dial().await?;
        let peer = PeerName::Dns(self.server_name.clone());
        let tls = self.tls.connect(tcp, peer).await.map_err(|error| self.unavailable("cannot connect", error))?;
        let (wire, driver) = Wire::begin(tls).await.map_err(|error| self.unavailable("cannot connect", error))?;
        let every = self.watch.ping_every * 2_u32.pow(self.ping_doublings.load(Ordering::Relaxed));
        let limit = self.watch.ping_limit;
        let (peer, address, doublings) = (self.peer, self.address.clone(), self.ping_doublings.clone());
        tokio::spawn(async move {
            let end = driver.run(every, limit).await;
            if let End::Failed(error) = &end
                && finds_pings_too_many(error)
            {
                doublings
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some((n + 1).min(MAX_PING_DOUBLINGS)))
                    .ok();
            }
            match end {
                End::Closed => {}
                End::Silent => tracing::warn!(%address, "the {peer} went silent"),
                End::Failed(error) => tracing::warn!(%address, %error, "the connection to the {peer} broke"),
                End::Broke(error) => tracing::warn!(%address, %error, "the connection to the {peer} broke"),
            }
        });
        Ok(wire)
    }

    /// Each address of the name gets its turn: the first may be the one that went away.
    async fn dial(&self) -> Result<TcpStream, Status> {
        let addresses =
            tokio::net::lookup_host(&self.address).await.map_err(|error| self.unavailable("cannot look up", error))?;
        let mut last = self.unavailable("cannot look up", "no address");
        for address in addresses {
            match tokio::time::timeout(ADDRESS_LIMIT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true).ok();
                    return Ok(stream);
                }
                Ok(Err(error)) => last = self.unavailable("cannot connect", error),
                Err(_elapsed) => last = self.unavailable("cannot connect", "no answer"),
            }
        }
        Err(last)
    }

    /// The same with the peer's name and address.
    fn told(&self, status: &Status) -> Status {
        Status::new(status.code(), format!("{} {}: {}", self.peer, self.address, status.message()))
    }

    fn unavailable(&self, what: &str, why: impl std::fmt::Display) -> Status {
        Status::unavailable(format!("{} {}: {what}: {why}", self.peer, self.address))
    }
}
