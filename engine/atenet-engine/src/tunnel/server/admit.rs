//! Whether a request opens a tunnel: the method, then the actor, then the port.

use super::activation::Tunnel;
use super::decline::Decline;
use super::table::Table;
use crate::actor_ref::ActorRef;
use crate::authority::connect_port;

/// What of a request decides; the same for both HTTP versions.
pub(super) struct Ask<'a, T> {
    pub(super) is_connect: bool,
    /// Every value of `ate-target-actor`.
    pub(super) targets: T,
    pub(super) authority: &'a [u8],
}

/// An admitted tunnel and the actor's port it is meant for.
pub(super) struct Admitted {
    pub(super) tunnel: Tunnel,
    pub(super) port: u16,
}

/// The check of the actor comes before that of the port: a router with an old assignment must learn that first.
pub(super) fn admit<'a>(table: &Table, ask: Ask<'a, impl Iterator<Item = &'a [u8]>>) -> Result<Admitted, Decline> {
    if !ask.is_connect {
        return Err(Decline::NotConnect);
    }
    let actor = sole_actor(ask.targets).ok_or(Decline::Stale)?;
    let tunnel = table.admit(&actor).ok_or(Decline::Stale)?;
    let port = connect_port(ask.authority).ok_or(Decline::BadPort)?;
    Ok(Admitted { tunnel, port })
}

/// The one actor that is named. A repeated header names none, whatever its values.
fn sole_actor<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<ActorRef> {
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    ActorRef::parse(value).ok()
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::path::Path;

    use atenet_net::NetNs;

    use super::super::activation::Target;
    use super::*;

    fn table() -> Table {
        let table = Table::default();
        table.activate(Target {
            actor: ActorRef::new("team", "agent").unwrap(),
            uid: "1".into(),
            netns: NetNs::open(Path::new("/proc/self/ns/net")).unwrap(),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        });
        table
    }

    fn outcome(is_connect: bool, targets: &[&str], authority: &str) -> Result<u16, Decline> {
        let targets = targets.iter().map(|value| value.as_bytes());
        admit(&table(), Ask { is_connect, targets, authority: authority.as_bytes() }).map(|admitted| admitted.port)
    }

    #[test]
    fn the_named_actors_port_is_admitted() {
        assert_eq!(outcome(true, &["team/agent"], "ignored:8080"), Ok(8080));
    }

    #[test]
    fn the_checks_come_in_order() {
        assert_eq!(outcome(false, &[], ""), Err(Decline::NotConnect));
        assert_eq!(outcome(true, &[], ""), Err(Decline::Stale));
        assert_eq!(outcome(true, &["team/other"], "host:0"), Err(Decline::Stale));
        assert_eq!(outcome(true, &["team/agent"], "host:0"), Err(Decline::BadPort));
    }

    #[test]
    fn a_header_that_is_not_exactly_one_reference_names_nobody() {
        for targets in [&["team/agent", "team/agent"][..], &["team/agent", "x/y"], &["team"], &["team/agent "], &[""]] {
            assert_eq!(outcome(true, targets, "host:80"), Err(Decline::Stale), "{targets:?}");
        }
    }
}
