//! What the resolver costs by itself, as one JSON object: `cargo run --release --example resolver`.
//!
//! `hits_per_second`: of one thread, over a thousand cached actors. `join_us`: for one more caller to board a flight
//! that is in the air. `wake_ms`: from the flight's end until the last of 1 024 waiting callers has its answer.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measure that cannot be taken ends; stdout is its data")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Instant;

use atenet_engine::actor_ref::ActorRef;
use atenet_engine::config::{CacheConfig, ParkingConfig};
use atenet_engine::control::ControlPlane;
use atenet_engine::proto::{Actor, ActorStatus, ResourceMetadata, ResumeActorResponse, WorkerAssignment};
use atenet_engine::resolve::Resolver;
use atenet_engine::telemetry::Telemetry;
use atenet_engine::trace::Trace;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tonic::Status;

const ACTORS: usize = 1_000;
const HITS: usize = 1_000_000;
const CALLERS: usize = 1_024;
const ROUNDS: usize = 15;

/// Answers while the gate is open.
struct Gated(Semaphore);

impl ControlPlane for Gated {
    fn resume<'a>(
        &'a self,
        actor: &'a ActorRef,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ResumeActorResponse, Status>> {
        Box::pin(async move {
            self.0.acquire().await.unwrap().forget();
            Ok(running(actor))
        })
    }
}

fn running(actor: &ActorRef) -> ResumeActorResponse {
    let worker = WorkerAssignment {
        worker_namespace: "default".into(),
        worker_pool: "bench".into(),
        worker_pod_ips: vec!["127.0.0.1".into()],
        ..WorkerAssignment::default()
    };
    let metadata = ResourceMetadata {
        atespace: actor.atespace().into(),
        name: actor.name().into(),
        uid: "uid".into(),
        ..ResourceMetadata::default()
    };
    let status = ActorStatus { worker_assignment: Some(worker), ..ActorStatus::default() };
    let actor = Actor { metadata: Some(metadata), status: Some(status), ..Actor::default() };
    ResumeActorResponse { actor: Some(actor), resumed: true }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let result = runtime.block_on(async {
        tokio::spawn(async {
            let control = Arc::new(Gated(Semaphore::new(0)));
            let cache = CacheConfig { ttl_ms: 3_600_000, ..CacheConfig::default() };
            let resolver =
                Resolver::with_parts(&cache, &ParkingConfig::default(), 8443, control.clone(), Telemetry::default());
            let hits = hits(&resolver, &control).await;
            let mut rounds = Vec::new();
            for round in 0..ROUNDS {
                rounds.push(flight(&resolver, &control, round).await);
            }
            let median = |of: fn(&(f64, f64)) -> f64| {
                let mut all: Vec<f64> = rounds.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 2]
            };
            (hits, median(|round| round.0), median(|round| round.1))
        })
        .await
        .unwrap()
    });
    let (hits, join, wake) = result;
    println!("{{\"hits_per_second\": {hits:.0}, \"join_us\": {join:.3}, \"wake_ms\": {wake:.3}}}");
}

async fn hits(resolver: &Resolver, control: &Gated) -> f64 {
    control.0.add_permits(ACTORS);
    let actors: Vec<ActorRef> = (0..ACTORS).map(|n| ActorRef::new("bench", &format!("hit-{n}")).unwrap()).collect();
    for actor in &actors {
        resolver.resolve_in(actor, &Trace::default()).await.unwrap();
    }
    let began = Instant::now();
    for actor in actors.iter().cycle().take(HITS) {
        assert!(resolver.resolve_in(actor, &Trace::default()).await.unwrap().cached);
    }
    HITS as f64 / began.elapsed().as_secs_f64()
}

/// Microseconds to join, and milliseconds to wake all.
async fn flight(resolver: &Resolver, control: &Gated, round: usize) -> (f64, f64) {
    let actor = ActorRef::new("bench", &format!("cold-{round}")).unwrap();
    let first = tokio::spawn(wait(resolver.clone(), actor.clone()));
    tokio::task::yield_now().await;
    let (began, trace) = (Instant::now(), Trace::default());
    for _ in 0..CALLERS {
        let mut joined = pin!(resolver.resolve_in(&actor, &trace));
        assert!(joined.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let join = began.elapsed().as_secs_f64() * 1e6 / CALLERS as f64;
    let callers: Vec<_> = (1..CALLERS).map(|_| tokio::spawn(wait(resolver.clone(), actor.clone()))).collect();
    // Every caller has boarded when this task's turn comes again.
    tokio::task::yield_now().await;
    let ended = Instant::now();
    control.0.add_permits(1);
    let mut last = first.await.unwrap();
    for caller in callers {
        last = last.max(caller.await.unwrap());
    }
    (join, last.duration_since(ended).as_secs_f64() * 1e3)
}

/// When the answer was there.
async fn wait(resolver: Resolver, actor: ActorRef) -> Instant {
    resolver.resolve_in(&actor, &Trace::default()).await.unwrap();
    Instant::now()
}
