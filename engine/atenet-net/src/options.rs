//! What only the kernel knows or grants.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

/// Where a redirected connection was meant to go. A connection that was not redirected gives the address that it
/// reached, or an error.
///
/// # Errors
/// When the kernel does not know.
pub fn original_destination(socket: &impl AsFd) -> io::Result<SocketAddrV4> {
    let found = getsockopt(socket, sockopt::OriginalDst)?;
    let address = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
    Ok(SocketAddrV4::new(address, u16::from_be(found.sin_port)))
}

/// Gives the socket so many bytes of receive buffer, beyond the system's limit where this process may.
///
/// # Errors
/// When the kernel grants neither.
pub fn grow_receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let forced = setsockopt(socket, sockopt::RcvBufForce, &bytes);
    Ok(forced.or_else(|_| setsockopt(socket, sockopt::RcvBuf, &bytes))?)
}
