//! Addresses of the relay's own: a name keeps its address for as long as it is among the last so many names.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::config::Range;

/// Nobody else knows these addresses, and the gateway dials by name: one that is given away again leads nowhere it
/// should not.
#[derive(Debug)]
pub(super) struct Names {
    range: Range,
    most: usize,
    addresses: HashMap<Arc<str>, Ipv4Addr>,
    /// In the order of their coming; the oldest makes room.
    order: Vec<Arc<str>>,
    next: usize,
}

impl Names {
    /// At most `most` names, and no more than the range has addresses.
    pub(super) fn new(range: Range, most: u32) -> Self {
        // The block's own first and last address stay out.
        let most = most.min(range.size() - 2) as usize;
        Self { range, most, addresses: HashMap::new(), order: Vec::new(), next: 0 }
    }

    /// The address of a name in its one spelling.
    pub(super) fn address(&mut self, name: &str) -> Ipv4Addr {
        if let Some(known) = self.addresses.get(name) {
            return *known;
        }
        let name: Arc<str> = name.into();
        let place = self.next;
        self.next = (place + 1) % self.most;
        if let Some(oldest) = self.order.get_mut(place) {
            self.addresses.remove(oldest);
            *oldest = name.clone();
        } else {
            self.order.push(name.clone());
        }
        let offset = u32::try_from(place + 1).unwrap_or(1);
        let address = Ipv4Addr::from_bits(self.range.first.to_bits() | offset);
        self.addresses.insert(name, address);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(most: u32) -> Names {
        Names::new("198.18.0.0/15".parse().unwrap(), most)
    }

    #[test]
    fn a_name_keeps_its_address_and_shares_it_with_nobody() {
        let mut names = names(1000);
        let first: Vec<_> = (0..1000).map(|n| names.address(&format!("{n}.example"))).collect();
        let again: Vec<_> = (0..1000).map(|n| names.address(&format!("{n}.example"))).collect();
        assert_eq!(first, again);
        let different: std::collections::HashSet<_> = first.iter().collect();
        assert_eq!(different.len(), 1000);
        assert_eq!(first.first(), Some(&Ipv4Addr::new(198, 18, 0, 1)));
    }

    #[test]
    fn what_a_name_costs_is_bounded() {
        let mut names = names(3);
        let first = names.address("a.example");
        for n in 0..100 {
            names.address(&format!("{n}.example"));
        }
        assert_eq!((names.addresses.len(), names.order.len()), (3, 3));
        assert!(names.addresses.values().any(|address| *address == first));
    }

    #[test]
    fn a_range_is_never_left() {
        let mut names = Names::new("10.1.2.0/24".parse().unwrap(), u32::MAX);
        for n in 0..600 {
            let address = names.address(&format!("{n}.example"));
            assert_eq!(address.octets()[..3], [10, 1, 2]);
            assert!((1..=254).contains(&address.octets()[3]));
        }
    }
}
