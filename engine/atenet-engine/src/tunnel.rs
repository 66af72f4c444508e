//! The mTLS HTTP/2 CONNECT tunnel between router and worker.

pub mod client;
pub mod server;

/// Tunnels that a worker takes on one connection; past it a router opens another one.
pub const MAX_STREAMS: u32 = 256;

/// What either side may send on one tunnel before the other one's peer took it.
const STREAM_WINDOW: u32 = 512 << 10;
/// And on all of a connection: every stream's whole window, so that however many readers stop, none of the other
/// streams is held up.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;
