//! One HTTP/2 connection of the router: many tunnels, each a CONNECT stream.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::accept::HANDSHAKE_LIMIT;
use super::admit::{Admitted, Ask, admit};
use super::decline::Decline;
use super::dial::dial;
use super::relay::{Broken, Ending, Relay, RouterSide};
use super::{Shared, log};
use crate::actor_ref::TARGET_HEADER;
use crate::pipe::{Corked, Flusher, accepted, last_words, shaken};
use crate::tunnel::{CONNECTION_WINDOW, MAX_STREAMS, STREAM_WINDOW};

/// Larger frames mean less work per byte; this still lets streams take turns often.
const FRAME: u32 = 64 << 10;
/// What one stream may have queued for the router.
const SEND_BUFFER: usize = 256 << 10;
const HEAD: u32 = 16 << 10;
/// Streams that the router resets before we looked at them. A burst of clients that give up must not cost the whole
/// connection, so it is more than the library's 20.
const RESET_BACKLOG: usize = 1024;

/// Serves until the router closes, or the server stops.
pub(super) async fn serve<T>(io: T, router: SocketAddr, shared: Arc<Shared>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match timeout(HANDSHAKE_LIMIT, shaken(&settings(), io)).await {
        Ok(Ok((connection, flusher))) => accept_streams(connection, flusher, router, shared).await,
        Ok(Err(error)) => tracing::debug!(%router, %error, "HTTP/2 handshake failed"),
        Err(_elapsed) => tracing::debug!(%router, "HTTP/2 handshake took too long"),
    }
}

fn settings() -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(HEAD)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESET_BACKLOG);
    builder
}

async fn accept_streams<T>(
    mut connection: Connection<Corked<T>, Bytes>,
    mut flusher: Flusher<T>,
    router: SocketAddr,
    shared: Arc<Shared>,
) where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let drain = shared.drain.clone();
    let (draining, forced) = (drain.draining(), drain.forced());
    tokio::pin!(draining, forced);
    let mut told = false;
    loop {
        tokio::select! {
            () = &mut forced => {
                // The last resets may still wait for their turn.
                return last_words(&mut flusher).await;
            }
            () = &mut draining, if !told => {
                told = true;
                connection.graceful_shutdown();
            }
            accepted = accepted(&mut connection, &mut flusher) => match accepted {
                Some(Ok((request, respond))) => {
                    tokio::spawn(tunnel(request, respond, router, shared.clone()));
                }
                Some(Err(error)) => {
                    tracing::debug!(%router, %error, "HTTP/2 connection failed");
                    return;
                }
                None => return,
            }
        }
    }
}

async fn tunnel(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    router: SocketAddr,
    shared: Arc<Shared>,
) {
    let wants_body = request.method() != Method::HEAD;
    let asked = ask(&request, &shared);
    let opened = match asked {
        Err(decline) => Err(decline),
        Ok(Admitted { tunnel, port }) => {
            let dialled = tokio::select! {
                biased;
                // The client gave up while the actor was dialled.
                _reset = poll_fn(|cx| respond.poll_reset(cx)) => return,
                dialled = dial(&tunnel, port, shared.dial) => dialled,
            };
            dialled.map(|actor| (actor, tunnel, port))
        }
    };
    match opened {
        Err(decline) => {
            shared.totals.declined(decline);
            log::declined(router, decline);
            refuse(&mut respond, decline, wants_body);
        }
        Ok((actor, tunnel, port)) => {
            let Ok(send) = respond.send_response(Response::new(()), false) else { return };
            shared.totals.opened();
            let record = log::opened(&tunnel, router, port);
            let side = Http2Side { recv: request.into_body(), send };
            let mut relay = Relay::new(side, actor, tunnel, shared.pool.clone());
            let ending = (&mut relay).await;
            let (mut side, tunnel) = relay.into_parts(ending);
            side.end(ending);
            record.closed(&tunnel, ending);
        }
    }
}

fn ask(request: &Request<RecvStream>, shared: &Shared) -> Result<Admitted, Decline> {
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    let ask = Ask {
        is_connect: request.method() == Method::CONNECT,
        targets: request.headers().get_all(TARGET_HEADER).iter().map(http::HeaderValue::as_bytes),
        authority: authority.as_bytes(),
    };
    admit(&shared.table, ask)
}

/// Answers and ends the stream; what the router sent early is thrown away with it.
fn refuse(respond: &mut SendResponse<Bytes>, decline: Decline, wants_body: bool) {
    // An error means that the router is gone already.
    let sent = respond.send_response(decline.response(), !wants_body);
    if let (Ok(mut send), true) = (sent, wants_body) {
        let _unheard = send.send_data(Bytes::from_static(decline.body().as_bytes()), true);
    }
}

struct Http2Side {
    recv: RecvStream,
    send: SendStream<Bytes>,
}

impl Http2Side {
    /// The last word to the router. After a clean end there is none: dropping an unread stream says NO_ERROR, behind
    /// whatever is still queued.
    fn end(&mut self, ending: Ending) {
        match ending {
            Ending::Finished | Ending::ActorDone | Ending::Rested | Ending::RouterReset => {}
            Ending::ActorReset => self.send.send_reset(Reason::CONNECT_ERROR),
            Ending::Cut => self.send.send_reset(Reason::CANCEL),
        }
    }
}

impl RouterSide for Http2Side {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        self.recv.poll_data(cx).map(|data| data.map(|chunk| chunk.map_err(|_| Broken)))
    }

    fn release(&mut self, taken: usize) {
        // Fails only for more than was received.
        let _never = self.recv.flow_control().release_capacity(taken);
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn poll_room(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<Result<usize, Broken>> {
        self.send.reserve_capacity(wanted);
        loop {
            let room = self.send.capacity();
            if room > 0 {
                return Poll::Ready(Ok(room));
            }
            // A rise may have been spent already, so the answer is only a reason to look again.
            match ready!(self.send.poll_capacity(cx)) {
                Some(Ok(_rise)) => {}
                Some(Err(_)) | None => return Poll::Ready(Err(Broken)),
            }
        }
    }

    fn send(&mut self, bytes: Bytes) -> Result<(), Broken> {
        self.send.send_data(bytes, false).map_err(|_| Broken)?;
        self.send.reserve_capacity(0);
        Ok(())
    }

    fn give_back(&mut self) {
        self.send.reserve_capacity(0);
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(self.send.send_data(Bytes::new(), true).map_err(|_| Broken))
    }

    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.send.poll_reset(cx).map(drop)
    }
}
