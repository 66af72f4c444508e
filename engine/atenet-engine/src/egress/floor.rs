//! Addresses that no rule opens, whatever name leads there (row E-12). Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::Cidr;

/// Public by its number, and yet what Azure's machines ask for their own secrets.
const AZURE_PLATFORM: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// What the operator opened in spite of the floor, and this machine's own addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct Floor {
    allowed: Vec<Cidr>,
    own: Vec<IpAddr>,
}

impl Floor {
    pub(super) fn new(allowed: Vec<Cidr>, own: &[IpAddr]) -> Self {
        Self { allowed, own: own.iter().map(|address| reached(address.to_canonical())).collect() }
    }

    pub(super) fn lets(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let reached = reached(address);
        self.allowed.iter().any(|cidr| cidr.contains(address)) || (is_public(reached) && !self.own.contains(&reached))
    }
}

/// Translated (RFC 6052) and 6to4 addresses end up at the IPv4 address inside.
fn reached(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)).into()
        }
        _ => address,
    }
}

/// Not loopback, link-local (metadata services live there), private, shared, reserved, multicast or a platform's own.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
            | (224..=255, ..)
    ) && address != AZURE_PLATFORM
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Teredo, benchmarking, documentation and other special ones of 2001::/23; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000, // global unicast
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lets(floor: &Floor, text: &str) -> bool {
        floor.lets(text.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_pass_by_themselves() {
        let floor = Floor::default();
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "168.63.129.17",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(lets(&floor, public), "{public}");
        }
        for not in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:168.63.129.16",
            "64:ff9b::a83f:8110",
            "::127.0.0.1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
        ] {
            assert!(!lets(&floor, not), "{not}");
        }
    }

    // B093
    #[test]
    fn an_operator_opens_what_is_meant() {
        let floor = Floor::new(vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()], &[]);
        assert!(lets(&floor, "10.1.2.3") && lets(&floor, "::ffff:10.1.2.3") && lets(&floor, "fd12::1"));
        assert!(!lets(&floor, "10.2.0.1") && !lets(&floor, "127.0.0.1"));
        assert!(lets(&Floor::new(vec!["168.63.129.16".parse().unwrap()], &[]), "168.63.129.16"));
    }

    #[test]
    fn the_machines_own_addresses_are_opened_by_the_operator_alone() {
        let own = ["8.8.4.4", "2606:4700::7", "::ffff:9.9.9.9"].map(|text| text.parse().unwrap());
        let floor = Floor::new(Vec::new(), &own);
        for not in ["8.8.4.4", "::ffff:8.8.4.4", "64:ff9b::808:404", "2002:808:404::1", "2606:4700::7", "9.9.9.9"] {
            assert!(!lets(&floor, not), "{not}");
        }
        assert!(lets(&floor, "8.8.8.8") && lets(&floor, "2606:4700::8"));
        let opened = Floor::new(vec!["8.8.4.4".parse().unwrap()], &own);
        assert!(lets(&opened, "8.8.4.4") && !lets(&opened, "2606:4700::7"));
    }
}
