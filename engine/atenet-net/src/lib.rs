//! Sockets in another network namespace, and what the kernel tells of a redirected one and of this
//! machine's addresses.
//!
//! A socket belongs for life to the namespace that its thread was in when it was made, so entering a namespace is
//! only needed for the moment of `socket(2)`. One helper thread does that: it enters, makes the socket and leaves.
//! No other thread of the process ever changes its namespace.
//!
//! nix wraps `setns(2)` safely, so even here nothing is unsafe.

mod addresses;
mod helper;
mod options;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use socket2::{Domain, Socket, Type};

pub use addresses::interface_addresses;
pub use options::{grow_receive_buffer, original_destination};

/// An open network namespace. The descriptor pins the namespace: the path may be removed, or reused for another
/// namespace, and this value still means the one that was opened. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NetNs(Arc<File>);

impl NetNs {
    /// Opens the namespace at a path such as `/run/netns/NAME` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// When the path cannot be opened, is no network namespace, or may not be entered.
    pub fn open(path: &Path) -> io::Result<Self> {
        let netns = Self(Arc::new(File::open(path)?));
        // Anything opens; only entering tells whether it is a namespace of the right kind.
        netns.tcp_socket(Domain::IPV4)?;
        Ok(netns)
    }

    /// A non-blocking, close-on-exec TCP socket made inside the namespace. Blocks for some microseconds; not for
    /// asynchronous code.
    ///
    /// # Errors
    /// When the namespace cannot be entered or the socket cannot be made.
    pub fn tcp_socket(&self, domain: Domain) -> io::Result<OwnedFd> {
        self.socket(domain, Type::STREAM)
    }

    /// As [`Self::tcp_socket`], for asynchronous code.
    ///
    /// # Errors
    /// The same.
    pub async fn tcp_socket_async(&self, domain: Domain) -> io::Result<OwnedFd> {
        helper::run(self.job(domain, Type::STREAM)).await.unwrap_or_else(|_| Err(helper::ended()))
    }

    /// As [`Self::tcp_socket`], for datagrams.
    ///
    /// # Errors
    /// The same.
    pub fn udp_socket(&self, domain: Domain) -> io::Result<OwnedFd> {
        self.socket(domain, Type::DGRAM)
    }

    fn socket(&self, domain: Domain, kind: Type) -> io::Result<OwnedFd> {
        helper::run(self.job(domain, kind)).blocking_recv().unwrap_or_else(|_| Err(helper::ended()))
    }

    fn job(&self, domain: Domain, kind: Type) -> helper::Job {
        helper::Job { netns: self.0.clone(), domain, kind }
    }
}

/// The socket as `tokio` and `std` want it.
fn new_socket(domain: Domain, kind: Type) -> io::Result<OwnedFd> {
    Socket::new(domain, kind.nonblocking().cloexec(), None).map(OwnedFd::from)
}

#[cfg(test)]
mod tests;
