//! The port that a CONNECT names. The host half says nothing here.

/// The port of `host:port`, `[v6]:port` or `:port`; `None` when there is none from 1 to 65535 in plain digits.
pub(crate) fn connect_port(authority: &[u8]) -> Option<u16> {
    let colon = authority.iter().rposition(|b| *b == b':')?;
    let (host, port) = (&authority[..colon], &authority[colon + 1..]);
    // Without brackets the last colon of a bare IPv6 address would pass for the port's.
    if host.contains(&b':') && !(host.starts_with(b"[") && host.ends_with(b"]")) {
        return None;
    }
    if port.is_empty() || port.len() > 5 {
        return None;
    }
    let mut number = 0u32;
    for digit in port {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u32::from(digit - b'0');
    }
    u16::try_from(number).ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_behind_any_host() {
        for (authority, port) in
            [("10.0.0.1:80", 80), ("host:1", 1), ("[::1]:8080", 8080), (":443", 443), ("a.b-c:65535", 65535)]
        {
            assert_eq!(connect_port(authority.as_bytes()), Some(port), "{authority}");
        }
    }

    #[test]
    fn everything_else_is_no_port() {
        let cases = [
            "",
            "host",
            "host:",
            "host:0",
            "host:65536",
            "host:99999",
            "host:100000",
            "host:+80",
            "host:-1",
            "host: 80",
            "host:80 ",
            "host:8o",
            "host:80@other",
            "::1",
            "::1:80",
            "[::1]",
            "[::1:80",
            "host:80:",
            "host:0x50",
            "host:\u{ff18}0",
        ];
        for case in cases {
            assert_eq!(connect_port(case.as_bytes()), None, "{case:?}");
        }
    }

    #[test]
    fn no_bytes_at_all_can_upset_it() {
        // Every string of up to four bytes over the alphabet that matters, against the definition.
        let alphabet = b":[]0168a";
        let mut all: Vec<Vec<u8>> = vec![vec![]];
        for _ in 0..4 {
            let longer: Vec<Vec<u8>> =
                all.iter().flat_map(|s| alphabet.iter().map(move |b| [s.as_slice(), &[*b]].concat())).collect();
            all.extend(longer);
        }
        for case in all {
            let text = std::str::from_utf8(&case).unwrap();
            let digits = |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit());
            let expected = text.rsplit_once(':').and_then(|(host, port)| {
                let bracketed = host.starts_with('[') && host.ends_with(']');
                let plain = !host.contains(':') || bracketed;
                if plain && digits(port) { port.parse::<u16>().ok().filter(|p| *p > 0) } else { None }
            });
            assert_eq!(connect_port(&case), expected, "{text:?}");
        }
    }
}
