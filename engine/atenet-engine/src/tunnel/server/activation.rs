//! One incarnation of an actor on this worker, and the tunnels that run to it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use atenet_net::NetNs;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::usage::Usage;
use crate::actor_ref::ActorRef;

/// How far the end of an activation has come; it only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Phase {
    Open,
    /// Nothing new; what is open goes on, kept connections included: a request may be on its way on one.
    Closing,
    /// What is only kept ends now, and what runs may end by itself.
    Ending,
    /// What is left is reset.
    Cut,
}

/// Where and as what the actor is reached.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) actor: ActorRef,
    pub(super) uid: Arc<str>,
    /// Held open from activation on, so that a namespace path used again cannot misdirect a dial.
    pub(super) netns: NetNs,
    pub(super) address: IpAddr,
}

pub(super) struct Activation {
    pub(super) target: Target,
    opened: Instant,
    phase: AtomicU8,
    tunnels: Mutex<Running>,
    emptied: Notify,
    traffic: Traffic,
}

struct Running {
    next_id: u64,
    tunnels: HashMap<u64, Arc<AtomicWaker>>,
    /// Those with a request in flight.
    in_flight: usize,
    /// When the last request ended or the last tunnel came in.
    quiet_since: Instant,
}

impl Running {
    /// One more request is in flight, or one less.
    fn count(&mut self, more: bool) {
        if more {
            self.in_flight += 1;
        } else {
            self.in_flight -= 1;
            self.quiet_since = Instant::now();
        }
    }
}

/// What an activation has carried.
#[derive(Default)]
struct Traffic {
    opened: AtomicU64,
    to_actor: AtomicU64,
    from_actor: AtomicU64,
}

/// A copy of the numbers, for people.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot {
    pub(super) tunnels: usize,
    pub(super) in_flight: usize,
    pub(super) opened: u64,
    pub(super) to_actor: u64,
    pub(super) from_actor: u64,
    pub(super) idle: Duration,
}

impl Activation {
    pub(super) fn new(target: Target) -> Self {
        let now = Instant::now();
        let running = Running { next_id: 0, tunnels: HashMap::new(), in_flight: 0, quiet_since: now };
        Self {
            target,
            opened: now,
            phase: AtomicU8::new(Phase::Open as u8),
            tunnels: Mutex::new(running),
            emptied: Notify::new(),
            traffic: Traffic::default(),
        }
    }

    /// How long the actor has been reachable.
    pub(super) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Open,
            1 => Phase::Closing,
            2 => Phase::Ending,
            _ => Phase::Cut,
        }
    }

    /// Moves on and wakes every tunnel to notice it.
    pub(super) fn advance(&self, to: Phase) {
        self.phase.fetch_max(to as u8, Ordering::AcqRel);
        for waker in self.tunnels.lock().tunnels.values() {
            waker.wake();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tunnels.lock().tunnels.is_empty()
    }

    /// Resolves when no tunnel is left, dialling ones included.
    pub(super) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    /// Registers a tunnel. To be called under the table's lock, so that none can slip in behind a deactivation.
    pub(super) fn enter(self: &Arc<Self>) -> Tunnel {
        let waker = Arc::new(AtomicWaker::new());
        let mut running = self.tunnels.lock();
        let id = running.next_id;
        running.next_id += 1;
        running.tunnels.insert(id, waker.clone());
        running.quiet_since = Instant::now();
        drop(running);
        let usage = Usage::new();
        Tunnel { activation: self.clone(), id, waker, usage, in_flight: false, to_actor: 0, from_actor: 0 }
    }

    /// Whether no request is in flight and none was for so long. To be called under the table's lock, so that no tunnel
    /// comes in meanwhile.
    pub(super) fn is_quiet_for(&self, idle: Duration) -> bool {
        let running = self.tunnels.lock();
        running.in_flight == 0 && running.quiet_since.elapsed() >= idle
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let running = self.tunnels.lock();
        let idle = if running.in_flight == 0 { running.quiet_since.elapsed() } else { Duration::ZERO };
        Snapshot {
            tunnels: running.tunnels.len(),
            in_flight: running.in_flight,
            opened: self.traffic.opened.load(Ordering::Relaxed),
            to_actor: self.traffic.to_actor.load(Ordering::Relaxed),
            from_actor: self.traffic.from_actor.load(Ordering::Relaxed),
            idle,
        }
    }
}

/// One tunnel's place in its activation, from admission to the last byte. Dropping it leaves.
pub(super) struct Tunnel {
    activation: Arc<Activation>,
    id: u64,
    waker: Arc<AtomicWaker>,
    usage: Usage,
    in_flight: bool,
    pub(super) to_actor: u64,
    pub(super) from_actor: u64,
}

impl Tunnel {
    pub(super) fn activation(&self) -> &Activation {
        &self.activation
    }

    /// The phase now; the task is woken when it grows.
    pub(super) fn poll_phase(&self, cx: &Context<'_>) -> Phase {
        self.waker.register(cx.waker());
        self.activation.phase()
    }

    /// Resolves once the activation is ending.
    pub(super) async fn closing(&self) {
        poll_fn(|cx| if self.poll_phase(cx) >= Phase::Closing { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Counts the tunnel as opened.
    pub(super) fn opened(&self) {
        self.activation.traffic.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes what the router sent, before the actor has it.
    pub(super) fn asked(&mut self, bytes: &[u8]) {
        self.usage.asked(bytes);
        self.settle();
    }

    /// Notes what the actor sent.
    pub(super) fn answered(&mut self, bytes: &Bytes) {
        self.usage.answered(bytes);
        self.settle();
    }

    /// Whether it is kept for a next request: one was answered, and none is in flight.
    pub(super) fn is_at_rest(&self) -> bool {
        self.usage.rests()
    }

    fn settle(&mut self) {
        let now = self.usage.in_flight();
        if now != self.in_flight {
            self.in_flight = now;
            self.activation.tunnels.lock().count(now);
        }
    }

    /// Adds what was carried since the last call.
    pub(super) fn carried(&mut self, to_actor: u64, from_actor: u64) {
        self.to_actor += to_actor;
        self.from_actor += from_actor;
        self.activation.traffic.to_actor.fetch_add(to_actor, Ordering::Relaxed);
        self.activation.traffic.from_actor.fetch_add(from_actor, Ordering::Relaxed);
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let mut running = self.activation.tunnels.lock();
        running.tunnels.remove(&self.id);
        if self.in_flight {
            running.count(false);
        }
        if running.tunnels.is_empty() {
            self.activation.emptied.notify_waiters();
        }
    }
}
