//! One HTTP/2 connection to a worker: made under one deadline, watched, counted.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Ping, PingPong, SendStream};
use http::Request;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::Limits;
use crate::pipe::{Corked, Flusher, Heard, driven};
use crate::spiffe::SpiffeId;
use crate::telemetry::{Open, Telemetry};
use crate::tls::{ClientStream, ClientTls, PeerName};
use crate::tunnel::{CONNECTION_WINDOW, STREAM_WINDOW};

/// Silence after which a connection is asked before it is used again.
const SILENT: Duration = Duration::from_secs(5);
/// How long it may take to say that it lives.
const PONG: Duration = Duration::from_secs(2);
/// How often a connection in use but silent is asked.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// An unused connection is closed after this.
const UNUSED: Duration = Duration::from_secs(120);
/// Payload of one DATA frame towards us at most: large enough to be cheap, small enough that a
/// small answer does not wait long behind a large one.
const MAX_FRAME: u32 = 64 * 1024;
const MAX_HEADERS: u32 = 16 * 1024;

/// A connection and what is known of it.
pub(crate) struct Connection {
    requests: Mutex<SendRequest<Bytes>>,
    ping: tokio::sync::Mutex<PingPong>,
    state: Arc<State>,
}

struct State {
    /// Not to be used for new streams.
    retired: AtomicBool,
    open: AtomicUsize,
    heard: Heard,
}

/// Counts one stream on its connection until dropped.
pub(crate) struct Slot(Arc<State>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Connection {
    /// TCP, TLS and HTTP/2 settings, within the limits.
    pub(super) async fn dial(
        tls: &ClientTls,
        limits: Limits,
        telemetry: &Telemetry,
        (to, id): (SocketAddr, &SpiffeId),
    ) -> Result<Arc<Self>, String> {
        let stream = async {
            let stream = Self::secure(tls, limits.connect, to, id).await?;
            Self::handshake(stream, telemetry, limits.handshake).await.map_err(|problem| format!("{to}: {problem}"))
        };
        timeout(limits.handshake, stream)
            .await
            .unwrap_or_else(|_| Err(format!("{to}: no TLS and HTTP/2 handshake in time")))
    }

    async fn secure(tls: &ClientTls, connect: Duration, to: SocketAddr, id: &SpiffeId) -> Result<Stream, String> {
        let tcp = timeout(connect, TcpStream::connect(to)).await;
        let tcp = tcp.map_err(|_| format!("{to}: no connection in time"))?.map_err(|e| format!("{to}: {e}"))?;
        tcp.set_nodelay(true).map_err(|e| format!("{to}: {e}"))?;
        let stream = tls.connect(tcp, PeerName::Spiffe(id.clone())).await.map_err(|e| format!("{to}: {e}"))?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(format!("{to}: the worker does not speak HTTP/2"));
        }
        Ok(stream)
    }

    async fn handshake(stream: Stream, telemetry: &Telemetry, limit: Duration) -> Result<Arc<Self>, String> {
        let (io, flusher, heard) = Corked::new(stream);
        let (requests, mut driver) = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(MAX_FRAME)
            .max_header_list_size(MAX_HEADERS)
            .enable_push(false)
            .handshake(io)
            .await
            .map_err(|e| e.to_string())?;
        let ping = driver.ping_pong().ok_or("no ping")?;
        let state = Arc::new(State { retired: AtomicBool::new(false), open: AtomicUsize::new(0), heard });
        let this = Arc::new(Self { requests: Mutex::new(requests), ping: tokio::sync::Mutex::new(ping), state });
        tokio::spawn(drive(driver, flusher, Arc::downgrade(&this), this.state.clone(), telemetry.worker_connection()));
        // A peer speaks its settings before anything else: its pong says that we have them.
        if this.ping(limit).await { Ok(this) } else { Err("the worker broke off the HTTP/2 handshake".into()) }
    }

    /// Whether new streams may go here. Notices a GOAWAY that has arrived.
    pub(crate) fn usable(&self) -> bool {
        if self.state.retired.load(Ordering::Acquire) {
            return false;
        }
        let ready = self.requests.lock().poll_ready(&mut Context::from_waker(Waker::noop()));
        let usable = !matches!(ready, Poll::Ready(Err(_)));
        if !usable {
            self.retire();
        }
        usable
    }

    /// No new streams; those that run go on.
    pub(crate) fn retire(&self) {
        self.state.retired.store(true, Ordering::Release);
    }

    /// A place for one more stream, unless the peer's limit is reached.
    pub(super) fn try_slot(self: &Arc<Self>) -> Option<(Arc<Self>, Slot)> {
        let limit = self.requests.lock().current_max_send_streams();
        let taken = self.state.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < limit).then_some(n + 1));
        taken.ok().map(|_| (self.clone(), Slot(self.state.clone())))
    }

    /// Whether the peer lives: heard of lately, or it answers a ping.
    pub(crate) async fn answers(&self) -> bool {
        self.state.heard.since() < SILENT || self.ping(PONG).await
    }

    async fn ping(&self, limit: Duration) -> bool {
        let mut ping = self.ping.lock().await;
        // An earlier caller may have left its ping behind: its pong serves as well.
        let _pending = ping.send_ping(Ping::opaque());
        timeout(limit, poll_fn(|cx| ping.poll_pong(cx))).await.is_ok_and(|pong| pong.is_ok())
    }

    /// Sends a request's head. The stream limit is kept by [`Slot`]s; a peer that lowered it makes us wait.
    pub(super) async fn request(&self, head: Request<()>) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let mut requests = self.requests.lock().clone();
        poll_fn(|cx| requests.poll_ready(cx)).await?;
        requests.send_request(head, false)
    }
}

type Stream = ClientStream<TcpStream>;
type Driver = h2::client::Connection<Corked<Stream>, Bytes>;

/// Moves the connection's bytes until it ends, its peer goes silent or nobody needs it.
async fn drive(driver: Driver, mut flusher: Flusher<Stream>, owner: Weak<Connection>, state: Arc<State>, _open: Open) {
    let driver = pin!(driver);
    let moved = async { driven(driver, &mut flusher).await.map_err(|e| e.to_string())?.map_err(|e| e.to_string()) };
    tokio::select! {
        result = moved => if let Err(error) = result { tracing::debug!(%error, "a worker's connection ended") },
        () = watch(&owner, &state) => {}
    }
    state.retired.store(true, Ordering::Release);
}

/// Returns when the connection should be dropped: its peer is dead.
async fn watch(owner: &Weak<Connection>, state: &State) {
    let mut used = Instant::now();
    loop {
        sleep(KEEP_ALIVE).await;
        if state.open.load(Ordering::Acquire) > 0 {
            used = Instant::now();
        }
        let Some(connection) = owner.upgrade() else {
            // Only streams are left; they end on their own or by their idle limit.
            continue;
        };
        if used.elapsed() >= UNUSED {
            connection.retire();
        } else if state.open.load(Ordering::Acquire) > 0
            && state.heard.since() >= KEEP_ALIVE
            && !connection.ping(KEEP_ALIVE).await
        {
            tracing::info!("a worker went silent; its streams are reset");
            return;
        }
    }
}
