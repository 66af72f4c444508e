//! The tunnels that are open, by the name under which Envoy's listeners know them.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::egress::denial::Denial;
use crate::egress::origin::Origins;
use crate::egress::tunnel::Tunnel;
use crate::error::EngineError;
use crate::policy::Host;
use crate::tls::random;

/// A look-up serves a tunnel's requests for so long, as a connection that is kept would.
const FOUND_KEPT: Duration = Duration::from_secs(10);
/// Hosts that one tunnel remembers.
const FOUND: usize = 64;

/// One open tunnel.
pub(super) struct Open {
    pub(super) id: Arc<str>,
    pub(super) tunnel: Arc<Tunnel>,
    pub(super) since: Instant,
    /// Whether an actor has shown anything in it.
    shown: AtomicBool,
    found: Mutex<HashMap<Host, (Instant, SocketAddr)>>,
}

impl Open {
    pub(super) fn show(&self) {
        self.shown.store(true, Ordering::Release);
    }

    pub(super) fn has_shown(&self) -> bool {
        self.shown.load(Ordering::Acquire)
    }

    /// The address that the host's connections go to: checked, and none is looked up again by anybody else.
    pub(super) async fn address(&self, origins: &Origins, host: &Host) -> Result<SocketAddr, Denial> {
        let known = self.found.lock().get(host).copied();
        if let Some((at, address)) = known
            && at.elapsed() < FOUND_KEPT
        {
            return Ok(address);
        }
        let good = origins.checked(self.tunnel.target(host)).await?;
        let address = good.first().copied().ok_or(Denial::Address)?;
        let mut found = self.found.lock();
        if found.len() >= FOUND {
            found.clear();
        }
        found.insert(host.clone(), (Instant::now(), address));
        Ok(address)
    }
}

/// Every open tunnel of the process. Cheap to clone; clones share them.
#[derive(Clone)]
pub(super) struct Tunnels(Arc<Shared>);

struct Shared {
    /// No two processes have the same: a tunnel of an earlier one is unknown to a later one.
    process: String,
    next: AtomicU64,
    open: Mutex<HashMap<Arc<str>, Arc<Open>>>,
}

impl Tunnels {
    pub(super) fn new() -> Result<Self, EngineError> {
        let mut process = String::new();
        for byte in random::<16>().map_err(|error| EngineError::tls("names of tunnels", error))? {
            // Writing to a string cannot fail.
            let _written = write!(process, "{byte:02x}");
        }
        Ok(Self(Arc::new(Shared { process, next: AtomicU64::new(1), open: Mutex::default() })))
    }

    /// Until dropped.
    pub(super) fn open(&self, tunnel: Tunnel) -> Registered {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let id: Arc<str> = format!("{}-{number}", self.0.process).into();
        let open = Open {
            id: id.clone(),
            tunnel: Arc::new(tunnel),
            since: Instant::now(),
            shown: AtomicBool::default(),
            found: Mutex::default(),
        };
        let open = Arc::new(open);
        self.0.open.lock().insert(id, open.clone());
        Registered { tunnels: self.clone(), open }
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Open>> {
        self.0.open.lock().get(id).cloned()
    }

    pub(super) fn count(&self) -> usize {
        self.0.open.lock().len()
    }
}

/// A tunnel that is known under its name for as long as this lives.
pub(super) struct Registered {
    tunnels: Tunnels,
    pub(super) open: Arc<Open>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.tunnels.0.open.lock().remove(&self.open.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor_ref::ActorRef;

    fn tunnel() -> Tunnel {
        Tunnel::new(ActorRef::parse(b"a/b").unwrap(), "u".into(), "192.0.2.1:80".parse().unwrap())
    }

    #[test]
    fn a_tunnel_is_known_while_it_is_open() {
        let (here, elsewhere) = (Tunnels::new().unwrap(), Tunnels::new().unwrap());
        let (one, two) = (here.open(tunnel()), here.open(tunnel()));
        let id = one.open.id.clone();
        assert_ne!(id, two.open.id);
        assert!(here.get(&id).is_some() && here.count() == 2);
        assert!(elsewhere.get(&id).is_none());
        drop(one);
        assert!(here.get(&id).is_none() && here.count() == 1);
    }
}
