//! A whole router for tests: real sockets and TLS, a scripted resolver, scripted workers and actors.

mod peers;
mod pki;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) use self::peers::{http_actor, read_head, reply, send_all};
pub(super) use self::pki::Pki;
pub(super) use self::worker::{Answer, Stream, Worker, actor};
use super::Ingress;
use super::gateway::Routes;
use crate::actor_ref::ActorRef;
use crate::assignment::{Assignment, Disposition, Resolved};
use crate::config::RouterConfig;
use crate::drain::{self, DrainControl};
use crate::refusal::Refusal;
use crate::telemetry::Telemetry;

/// No test waits longer for anything.
pub(super) const SOON: Duration = Duration::from_secs(10);

type Step = Box<dyn FnMut(&ActorRef, u64) -> Result<Arc<Assignment>, Refusal> + Send>;

/// A resolver that answers by a function of (actor, how many calls came before).
pub(super) struct Script {
    step: Mutex<Step>,
    pub(super) calls: AtomicU64,
    pub(super) forgotten: Mutex<Vec<u64>>,
    /// How long an answer takes.
    pub(super) delay: Duration,
    pub(super) waiting: AtomicUsize,
}

impl Script {
    pub(super) async fn resolve(&self, actor: &ActorRef) -> Result<Resolved, Refusal> {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if !self.delay.is_zero() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _waiting = Waiting(&self.waiting);
            tokio::time::sleep(self.delay).await;
        }
        let assignment = (self.step.lock())(actor, call)?;
        Ok(Resolved { assignment, disposition: Disposition::None, cached: false, generation: call })
    }

    pub(super) fn forget(&self, generation: u64) {
        self.forgotten.lock().push(generation);
    }
}

/// A running router.
pub(super) struct Router {
    pub(super) script: Arc<Script>,
    /// Held for its life: without it the drain would begin.
    pub(super) control: DrainControl,
    pub(super) pki: Arc<Pki>,
    ingress: Ingress,
}

impl Router {
    /// Listeners `plain`, `secure`, `connect`, `connect-secure`; `step` resolves.
    pub(super) fn start(
        pki: Arc<Pki>,
        step: impl FnMut(&ActorRef, u64) -> Result<Arc<Assignment>, Refusal> + Send + 'static,
    ) -> Self {
        Self::configured(pki, Duration::ZERO, |_| {}, step)
    }

    pub(super) fn configured(
        pki: Arc<Pki>,
        delay: Duration,
        change: impl FnOnce(&mut RouterConfig),
        step: impl FnMut(&ActorRef, u64) -> Result<Arc<Assignment>, Refusal> + Send + 'static,
    ) -> Self {
        let mut config = pki.router_config();
        change(&mut config);
        let script = Arc::new(Script {
            step: Mutex::new(Box::new(step)),
            calls: AtomicU64::new(0),
            forgotten: Mutex::default(),
            delay,
            waiting: AtomicUsize::new(0),
        });
        let (control, drain) = drain::channel();
        let ingress =
            Ingress::start_with(&config, Routes::Script(script.clone()), Telemetry::default(), drain).unwrap();
        Self { script, control, pki, ingress }
    }

    pub(super) fn address(&self, listener: &str) -> std::net::SocketAddr {
        self.ingress.addresses()[listener][0]
    }

    pub(super) async fn client(&self, listener: &str) -> TcpStream {
        TcpStream::connect(self.address(listener)).await.unwrap()
    }

    pub(super) fn calls(&self) -> u64 {
        self.script.calls.load(Ordering::SeqCst)
    }

    /// One exchange on a connection of its own: everything that came back until the close.
    pub(super) async fn exchange(&self, request: &str) -> String {
        let mut client = self.client("plain").await;
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A reset after the answer is one way to close.
        let _end = tokio::time::timeout(SOON, client.read_to_end(&mut answer)).await.expect("the router did not close");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// An actor's assignment on a worker.
pub(super) fn assignment(actor: &ActorRef, worker: &Worker, version: i64) -> Arc<Assignment> {
    Arc::new(Assignment {
        actor: actor.clone(),
        actor_uid: format!("uid-{actor}").into(),
        version,
        worker: worker.address,
        worker_spiffe_id: worker.id.as_str().into(),
        worker_epoch: 1,
    })
}

/// A router, one worker whose actors all do what `actor` does, and every actor assigned there.
pub(super) async fn simple<F, R>(behaviour: F) -> (Router, Arc<Worker>)
where
    F: Fn(Stream) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let pki = Pki::new();
    let behaviour = actor(behaviour);
    let worker = Worker::start(&pki, move |_| Answer::Open(behaviour.clone())).await;
    let on = worker.clone();
    let router = Router::start(pki, move |name, _| Ok(assignment(name, &on, 1)));
    (router, worker)
}
