//! The addresses of this machine.

use std::io;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

/// Those of the calling thread's namespace, all interfaces, as they are now.
///
/// # Errors
/// When the kernel does not tell.
pub fn interface_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(getifaddrs()?.filter_map(|interface| interface.address.as_ref().and_then(ip)).collect())
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        let own = interface_addresses().unwrap();
        assert!(own.contains(&IpAddr::from([127, 0, 0, 1])), "{own:?}");
    }
}
