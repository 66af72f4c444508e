//! An HTTP/2 connection to an actor inside a tunnel (prior knowledge), shared by the requests of one activation.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::Tunnel;
use super::actor_conn::LINGER;
use super::connection::{Connection, Slot};
use crate::assignment::Assignment;
use crate::pipe::H2Sink;
use crate::telemetry::Open;
use crate::tunnel::{CONNECTION_WINDOW, STREAM_WINDOW};

const MAX_HEADERS: u32 = 64 * 1024;

/// What an actor's first bytes say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// Nothing yet.
    Nothing,
    /// An HTTP/2 frame, or what may become one.
    Http2,
    /// Anything else, such as an HTTP/1.1 status line.
    Other,
}

/// Cheap to clone; lives while a clone or a stream does.
#[derive(Clone)]
pub struct ActorH2 {
    requests: SendRequest<Bytes>,
    heard: Arc<Heard>,
    pub(super) assignment: Arc<Assignment>,
    pub(super) port: u16,
    connection: Arc<Connection>,
    held: Arc<(Slot, Open)>,
}

impl ActorH2 {
    /// Begins HTTP/2 in a fresh tunnel. Whether the actor speaks it shows with its first bytes.
    pub async fn begin(tunnel: Tunnel, assignment: Arc<Assignment>, port: u16) -> Result<Self, h2::Error> {
        let connection = tunnel.connection.clone();
        let (stream, held) = tunnel.into_duplex();
        let heard = Arc::new(Heard::default());
        let noting = heard.noting(stream);
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEADERS)
            .enable_push(false);
        let (requests, driver) = builder.handshake(noting).await?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "an actor's HTTP/2 connection ended");
            }
        });
        Ok(Self { requests, heard, assignment, port, connection, held: Arc::new(held) })
    }

    /// Sends a request's head once the actor's stream limit allows.
    pub async fn request(&mut self, head: Request<()>, ended: bool) -> Result<(ResponseFuture, H2Sink), h2::Error> {
        std::future::poll_fn(|cx| self.requests.poll_ready(cx)).await?;
        let (response, send) = self.requests.send_request(head, ended)?;
        Ok((response, H2Sink::new(send)))
    }

    #[must_use]
    pub fn heard(&self) -> Arc<Heard> {
        self.heard.clone()
    }

    /// Whether new requests may go here.
    pub(super) fn is_live(&mut self) -> bool {
        let ready = self.requests.poll_ready(&mut Context::from_waker(Waker::noop()));
        !matches!(ready, Poll::Ready(Err(_))) && self.connection.usable() && self.heard.spoken() != Spoken::Other
    }

    /// Whether somebody besides the pool holds it: each request does until its end.
    pub(super) fn is_used(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }
}

/// Tells what the actor's first bytes were.
#[derive(Debug, Default)]
pub struct Heard(AtomicU8);

impl Heard {
    /// Of a peer whose protocol is agreed on already.
    pub(crate) const fn http2() -> Self {
        Self(AtomicU8::new(1))
    }

    /// The stream, its first byte noted here.
    pub(crate) fn noting<T: AsyncRead + AsyncWrite + Unpin>(self: &Arc<Self>, stream: T) -> Noting<T> {
        Noting { stream, heard: self.clone(), linger: None }
    }

    #[must_use]
    pub fn spoken(&self) -> Spoken {
        match self.0.load(Ordering::Acquire) {
            0 => Spoken::Nothing,
            1 => Spoken::Http2,
            _ => Spoken::Other,
        }
    }

    /// A server's first frame is SETTINGS: a length of which the first byte is 0, since no sane
    /// settings frame takes 64 KiB. A status line begins with a letter.
    fn note(&self, first: u8) {
        let _known = self.0.compare_exchange(0, if first == 0 { 1 } else { 2 }, Ordering::AcqRel, Ordering::Acquire);
    }
}

pub(crate) struct Noting<T> {
    stream: T,
    heard: Arc<Heard>,
    /// Set once our side has ended: how long the actor's end is waited for.
    linger: Option<Pin<Box<Sleep>>>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Noting<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Some(first) = buf.filled().get(before) {
            self.heard.note(*first);
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Noting<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Ends our side, then waits for the actor's: dropping the stream before that would reset it.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut page = [0; 1024];
        while linger.as_mut().poll(cx).is_pending() {
            let mut undue = ReadBuf::new(&mut page);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut undue))?;
            if undue.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_and_later_ones_change_nothing() {
        for (first, want) in [(0, Spoken::Http2), (b'H', Spoken::Other)] {
            let heard = Heard::default();
            assert_eq!(heard.spoken(), Spoken::Nothing);
            heard.note(first);
            heard.note(b'x');
            heard.note(0);
            assert_eq!(heard.spoken(), want);
        }
    }
}
