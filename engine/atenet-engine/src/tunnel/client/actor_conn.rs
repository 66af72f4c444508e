//! An HTTP/1.1 connection to an actor, inside a tunnel.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Tunnel;
use super::connection::{Connection, Slot};
use crate::assignment::Assignment;
use crate::http1::Reader;
use crate::pipe::{H2Sink, H2Source, Outbox, Sink};
use crate::telemetry::Open;

/// How long an actor may take to end its side of a connection that we ended.
pub(super) const LINGER: Duration = Duration::from_secs(5);
const UNDUE_CHUNKS: u32 = 16;

/// Lives for one activation of one actor, and carries one exchange at a time. In a box, since it goes from hand to hand
/// with every request.
pub struct ActorConn {
    pub reader: Reader<H2Source>,
    pub sink: H2Sink,
    pub out: Outbox,
    /// It carried an exchange before, so the actor may just have closed it.
    pub reused: bool,
    pub(super) assignment: Arc<Assignment>,
    pub(super) port: u16,
    pub(super) idle_since: Instant,
    connection: Arc<Connection>,
    /// Keep the connection's count and the metrics right.
    _held: (Slot, Open),
}

impl ActorConn {
    #[must_use]
    pub fn new(tunnel: Tunnel, assignment: Arc<Assignment>, port: u16) -> Box<Self> {
        Box::new(Self {
            reader: Reader::new(tunnel.source),
            sink: tunnel.sink,
            out: Outbox::default(),
            reused: false,
            assignment,
            port,
            idle_since: Instant::now(),
            connection: tunnel.connection,
            _held: (tunnel.slot, tunnel.open),
        })
    }

    #[must_use]
    pub fn assignment(&self) -> &Arc<Assignment> {
        &self.assignment
    }

    /// Whether the worker's connection beneath still takes new streams.
    #[must_use]
    pub fn worker_lives(&self) -> bool {
        self.connection.usable()
    }

    /// Ends it in order: what the actor was sent reaches it, then an end, and never a reset behind that.
    ///
    /// Must run inside a tokio runtime.
    pub fn finish(mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let ended = self.out.is_empty() && matches!(self.sink.poll_end(&mut cx), Poll::Ready(Ok(())));
        // An actor that has ended as well needs no waiting for: the stream is closed.
        if ended && matches!(self.reader.poll_raw(&mut cx), Poll::Pending) {
            tokio::spawn(self.linger());
        }
    }

    /// Waits for the actor's own end; dropping the stream before it would be a reset.
    async fn linger(mut self) {
        let ends = async {
            // Nothing is due any more; an actor that speaks all the same is not listened to for long.
            for _ in 0..UNDUE_CHUNKS {
                match poll_fn(|cx| self.reader.poll_raw(cx)).await {
                    Ok(chunk) if !chunk.is_empty() => {}
                    _ => return,
                }
            }
        };
        let _too_long = timeout(LINGER, ends).await;
    }

    /// Whether it can carry another exchange: nothing unread, neither side ended, and the worker's
    /// connection not on its way out.
    pub(super) fn is_live(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.reader.buffered().is_empty()
            && self.out.is_empty()
            && self.connection.usable()
            && matches!(self.reader.poll_fill(&mut cx), Poll::Pending)
    }
}
