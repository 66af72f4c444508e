//! Addresses that no rule opens, whatever name leads there (row E-12). Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::Cidr;

/// What the operator opened in spite of the floor.
#[derive(Debug, Clone, Default)]
pub(super) struct Floor {
    allowed: Vec<Cidr>,
}

impl Floor {
    pub(super) fn new(allowed: Vec<Cidr>) -> Self {
        Self { allowed }
    }

    pub(super) fn lets(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allowed.iter().any(|cidr| cidr.contains(address)) || is_public(address)
    }
}

/// Not loopback, link-local (metadata services live there), private, shared, reserved or multicast; of addresses that
/// carry an IPv4 address, that one counts.
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
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let s = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        // Translated (RFC 6052) and 6to4 addresses end up at the IPv4 address inside.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
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
        for public in
            ["1.1.1.1", "8.8.8.8", "100.128.0.1", "172.32.0.1", "2606:4700::1", "64:ff9b::808:808", "2002:808:808::1"]
        {
            assert!(lets(&floor, public), "{public}");
        }
        for not in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
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
        let floor = Floor::new(vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        assert!(lets(&floor, "10.1.2.3") && lets(&floor, "::ffff:10.1.2.3") && lets(&floor, "fd12::1"));
        assert!(!lets(&floor, "10.2.0.1") && !lets(&floor, "127.0.0.1"));
    }
}
