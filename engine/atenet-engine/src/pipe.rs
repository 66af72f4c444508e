//! Byte streams between a client, a tunnel and an actor: chunks in, buffers out, truthful ends.

mod corked;
mod driven;
mod duplex;
mod h2;
mod idle;
mod io;
mod outbox;
mod relay;
mod served;
mod split;

use std::io::Result;
use std::task::{Context, Poll};

use bytes::Bytes;

pub(crate) use self::corked::{Corked, Flusher, Heard};
pub(crate) use self::driven::{driven, last_words};
pub use self::duplex::{Duplex, H2Duplex};
pub use self::h2::{H2Sink, H2Source, reset_code, reset_error};
pub(crate) use self::served::{accepted, shaken};
pub use idle::Idle;
pub(crate) use io::READ_MAX;
pub use io::{IoSink, IoSource, Prefixed, Reset};
pub use outbox::Outbox;
pub use relay::{Ending, Relayed, relay};
pub use split::{Handle, ReadHalf, Socket, WriteHalf, reunite, split};

/// The receiving half of a stream. An empty chunk is its clean end; a reset is an error.
pub trait Source: Send {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes>>;
}

/// The sending half of a stream.
pub trait Sink: Send {
    /// Sends all of `out`; what could not be taken yet stays in it.
    fn poll_send(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> Poll<Result<()>>;

    /// Ends this direction cleanly; the other one goes on.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>>;

    /// Breaks the stream so that the peer sees no clean end, once both halves are dropped.
    fn reset(&mut self);

    /// Ready when the peer has broken the stream; streams that learn of it by reading stay pending.
    fn poll_broken(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
