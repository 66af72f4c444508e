//! An HTTP/1.1 connection to an actor, inside a tunnel.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use super::Tunnel;
use super::connection::{Connection, Slot};
use crate::assignment::Assignment;
use crate::http1::Reader;
use crate::pipe::{H2Sink, H2Source, Outbox};
use crate::telemetry::Open;

/// Lives for one activation of one actor, and carries one exchange at a time.
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
    pub fn new(tunnel: Tunnel, assignment: Arc<Assignment>, port: u16) -> Self {
        Self {
            reader: Reader::new(tunnel.source),
            sink: tunnel.sink,
            out: Outbox::default(),
            reused: false,
            assignment,
            port,
            idle_since: Instant::now(),
            connection: tunnel.connection,
            _held: (tunnel.slot, tunnel.open),
        }
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
