//! One HTTP/2 connection: its driver, and the pings that find out whether a silent peer still lives.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Ping, PingPong};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::connection::Opened;
use crate::pipe::{Corked, Flusher, Heard, driven};

const WINDOW: u32 = 1 << 20;
const MAX_HEADERS: u32 = 64 << 10;

/// Where calls begin. Cheap to clone.
#[derive(Clone)]
pub(super) struct Wire {
    requests: SendRequest<Bytes>,
    over: Arc<AtomicBool>,
}

/// The other half: runs until the connection ends.
pub(super) struct Driver<T> {
    connection: h2::client::Connection<Corked<T>, Bytes>,
    flusher: Flusher<T>,
    heard: Heard,
    ping: Option<PingPong>,
    over: Arc<AtomicBool>,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    Closed,
    /// No pong in time.
    Silent,
    Failed(h2::Error),
    Broke(io::Error),
}

impl Wire {
    pub(super) async fn begin<T>(io: T) -> Result<(Self, Driver<T>), h2::Error>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let (io, flusher, heard) = Corked::new(io);
        let mut builder = Builder::new();
        builder
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(MAX_HEADERS)
            .enable_push(false);
        let (requests, mut connection) = builder.handshake(io).await?;
        let (ping, over) = (connection.ping_pong(), Arc::<AtomicBool>::default());
        Ok((Self { requests, over: over.clone() }, Driver { connection, flusher, heard, ping, over }))
    }

    /// Whether calls may begin here, as far as it is known.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// No more calls; those that run go on.
    pub(super) fn leave(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Sends a whole request. After an error nothing of it was sent.
    pub(super) async fn send(&self, head: Request<()>, body: Bytes) -> Result<ResponseFuture, h2::Error> {
        let mut requests = self.requests.clone();
        poll_fn(|cx| requests.poll_ready(cx)).await?;
        let (response, mut stream) = requests.send_request(head, false)?;
        stream.send_data(body, true)?;
        Ok(response)
    }
}

impl Wire {
    /// Sends a head alone.
    pub(super) async fn begin_request(&self, head: Request<()>) -> Result<Opened, h2::Error> {
        let mut requests = self.requests.clone();
        poll_fn(|cx| requests.poll_ready(cx)).await?;
        requests.send_request(head, false)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    /// `every`: the silence after which the peer is asked; `limit`: how long it may take to answer.
    pub(super) async fn run(self, every: Duration, limit: Duration) -> End {
        let Self { connection, mut flusher, heard, ping, over } = self;
        let connection = pin!(connection);
        let end = tokio::select! {
            biased;
            ended = driven(connection, &mut flusher) => match ended {
                Ok(Ok(())) => End::Closed,
                Ok(Err(error)) => End::Failed(error),
                Err(error) => End::Broke(error),
            },
            () = silence(ping, &heard, every, limit) => End::Silent,
        };
        over.store(true, Ordering::Release);
        end
    }
}

/// Returns when the peer has said nothing for `every` and then left a ping unanswered for `limit`.
async fn silence(ping: Option<PingPong>, heard: &Heard, every: Duration, limit: Duration) {
    let Some(mut ping) = ping else { return std::future::pending().await };
    loop {
        let quiet = heard.since();
        if quiet < every {
            sleep(every - quiet).await;
            continue;
        }
        match timeout(limit, ping.ping(Ping::opaque())).await {
            Ok(Ok(_pong)) => {}
            // It ended, as its driver will tell.
            Ok(Err(_)) => std::future::pending().await,
            Err(_elapsed) => return,
        }
    }
}

/// gRPC servers answer frequent pings with GOAWAY ENHANCE_YOUR_CALM; the client then has to ping less often.
pub(super) fn finds_pings_too_many(error: &h2::Error) -> bool {
    error.is_go_away() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next connection pings half as often then.
    #[tokio::test]
    async fn a_peer_that_finds_pings_too_many_is_understood() {
        let (near, far) = tokio::io::duplex(65_536);
        let server = tokio::spawn(async move {
            let mut connection = h2::server::handshake(far).await.unwrap();
            let _request = connection.accept().await;
            connection.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM);
            while connection.accept().await.is_some() {}
        });
        let (wire, driver) = Wire::begin(near).await.unwrap();
        let hour = Duration::from_secs(3600);
        let running = tokio::spawn(driver.run(hour, hour));
        let head = Request::post("https://api/x").body(()).unwrap();
        let response = wire.send(head, Bytes::new()).await.unwrap();
        response.await.unwrap_err();
        let end = running.await.unwrap();
        assert!(matches!(&end, End::Failed(error) if finds_pings_too_many(error)), "{end:?}");
        assert!(wire.is_over());
        server.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_answers_pings_is_kept_and_one_that_does_not_is_left() {
        let (near, far) = tokio::io::duplex(65_536);
        let server = tokio::spawn(async move {
            let mut connection = h2::server::handshake(far).await.unwrap();
            // Answers for a minute, and hangs without closing.
            let _minute = timeout(Duration::from_secs(60), connection.accept()).await;
            std::future::pending::<()>().await;
            drop(connection);
        });
        let (_wire, driver) = Wire::begin(near).await.unwrap();
        let began = tokio::time::Instant::now();
        let end = driver.run(Duration::from_secs(5), Duration::from_secs(5)).await;
        assert!(matches!(end, End::Silent), "{end:?}");
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(60) && took <= Duration::from_secs(71), "{took:?}");
        server.abort();
    }
}
