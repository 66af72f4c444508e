//! Policies that decide for a while after they were read (row E-18): beside Envoy, as its operator chooses.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::OnceCell;

use super::denial::Denial;
use super::tunnel::Tunnel;
use crate::actor_ref::ActorRef;
use crate::policy::Matcher;

/// Actors whose policy is kept.
const ENTRIES: u64 = 100_000;

/// The uid, not the name alone: an actor made again under the same name does not inherit.
type Key = (ActorRef, Arc<str>);
/// Filled by the first who asks; the others wait for it.
type Asked = Arc<OnceCell<Arc<Matcher>>>;

/// That an actor has no policy is kept as well; that it could not be read is not.
pub(super) struct Kept(Cache<Key, Asked>);

impl Kept {
    pub(super) fn new(time: Duration) -> Self {
        Self(Cache::builder().max_capacity(ENTRIES).time_to_live(time).build())
    }

    /// The policy of the tunnel's actor; `read` is called for one of those who ask at a time.
    pub(super) async fn of<F>(&self, tunnel: &Tunnel, read: impl FnOnce() -> F) -> Result<Arc<Matcher>, Denial>
    where
        F: Future<Output = Result<Arc<Matcher>, Denial>>,
    {
        let key = (tunnel.actor.clone(), tunnel.uid.clone());
        let asked = self.0.get_with_by_ref(&key, Arc::default);
        let found = asked.get_or_try_init(read).await.cloned();
        if found.is_err() {
            self.0.invalidate(&key);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn tunnel(uid: &str) -> Tunnel {
        Tunnel::new(ActorRef::parse(b"a/b").unwrap(), uid.into(), "192.0.2.1:80".parse().unwrap())
    }

    #[tokio::test]
    async fn a_policy_is_read_once_for_an_incarnation_and_a_failure_never_kept() {
        let (kept, reads) = (Kept::new(Duration::from_secs(60)), AtomicUsize::new(0));
        let read = |found: Result<(), Denial>| {
            reads.fetch_add(1, Ordering::Relaxed);
            async move { found.map(|()| Arc::default()) }
        };
        let (one, two) = (tunnel("1"), tunnel("2"));
        let failed = Err(Denial::PolicyUnavailable);
        assert!(kept.of(&one, || read(failed)).await.is_err());
        for _ in 0..3 {
            assert!(kept.of(&one, || read(Ok(()))).await.is_ok());
        }
        assert_eq!(reads.load(Ordering::Relaxed), 2);
        assert!(kept.of(&two, || read(Ok(()))).await.is_ok());
        assert_eq!(reads.load(Ordering::Relaxed), 3);
    }
}
