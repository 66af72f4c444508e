//! The frame of a client's HTTP/2 connection: settings, streams one by one, drain and idleness.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, Connection, SendResponse};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::drain::Drain;
use crate::pipe::{Corked, Flusher, Idle, shaken};

/// What a client may send on one stream, and on all, before the actors took it.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const FRAME: u32 = 64 << 10;
/// What one stream may have queued for a slow client.
const SEND_BUFFER: usize = 256 << 10;
/// Streams that a client resets before we looked at them: beyond it, it is an attack.
const RESET_BACKLOG: usize = 128;

/// After our goodbye the client's last frames are read on for this long, so that no reset overtakes an answer.
const DISCARD: Duration = Duration::from_secs(2);
const DISCARD_BYTES: usize = 1 << 20;

/// What a client's connection may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of a request's head.
    pub(crate) head_bytes: usize,
    pub(crate) streams: u32,
    /// The handshake.
    pub(crate) header: Duration,
    /// A connection without a stream.
    pub(crate) idle: Duration,
}

/// One request of the connection.
pub(crate) type Stream = (Request<RecvStream>, SendResponse<Bytes>);

/// What a turn of the connection brought.
enum Turn {
    Stream(Box<Stream>),
    Draining,
    Unused,
    Over,
}

/// Serves until the client leaves, is idle for too long, or the drain has let its streams end.
/// `each` starts a stream's work. `websockets`: extended CONNECT is offered.
pub(crate) async fn serve<T, F>(limits: Limits, drain: &Drain, io: T, websockets: bool, mut each: F)
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    F: FnMut(Stream, Counted),
{
    let settings = settings(&limits, websockets);
    let Ok(Ok((mut connection, mut flusher))) = timeout(limits.header, shaken(&settings, io)).await else { return };
    let (open, idle) = (Arc::new(AtomicUsize::new(0)), Idle::new(limits.idle));
    let mut told = false;
    loop {
        match turn(&mut connection, &mut flusher, drain, (&open, &idle), told).await {
            Turn::Stream(stream) => {
                open.fetch_add(1, Ordering::AcqRel);
                idle.touch();
                each(*stream, Counted(open.clone()));
            }
            Turn::Draining | Turn::Unused => {
                told = true;
                connection.graceful_shutdown();
            }
            Turn::Over => break,
        }
    }
    drop(connection);
    let _enough = timeout(DISCARD, flusher.goodbye(DISCARD_BYTES)).await;
}

/// Counts one stream of its connection until dropped.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn settings(limits: &Limits, websockets: bool) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESET_BACKLOG);
    if websockets {
        builder.enable_connect_protocol();
    }
    builder
}

async fn turn<T: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<Corked<T>, Bytes>,
    flusher: &mut Flusher<T>,
    drain: &Drain,
    (open, idle): (&AtomicUsize, &Idle),
    told: bool,
) -> Turn {
    let next = poll_fn(|cx| {
        let accepted = connection.poll_accept(cx);
        // Everything that one turn of all streams produced leaves in one write.
        let over = matches!(accepted, Poll::Ready(None | Some(Err(_))));
        let flushed = if over { flusher.poll_flush(cx) } else { flusher.poll_flush_late(cx) };
        match (accepted, flushed) {
            (Poll::Ready(Some(Ok(stream))), _) => Poll::Ready(Turn::Stream(Box::new(stream))),
            (Poll::Ready(_), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(Turn::Over),
            (Poll::Pending, _) => {
                if open.load(Ordering::Acquire) > 0 {
                    idle.touch();
                }
                if !told && idle.poll_expired(cx).is_ready() { Poll::Ready(Turn::Unused) } else { Poll::Pending }
            }
        }
    });
    if told {
        return next.await;
    }
    tokio::select! {
        biased;
        turn = next => turn,
        () = drain.draining() => Turn::Draining,
    }
}
