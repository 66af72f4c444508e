//! One HTTP/2 connection to the control plane, replaced as soon as it is no good.
//!
//! Each new connection looks the name up again and reads credential files that changed. A peer that hangs is noticed
//! by unanswered pings: with the limits of [`Watch`] a control plane that moved is found again within 13 s.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};
use tonic::Status;
use tonic::body::Body;

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
const WINDOW: u32 = 1 << 20;

/// A tonic transport. Cheap to clone; clones share the connection.
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
    current: ArcSwapOption<SendRequest<Body>>,
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

impl tower::Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = Status;
    type Future = BoxFuture<'static, Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move { shared.send(request).await })
    }
}

impl Shared {
    /// Sends on the live connection. A request that provably never left is sent once more on a new one.
    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, Status> {
        let request = self.absolute(request)?;
        let mut sender = self.ready().await?;
        let unsent = match sender.try_send_request(request).await {
            Ok(response) => return Ok(response),
            Err(mut error) => match error.take_message() {
                Some(request) => request,
                None => return Err(self.unavailable("broke off", error.into_error())),
            },
        };
        let mut sender = self.ready().await?;
        sender.send_request(unsent).await.map_err(|error| self.unavailable("broke off", error))
    }

    /// The generated client knows only the path.
    fn absolute(&self, mut request: Request<Body>) -> Result<Request<Body>, Status> {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(self.authority.clone());
        *request.uri_mut() = Uri::from_parts(parts).map_err(|error| Status::internal(error.to_string()))?;
        Ok(request)
    }

    async fn ready(&self) -> Result<SendRequest<Body>, Status> {
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

    async fn connect_in_time(&self) -> Result<SendRequest<Body>, Status> {
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

    fn usable(&self) -> Option<SendRequest<Body>> {
        let sender = self.current.load();
        sender.as_ref().filter(|sender| !sender.is_closed()).map(|sender| SendRequest::clone(sender))
    }

    async fn connect(&self) -> Result<SendRequest<Body>, Status> {
        let tcp = self.dial().await?;
        let peer = PeerName::Dns(self.server_name.clone());
        let tls = self.tls.connect(tcp, peer).await.map_err(|error| self.unavailable("cannot connect", error))?;
        let (sender, connection) = self
            .builder()
            .handshake(TokioIo::new(tls))
            .await
            .map_err(|error| self.unavailable("cannot connect", error))?;
        let (peer, address, doublings) = (self.peer, self.address.clone(), self.ping_doublings.clone());
        tokio::spawn(async move {
            let Err(error) = connection.await else { return };
            if finds_pings_too_many(&error) {
                doublings
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some((n + 1).min(MAX_PING_DOUBLINGS)))
                    .ok();
            }
            tracing::warn!(%address, %error, "the connection to the {peer} broke");
        });
        Ok(sender)
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let every = self.watch.ping_every * 2_u32.pow(self.ping_doublings.load(Ordering::Relaxed));
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(every)
            .keep_alive_timeout(self.watch.ping_limit)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW);
        builder
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

    fn unavailable(&self, what: &str, why: impl std::fmt::Display) -> Status {
        Status::unavailable(format!("{} {}: {what}: {why}", self.peer, self.address))
    }
}

/// gRPC servers answer frequent pings with GOAWAY ENHANCE_YOUR_CALM; the client then has to ping less often.
pub(super) fn finds_pings_too_many(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(h2) = cause.downcast_ref::<h2::Error>() {
            return h2.is_go_away() && h2.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM);
        }
        source = cause.source();
    }
    false
}
