//! The bytes of one tunnel, both ways, in one task.
//!
//! Memory is bounded by flow control alone: bytes from the router are acknowledged only once the actor's socket took
//! them, and the actor's socket is read only into room that the router has granted. Each direction ends on its own;
//! a reset on one side becomes a reset on the other, never a clean end.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use socket2::SockRef;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::activation::{Phase, Tunnel};
use super::buffers::{BULK, PAGE, Pool, with_page};

/// The router's side was reset, or its connection is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// The router's side of one tunnel.
pub(super) trait RouterSide: Unpin {
    /// Bytes for the actor; `None` is the router's clean end.
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>>;
    /// The actor took this many bytes: the router may send as many again.
    fn release(&mut self, taken: usize);
    /// Ready when what [`Self::send`] took has been handed on far enough that the caller may wait for the actor.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;
    /// How many bytes, at most `wanted`, may be sent now.
    fn poll_room(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<Result<usize, Broken>>;
    /// Sends bytes for which there was room, and gives back the rest of the room.
    fn send(&mut self, bytes: Bytes) -> Result<(), Broken>;
    /// Gives back all room.
    fn give_back(&mut self);
    /// Sends the actor's clean end.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;
    /// Notices a reset while [`Self::poll_recv`] is not being asked.
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// How a tunnel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Both directions ended by themselves.
    Finished,
    /// The actor ended its direction and closed; what the router still sends has no reader.
    ActorDone,
    ActorReset,
    RouterReset,
    /// The activation is ending, and nothing was under way.
    Rested,
    /// The activation ended.
    Cut,
}

impl Ending {
    /// The name in logs.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::ActorDone => "actor_done",
            Self::ActorReset => "actor_reset",
            Self::RouterReset => "router_reset",
            Self::Rested => "rested",
            Self::Cut => "deactivated",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Download {
    Open,
    /// The actor ended; its end is on the way to the router.
    Finishing,
    Done,
}

/// Resolves when the tunnel has ended; then [`Relay::into_parts`] gives the router's side back for the last word.
pub(super) struct Relay<S> {
    router: S,
    actor: TcpStream,
    tunnel: Tunnel,
    pool: Pool,
    /// Nothing is carried any more; the end is on its way to the router.
    resting: bool,
    /// Taken from the router, not yet by the actor.
    chunk: Bytes,
    upload_done: bool,
    download: Download,
    /// The last read filled its buffer: more is coming.
    bulk: bool,
    to_actor: u64,
    from_actor: u64,
}

impl<S: RouterSide> Relay<S> {
    pub(super) fn new(router: S, actor: TcpStream, tunnel: Tunnel, pool: Pool) -> Self {
        Self {
            router,
            actor,
            tunnel,
            pool,
            resting: false,
            chunk: Bytes::new(),
            upload_done: false,
            download: Download::Open,
            bulk: false,
            to_actor: 0,
            from_actor: 0,
        }
    }

    /// After the end: resets the actor's socket if the end was not its own, and returns what the caller must end.
    pub(super) fn into_parts(self, ending: Ending) -> (S, Tunnel) {
        if matches!(ending, Ending::RouterReset | Ending::Cut) {
            // With lingering off, closing sends RST instead of FIN. It fails only on a socket that is already dead.
            let _dead_already = SockRef::from(&self.actor).set_linger(Some(Duration::ZERO));
        }
        (self.router, self.tunnel)
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        let phase = self.tunnel.poll_phase(cx);
        if phase == Phase::Cut {
            return Poll::Ready(Ending::Cut);
        }
        if self.resting {
            return self.poll_rest(cx);
        }
        if let Poll::Ready(Err(ending)) = self.poll_upload(cx) {
            return Poll::Ready(ending);
        }
        if let Poll::Ready(Err(ending)) = self.poll_download(cx) {
            return Poll::Ready(ending);
        }
        if self.upload_done && self.download == Download::Done {
            return Poll::Ready(Ending::Finished);
        }
        if phase == Phase::Ending && self.chunk.is_empty() && self.tunnel.is_at_rest() {
            // Behind the last byte of the last answer. The actor's socket is closed with the relay.
            self.resting = true;
            return self.poll_rest(cx);
        }
        // While bytes wait for the actor, or after the router's end, nobody else asks.
        if (self.upload_done || !self.chunk.is_empty()) && self.router.poll_broken(cx).is_ready() {
            return Poll::Ready(Ending::RouterReset);
        }
        Poll::Pending
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        self.router.poll_finish(cx).map(|sent| if sent.is_ok() { Ending::Rested } else { Ending::RouterReset })
    }

    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        while !self.upload_done {
            if self.chunk.is_empty() {
                match ready!(self.router.poll_recv(cx)) {
                    Some(Ok(bytes)) => {
                        self.tunnel.asked(&bytes);
                        self.chunk = bytes;
                    }
                    Some(Err(Broken)) => return Poll::Ready(Err(Ending::RouterReset)),
                    None => {
                        ready!(Pin::new(&mut self.actor).poll_shutdown(cx)).map_err(|_| self.actor_gone())?;
                        self.upload_done = true;
                    }
                }
                continue;
            }
            let taken = ready!(Pin::new(&mut self.actor).poll_write(cx, &self.chunk)).map_err(|_| self.actor_gone())?;
            self.chunk.advance(taken);
            self.router.release(taken);
            self.to_actor += taken as u64;
        }
        Poll::Ready(Ok(()))
    }

    /// Writing failed. After the actor's own end that is only its closing; before, it is a reset.
    fn actor_gone(&self) -> Ending {
        if self.download == Download::Done { Ending::ActorDone } else { Ending::ActorReset }
    }

    fn poll_download(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        let broken = |Broken| Ending::RouterReset;
        loop {
            match self.download {
                Download::Done => return Poll::Ready(Ok(())),
                Download::Finishing => {
                    ready!(self.router.poll_finish(cx)).map_err(broken)?;
                    self.download = Download::Done;
                }
                Download::Open => {
                    ready!(self.router.poll_flush(cx)).map_err(broken)?;
                    // Room is asked for only once there is something to send: idle tunnels must not hoard the
                    // connection's window.
                    ready!(self.actor.poll_read_ready(cx)).map_err(|_| Ending::ActorReset)?;
                    let wanted = if self.bulk { BULK } else { PAGE };
                    let room = ready!(self.router.poll_room(cx, wanted)).map_err(broken)?;
                    match self.poll_read(cx, room.min(wanted)) {
                        Poll::Pending => {
                            self.router.give_back();
                            return Poll::Pending;
                        }
                        Poll::Ready(Err(_)) => return Poll::Ready(Err(Ending::ActorReset)),
                        Poll::Ready(Ok(None)) => self.download = Download::Finishing,
                        Poll::Ready(Ok(Some(bytes))) => {
                            self.from_actor += bytes.len() as u64;
                            self.bulk = bytes.len() >= PAGE;
                            self.tunnel.answered(&bytes);
                            self.router.send(bytes).map_err(broken)?;
                        }
                    }
                }
            }
        }
    }

    /// One read of at most `limit` bytes; `None` is the actor's end.
    fn poll_read(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<io::Result<Option<Bytes>>> {
        let actor = Pin::new(&mut self.actor);
        if !self.bulk {
            return with_page(|page| {
                let mut buffer = ReadBuf::new(&mut page[..limit]);
                ready!(actor.poll_read(cx, &mut buffer))?;
                let filled = buffer.filled();
                Poll::Ready(Ok((!filled.is_empty()).then(|| Bytes::copy_from_slice(filled))))
            });
        }
        let mut space = self.pool.take();
        let mut buffer = ReadBuf::new(&mut space.space()[..limit]);
        ready!(actor.poll_read(cx, &mut buffer))?;
        let filled = buffer.filled().len();
        Poll::Ready(Ok((filled > 0).then(|| space.into_chunk(filled))))
    }
}

impl<S: RouterSide> Future for Relay<S> {
    type Output = Ending;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ending> {
        let polled = self.step(cx);
        let (to_actor, from_actor) = (std::mem::take(&mut self.to_actor), std::mem::take(&mut self.from_actor));
        if to_actor + from_actor > 0 {
            self.tunnel.carried(to_actor, from_actor);
        }
        polled
    }
}
