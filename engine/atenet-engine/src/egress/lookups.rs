//! Look-ups of names that are in the air, by actor: one that is never answered holds a thread of the system's
//! resolver, and those are all actors'.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use super::denial::Denial;
use super::names::Names;

/// Of one actor at once; an actor that reads a page of many hosts asks for about as many.
const LIMIT: usize = 32;

pub(super) struct Lookups {
    names: Arc<Names>,
    in_the_air: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// One look-up, until dropped.
struct InTheAir {
    all: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    uid: Arc<str>,
}

impl Drop for InTheAir {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.uid);
            }
        }
    }
}

impl Lookups {
    pub(super) fn new(names: Names) -> Self {
        Self { names: Arc::new(names), in_the_air: Arc::default() }
    }

    /// All addresses of the name, for this actor. A caller that stops waiting does not make room: the system's
    /// resolver cannot be told to stop.
    pub(super) async fn resolve(&self, uid: &Arc<str>, name: &str) -> Result<Vec<IpAddr>, Denial> {
        let place = self.place(uid).ok_or(Denial::TooManyLookups)?;
        let (names, asked) = (self.names.clone(), name.to_owned());
        let looked_up = tokio::spawn(async move {
            let found = names.resolve(&asked).await;
            drop(place);
            found
        });
        let found = looked_up.await.unwrap_or_else(|error| Err(error.to_string()));
        found.map_err(|error| {
            tracing::debug!(name, %error, "an origin's name does not resolve");
            Denial::Unresolved
        })
    }

    fn place(&self, uid: &Arc<str>) -> Option<InTheAir> {
        let mut all = self.in_the_air.lock();
        let count = all.entry(uid.clone()).or_default();
        if *count >= LIMIT {
            return None;
        }
        *count += 1;
        Some(InTheAir { all: self.in_the_air.clone(), uid: uid.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::UdpSocket;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn names_that_are_never_answered_hold_up_their_own_actor_alone() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let lookups = Arc::new(Lookups::new(Names::new(&[server.local_addr().unwrap()]).unwrap()));
        let (busy, other): (Arc<str>, Arc<str>) = ("busy".into(), "other".into());
        let ask = |uid: &Arc<str>, n: usize| {
            let (lookups, uid) = (lookups.clone(), uid.clone());
            async move { lookups.resolve(&uid, &format!("h{n}.example")).await }
        };
        for n in 0..LIMIT {
            // Whoever gives up waiting frees no place.
            assert!(timeout(Duration::from_millis(1), ask(&busy, n)).await.is_err(), "{n}");
        }
        assert_eq!(ask(&busy, LIMIT).await, Err(Denial::TooManyLookups));
        assert!(timeout(Duration::from_millis(1), ask(&other, 0)).await.is_err());
        // The server's silence is an answer in the end, and makes room.
        let room = async {
            while lookups.in_the_air.lock().contains_key("busy") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(60), room).await.unwrap();
        assert!(timeout(Duration::from_millis(1), ask(&busy, 0)).await.is_err());
    }
}
