//! Connections to origins, kept for the tunnel that made them: no two actors ever share one.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use parking_lot::Mutex;

use super::denial::Denial;
use super::origin::{Origins, Target};
use crate::http1::Reader;
use crate::pipe::{H2Sink, IoSink, IoSource, Outbox, ReadHalf, Socket, WriteHalf, split};
use crate::policy::{Host, Layer};
use crate::tunnel::client::Heard;

/// Idle HTTP/1.1 connections to one origin.
const IDLE: usize = 8;
/// Origins that one tunnel keeps connections to.
const ORIGINS: usize = 64;
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const MAX_HEADERS: u32 = 64 * 1024;

type Io = Box<dyn Socket>;

/// An HTTP/1.1 connection.
pub(super) struct Http1 {
    pub(super) reader: Reader<IoSource<ReadHalf<Io>>>,
    pub(super) sink: IoSink<WriteHalf<Io>>,
    pub(super) out: Outbox,
    /// It carried an exchange before, so the origin may just have closed it.
    pub(super) reused: bool,
}

impl Http1 {
    fn new(io: Io) -> Self {
        let (read, write) = split(io);
        let (reader, sink) = (Reader::new(IoSource::new(read)), IoSink::new(write));
        Self { reader, sink, out: Outbox::default(), reused: false }
    }

    /// Whether it can carry another exchange: nothing unread, and not ended.
    fn is_live(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.reader.buffered().is_empty()
            && self.out.is_empty()
            && matches!(self.reader.poll_fill(&mut cx), Poll::Pending)
    }
}

/// An HTTP/2 connection. Clones share it.
#[derive(Clone)]
pub(super) struct Http2 {
    requests: SendRequest<Bytes>,
    pub(super) heard: Arc<Heard>,
}

impl Http2 {
    async fn begin(io: Io, heard: Heard) -> Result<Self, Denial> {
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEADERS)
            .enable_push(false);
        let heard = Arc::new(heard);
        let noting = heard.noting(io);
        let (requests, driver) = builder.handshake(noting).await.map_err(|_| Denial::Broken)?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "an origin's HTTP/2 connection ended");
            }
        });
        Ok(Self { requests, heard })
    }

    /// Sends a request's head once the origin's stream limit allows.
    pub(super) async fn request(
        &mut self,
        head: Request<()>,
        ended: bool,
    ) -> Result<(ResponseFuture, H2Sink), h2::Error> {
        std::future::poll_fn(|cx| self.requests.poll_ready(cx)).await?;
        let (response, send) = self.requests.send_request(head, ended)?;
        Ok((response, H2Sink::new(send)))
    }

    fn is_live(&mut self) -> bool {
        let ready = self.requests.poll_ready(&mut Context::from_waker(Waker::noop()));
        !matches!(ready, Poll::Ready(Err(_)))
    }
}

/// A connection that an exchange can be made on.
pub(super) enum Origin {
    Http1(Box<Http1>),
    Http2(Http2),
}

#[derive(Default)]
struct Kept {
    http1: Vec<Http1>,
    http2: Option<Http2>,
}

#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<Host, Kept>>);

impl Pool {
    /// A kept connection, or a new one. `fresh`: a kept one has just failed. `grpc`: cleartext is HTTP/2 as well.
    pub(super) async fn reach(
        &self,
        origins: &Origins,
        layer: Layer,
        target: Target<'_>,
        (fresh, grpc): (bool, bool),
    ) -> Result<Origin, Denial> {
        let host = target.host;
        if !fresh && let Some(kept) = self.take(host, grpc && layer == Layer::Http) {
            return Ok(kept);
        }
        let (io, http2): (Io, _) = match layer {
            Layer::Http => (Box::new(origins.dial(target).await?), grpc),
            Layer::Tls => {
                let stream = origins.dial_tls(target).await?;
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                (Box::new(stream), http2)
            }
        };
        if !http2 {
            return Ok(Origin::Http1(Box::new(Http1::new(io))));
        }
        let heard = if layer == Layer::Tls { Heard::http2() } else { Heard::default() };
        let conn = Http2::begin(io, heard).await?;
        self.keep(host, |kept| kept.http2 = Some(conn.clone()));
        Ok(Origin::Http2(conn))
    }

    fn take(&self, host: &Host, only_http2: bool) -> Option<Origin> {
        let mut pool = self.0.lock();
        let kept = pool.get_mut(host)?;
        kept.http2 = kept.http2.take().and_then(|mut conn| conn.is_live().then_some(conn));
        if let Some(conn) = &kept.http2 {
            return Some(Origin::Http2(conn.clone()));
        }
        while let Some(mut conn) = kept.http1.pop().filter(|_| !only_http2) {
            if conn.is_live() {
                return Some(Origin::Http1(Box::new(conn)));
            }
        }
        None
    }

    /// Keeps a connection whose last exchange ended cleanly.
    pub(super) fn put(&self, host: &Host, mut conn: Http1) {
        conn.reused = true;
        self.keep(host, |kept| {
            if kept.http1.len() < IDLE {
                kept.http1.push(conn);
            }
        });
    }

    fn keep(&self, host: &Host, put: impl FnOnce(&mut Kept)) {
        let mut pool = self.0.lock();
        if pool.len() >= ORIGINS && !pool.contains_key(host) {
            return;
        }
        put(pool.entry(host.clone()).or_default());
    }
}
