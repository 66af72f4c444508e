//! One HTTP/1.1 connection of the router: one CONNECT, then the tunnel.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::activation::Tunnel;
use super::admit::{Admitted, Ask, admit};
use super::buffers::with_page;
use super::decline::Decline;
use super::dial::dial;
use super::relay::{Broken, Ending, Relay, RouterSide};
use super::{Shared, log};
use crate::actor_ref::TARGET_HEADER;
use crate::tls::ServerStream;

type Io = ServerStream<TcpStream>;

const HEAD_LIMIT: usize = 16 << 10;
const MAX_FIELDS: usize = 64;
const HEAD_TIME: Duration = Duration::from_secs(10);
/// For the last words to a router that may not be reading.
const GOODBYE_TIME: Duration = Duration::from_secs(2);
const OPENED: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

/// Serves one tunnel; the connection ends with it. A declined one ends too: what followed the head was meant for
/// the actor and must not be read as another request.
pub(super) async fn serve(mut io: Io, router: SocketAddr, shared: Arc<Shared>) {
    let drain = shared.drain.clone();
    let asked = tokio::select! {
        () = drain.draining() => return,
        asked = timeout(HEAD_TIME, read_head(&mut io, &shared)) => asked,
    };
    // Silence, or a broken connection: nobody to answer.
    let Ok(Ok(Asked { admitted, wants_body, early })) = asked else { return };
    let opened = match admitted {
        Err(decline) => Err(decline),
        Ok(Admitted { tunnel, port }) => {
            dial(&tunnel, port, shared.dial).await.map(|actor| Opened { actor, tunnel, port, early })
        }
    };
    match opened {
        Ok(opened) => carry(io, router, &shared, opened).await,
        Err(decline) => {
            shared.totals.declined(decline);
            log::declined(router, decline);
            // A router that does not take the answer in time is left to itself.
            let _untaken = timeout(GOODBYE_TIME, refuse(&mut io, decline, wants_body)).await;
        }
    }
}

struct Opened {
    actor: TcpStream,
    tunnel: Tunnel,
    port: u16,
    early: Bytes,
}

async fn carry(io: Io, router: SocketAddr, shared: &Shared, opened: Opened) {
    let Opened { actor, tunnel, port, early } = opened;
    shared.totals.opened();
    let record = log::opened(&tunnel, router, port);
    let side = Http1Side { io, early, out: Bytes::from_static(OPENED), flushed: false };
    let mut relay = Relay::new(side, actor, tunnel, shared.pool.clone());
    let ending = (&mut relay).await;
    let (side, tunnel) = relay.into_parts(ending);
    record.closed(&tunnel, ending);
    drop(tunnel);
    side.end(ending).await;
}

/// What a request's head came to.
struct Asked {
    admitted: Result<Admitted, Decline>,
    wants_body: bool,
    /// Bytes behind the head: the tunnel's first.
    early: Bytes,
}

impl Asked {
    fn declined(decline: Decline) -> Self {
        Self { admitted: Err(decline), wants_body: true, early: Bytes::new() }
    }
}

async fn read_head(io: &mut Io, shared: &Shared) -> io::Result<Asked> {
    let mut buffer = BytesMut::with_capacity(1024);
    loop {
        if io.read_buf(&mut buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((length, mut asked)) = parse(&buffer, shared) {
            buffer.advance(length);
            asked.early = buffer.freeze();
            return Ok(asked);
        }
        if buffer.len() > HEAD_LIMIT {
            return Ok(Asked::declined(Decline::HeadTooLarge));
        }
    }
}

/// `None` while the head is not complete.
fn parse(bytes: &[u8], shared: &Shared) -> Option<(usize, Asked)> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(length)) => {
            let is_target = |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(TARGET_HEADER);
            let ask = Ask {
                is_connect: request.method == Some("CONNECT"),
                targets: request.headers.iter().filter(is_target).map(|field| field.value),
                authority: request.path.unwrap_or_default().as_bytes(),
            };
            let wants_body = request.method != Some("HEAD");
            Some((length, Asked { admitted: admit(&shared.table, ask), wants_body, early: Bytes::new() }))
        }
        Err(httparse::Error::TooManyHeaders) => Some((bytes.len(), Asked::declined(Decline::HeadTooLarge))),
        Err(_malformed) => Some((bytes.len(), Asked::declined(Decline::BadRequest))),
    }
}

async fn refuse(io: &mut Io, decline: Decline, wants_body: bool) -> io::Result<()> {
    let response = decline.response();
    let mut text = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        text.extend_from_slice(name.as_ref());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"connection: close\r\n\r\n");
    if wants_body {
        text.extend_from_slice(decline.body().as_bytes());
    }
    io.write_all(&text).await?;
    io.shutdown().await?;
    drop_unread(io).await
}

/// Reads what the router still sends until it closes: closing over unread bytes would reset the connection and could
/// take the answer with it.
async fn drop_unread(io: &mut Io) -> io::Result<()> {
    let mut page = [0; 1024];
    while io.read(&mut page).await? > 0 {}
    Ok(())
}

struct Http1Side {
    io: Io,
    /// Bytes that came with the head.
    early: Bytes,
    /// Not written yet; at first the answer itself.
    out: Bytes,
    flushed: bool,
}

impl Http1Side {
    async fn end(mut self, ending: Ending) {
        match ending {
            // The actor's end is sent already; what is left is to wait for the router's.
            Ending::Finished | Ending::RouterReset => {}
            Ending::ActorDone | Ending::Rested => drop(timeout(GOODBYE_TIME, drop_unread(&mut self.io)).await),
            Ending::ActorReset | Ending::Cut => {
                // RST without close_notify, so that it cannot pass for the end of the bytes.
                let _dead_already = SockRef::from(self.io.get_ref().0).set_linger(Some(Duration::ZERO));
            }
        }
    }
}

impl RouterSide for Http1Side {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if !self.early.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.early))));
        }
        with_page(|page| {
            let mut buffer = ReadBuf::new(page);
            // An end without close_notify is an error here: the bytes may have been cut short.
            Poll::Ready(match ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer)) {
                Err(_) => Some(Err(Broken)),
                Ok(()) if buffer.filled().is_empty() => None,
                Ok(()) => Some(Ok(Bytes::copy_from_slice(buffer.filled()))),
            })
        })
    }

    fn release(&mut self, _taken: usize) {}

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.out)).map_err(|_| Broken)?;
            self.out.advance(written);
        }
        if !self.flushed {
            ready!(Pin::new(&mut self.io).poll_flush(cx)).map_err(|_| Broken)?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_room(&mut self, _cx: &mut Context<'_>, wanted: usize) -> Poll<Result<usize, Broken>> {
        Poll::Ready(Ok(wanted))
    }

    fn send(&mut self, bytes: Bytes) -> Result<(), Broken> {
        self.out = bytes;
        self.flushed = false;
        Ok(())
    }

    fn give_back(&mut self) {}

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        ready!(self.poll_flush(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx).map_err(|_| Broken)
    }

    /// A reset shows only by reading, and reading must wait for the actor: TCP's own window holds the router.
    fn poll_broken(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
