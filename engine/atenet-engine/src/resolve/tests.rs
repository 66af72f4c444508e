//! Flights, parking and cache together: on a paused clock with a scripted control plane, and over a real one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep};
use tonic::{Code, Status};

use super::*;
use crate::control::Control;
use crate::proto::{ObjectRef, ResumeActorResponse};
use crate::testing::api::{Api, running};

pub(super) type Outcome = Result<ResumeActorResponse, Status>;
type Script = Box<dyn Fn(&ActorRef, usize) -> (Duration, Outcome) + Send + Sync>;

/// Answers each attempt after a time, and counts.
pub(super) struct Scripted {
    script: Script,
    calls: Mutex<HashMap<ActorRef, Vec<Instant>>>,
    in_air: Mutex<HashMap<ActorRef, usize>>,
    most_in_air: AtomicUsize,
}

impl ControlPlane for Scripted {
    fn resume<'a>(&'a self, actor: &'a ActorRef, _: Option<&'a str>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let call = {
                let mut calls = self.calls.lock();
                let starts = calls.entry(actor.clone()).or_default();
                starts.push(Instant::now());
                starts.len() - 1
            };
            let now = {
                let mut in_air = self.in_air.lock();
                let count = in_air.entry(actor.clone()).or_default();
                *count += 1;
                *count
            };
            self.most_in_air.fetch_max(now, Ordering::SeqCst);
            let (time, outcome) = (self.script)(actor, call);
            sleep(time).await;
            *self.in_air.lock().get_mut(actor).unwrap() -= 1;
            outcome
        })
    }
}

pub(super) struct Bench {
    pub(super) resolver: Resolver,
    control: Arc<Scripted>,
}

const CONFIG: &str = r#"{
    "listeners": [{"name": "plain", "address": "127.0.0.1:0", "protocol": "http", "mode": "direct"}],
    "control": {"address": "api:443", "server_name": "api", "credentials": {"cert": "a", "key": "a"}, "roots": "b"},
    "worker": {"credentials": {"cert": "a", "key": "a"}, "roots": "b"}
}"#;

pub(super) fn config(change: impl FnOnce(&mut RouterConfig)) -> RouterConfig {
    let mut config = RouterConfig::from_json(CONFIG).unwrap();
    change(&mut config);
    config
}

pub(super) fn bench(
    change: impl FnOnce(&mut RouterConfig),
    script: impl Fn(&ActorRef, usize) -> (Duration, Outcome) + Send + Sync + 'static,
) -> Bench {
    let control = Arc::new(Scripted {
        script: Box::new(script),
        calls: Mutex::default(),
        in_air: Mutex::default(),
        most_in_air: AtomicUsize::new(0),
    });
    let resolver = Resolver::new(&config(change), control.clone(), Telemetry::default());
    Bench { resolver, control }
}

impl Bench {
    pub(super) fn start(&self, actor: &ActorRef) -> JoinHandle<Result<Resolved, Refusal>> {
        let (resolver, actor) = (self.resolver.clone(), actor.clone());
        tokio::spawn(async move { resolver.resolve_in(&actor, &Trace::default()).await })
    }

    pub(super) async fn resolve(&self, actor: &ActorRef) -> Result<Resolved, Refusal> {
        self.resolver.resolve_in(actor, &Trace::default()).await
    }

    pub(super) fn calls(&self, actor: &ActorRef) -> usize {
        self.control.calls.lock().get(actor).map_or(0, Vec::len)
    }

    pub(super) fn all_calls(&self, actor: &ActorRef) -> Vec<Instant> {
        self.control.calls.lock()[actor].clone()
    }

    fn last_call(&self, actor: &ActorRef) -> Instant {
        *self.control.calls.lock()[actor].last().unwrap()
    }

    fn parked(&self) -> usize {
        self.resolver.inner.lot.taken()
    }

    fn metric(&self, line: &str) -> bool {
        self.resolver.inner.telemetry.metrics_text().lines().any(|found| found == line)
    }
}

fn actor(name: &str) -> ActorRef {
    ActorRef::new("team", name).unwrap()
}

fn object(actor: &ActorRef) -> ObjectRef {
    ObjectRef { atespace: actor.atespace().into(), name: actor.name().into() }
}

pub(super) fn ok(actor: &ActorRef, resumed: bool) -> Outcome {
    Ok(running(&object(actor), "10.0.0.1", resumed))
}

pub(super) fn busy() -> Outcome {
    Err(Status::resource_exhausted("no free workers available"))
}

pub(super) const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Lets every task that can run do so, without moving the clock.
pub(super) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_requests_at_a_cold_actor_are_one_call() {
    let bench = bench(|_| {}, |actor, _| (ms(800), ok(actor, true)));
    let cold = actor("cold");
    let answers = join_all((0..50).map(|_| bench.resolve(&cold))).await;
    let count = |wanted| answers.iter().filter(|a| a.as_ref().unwrap().disposition == wanted).count();
    assert_eq!((count(Disposition::Triggered), count(Disposition::Joined)), (1, 49));
    assert_eq!(bench.calls(&cold), 1);
    assert_eq!(bench.parked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_warm_read_is_nobodys_resume() {
    let bench = bench(|_| {}, |actor, _| (ms(5), ok(actor, false)));
    let actor = agent();
    let answers = join_all((0..5).map(|_| bench.resolve(&actor))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().disposition == Disposition::None));
}

pub(super) fn agent() -> ActorRef {
    actor("agent")
}

/// B028
#[tokio::test(start_paused = true)]
async fn an_answer_is_used_for_its_time_to_live_and_no_longer() {
    let bench = bench(|_| {}, |actor, _| (ms(1), ok(actor, false)));
    for _ in 0..200 {
        bench.resolve(&agent()).await.unwrap();
        advance(ms(20)).await;
    }
    assert_eq!(bench.calls(&agent()), 1);
    advance(ms(2_000)).await;
    let fresh = bench.resolve(&agent()).await.unwrap();
    assert!(!fresh.cached);
    assert_eq!(bench.calls(&agent()), 2);
    assert!(bench.metric("atenet_router_cache_hits_total 199"));
    assert!(bench.metric("atenet_router_cache_misses_total 2"));
}

#[tokio::test(start_paused = true)]
async fn without_a_time_to_live_only_concurrent_callers_share() {
    let bench = bench(|config| config.cache.ttl_ms = 0, |actor, _| (ms(10), ok(actor, false)));
    let actor = agent();
    join_all((0..10).map(|_| bench.resolve(&actor))).await;
    assert_eq!(bench.calls(&actor), 1);
    bench.resolve(&actor).await.unwrap();
    assert_eq!(bench.calls(&actor), 2);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_answer_is_asked_for_again_and_an_older_one_cannot_be() {
    let bench = bench(|_| {}, |actor, _| (ms(1), ok(actor, false)));
    let first = bench.resolve(&agent()).await.unwrap();
    bench.resolver.forget(&agent(), first.generation);
    let second = bench.resolve(&agent()).await.unwrap();
    assert_ne!(first.generation, second.generation);
    bench.resolver.forget(&agent(), first.generation);
    assert!(bench.resolve(&agent()).await.unwrap().cached);
    assert_eq!(bench.calls(&agent()), 2);
}

/// B033
#[tokio::test(start_paused = true)]
async fn the_first_caller_leaving_harms_no_joiner() {
    let bench = bench(|_| {}, |actor, _| (ms(500), ok(actor, true)));
    let first = bench.start(&agent());
    sleep(ms(50)).await;
    let joiner = bench.start(&agent());
    sleep(ms(50)).await;
    first.abort();
    assert_eq!(joiner.await.unwrap().unwrap().disposition, Disposition::Joined);
    assert_eq!(bench.calls(&agent()), 1);
}

/// B034
#[tokio::test(start_paused = true)]
async fn a_lone_caller_leaving_and_a_new_one_coming_are_one_call_in_the_air() {
    let bench = bench(|_| {}, |actor, _| (ms(500), ok(actor, true)));
    for _ in 0..5 {
        let lone = bench.start(&agent());
        sleep(ms(50)).await;
        lone.abort();
    }
    bench.resolve(&agent()).await.unwrap();
    assert_eq!(bench.calls(&agent()), 1);
    assert_eq!(bench.control.most_in_air.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_finished_flight_is_not_joined() {
    let bench = bench(
        |config| config.cache.ttl_ms = 0,
        |actor, call| (ms(10), if call == 0 { Err(Status::not_found("")) } else { ok(actor, false) }),
    );
    assert_eq!(bench.resolve(&agent()).await.unwrap_err(), Refusal::ActorNotFound);
    bench.resolve(&agent()).await.unwrap();
    assert_eq!(bench.calls(&agent()), 2);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_flight_asks_no_more() {
    let bench = bench(|_| {}, |_, _| (ms(10), busy()));
    let lone = bench.start(&agent());
    sleep(ms(50)).await;
    assert_eq!((bench.calls(&agent()), bench.parked()), (1, 1));
    lone.abort();
    settle().await;
    assert_eq!(bench.parked(), 0);
    sleep(ms(60_000)).await;
    assert_eq!(bench.calls(&agent()), 1);
    assert!(bench.resolver.inner.flights.is_empty());
}

/// B020
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_room_and_is_served() {
    let started = Instant::now();
    let freed = started + ms(2_000);
    let bench = bench(|_| {}, move |actor, _| (ms(5), if Instant::now() < freed { busy() } else { ok(actor, true) }));
    let found = bench.resolve(&agent()).await.unwrap();
    assert_eq!(found.disposition, Disposition::Triggered);
    let took = started.elapsed();
    assert!(took >= ms(2_000) && took < ms(2_400), "{took:?}");
    assert!(bench.metric(r#"atenet_router_parking_wait_duration_seconds_count{outcome="served"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn the_budget_ends_sharp_with_the_last_answers_refusal() {
    for (status, refusal) in [
        (Status::resource_exhausted(""), Refusal::NoCapacity),
        (Status::failed_precondition("actor is SUSPENDING"), Refusal::ActorUnavailable),
        (Status::aborted(""), Refusal::ActorUnavailable),
        (Status::unavailable(""), Refusal::ControlPlaneUnavailable),
    ] {
        let started = Instant::now();
        let bench = bench(|_| {}, move |_, _| (Duration::ZERO, Err(status.clone())));
        assert_eq!(bench.resolve(&agent()).await.unwrap_err(), refusal);
        assert!((started + ms(5_000)).elapsed() < ms(2), "{:?}", started.elapsed());
        assert!(bench.last_call(&agent()) < started + ms(5_000));
        let calls = bench.calls(&agent());
        assert!((16..=20).contains(&calls), "{calls} attempts");
        assert_eq!(bench.parked(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn everything_else_fails_at_once() {
    for (code, refusal) in [
        (Code::NotFound, Refusal::ActorNotFound),
        (Code::PermissionDenied, Refusal::PermissionDenied),
        (Code::Unauthenticated, Refusal::Unauthenticated),
        (Code::DeadlineExceeded, Refusal::DeadlineExceeded),
        (Code::Internal, Refusal::Internal),
    ] {
        let bench = bench(|_| {}, move |_, _| (ms(1), Err(Status::new(code, ""))));
        let started = Instant::now();
        assert_eq!(bench.resolve(&agent()).await.unwrap_err(), refusal);
        assert!(started.elapsed() < ms(10));
        assert_eq!(bench.calls(&agent()), 1);
    }
}

/// B026
#[tokio::test(start_paused = true)]
async fn a_crashed_actor_uses_neither_budget_nor_slot() {
    let bench = bench(|_| {}, |_, _| (ms(1), Err(Status::failed_precondition("actor team/agent is CRASHED"))));
    assert_eq!(bench.resolve(&agent()).await.unwrap_err(), Refusal::ActorCrashed);
    assert_eq!(bench.calls(&agent()), 1);
    assert!(!bench.resolver.inner.telemetry.metrics_text().contains("parking_wait_duration_seconds_count"));
}

/// B022
#[tokio::test(start_paused = true)]
async fn an_attempt_in_the_air_outlives_the_budget() {
    let freed = Instant::now() + ms(4_500);
    let bench = bench(
        |_| {},
        move |actor, _| if Instant::now() < freed { (ms(1), busy()) } else { (ms(900), ok(actor, true)) },
    );
    let found = bench.resolve(&agent()).await.unwrap();
    assert_eq!(found.disposition, Disposition::Triggered);
}

#[tokio::test(start_paused = true)]
async fn joiners_share_the_budget_of_the_flight() {
    let bench = bench(|_| {}, |_, _| (Duration::ZERO, busy()));
    let started = Instant::now();
    let first = bench.start(&agent());
    sleep(ms(4_000)).await;
    assert_eq!(bench.resolve(&agent()).await.unwrap_err(), Refusal::NoCapacity);
    assert!((started + ms(5_000)).elapsed() < ms(2));
    assert_eq!(first.await.unwrap().unwrap_err(), Refusal::NoCapacity);
}

/// B023
#[tokio::test(start_paused = true)]
async fn a_full_lot_sheds_waiting_requests_and_serves_running_actors() {
    let (waiting, warm) = (actor("waiting"), actor("warm"));
    let full = waiting.clone();
    let bench = bench(
        |config| config.parking.max = 1,
        move |actor, _| (ms(5), if *actor == full { busy() } else { ok(actor, false) }),
    );
    let parked = bench.start(&waiting);
    sleep(ms(50)).await;
    assert_eq!(bench.parked(), 1);
    for _ in 0..10 {
        bench.resolver.forget(&warm, bench.resolve(&warm).await.unwrap().generation);
    }
    let started = Instant::now();
    assert_eq!(bench.resolve(&waiting).await.unwrap_err(), Refusal::ParkingFull, "a joiner counts");
    assert_eq!(bench.resolve(&actor("waiting")).await.unwrap_err(), Refusal::ParkingFull);
    assert!(started.elapsed() < ms(1));
    assert!(bench.metric("atenet_router_parking_rejected_total 2"));
    parked.abort();
    settle().await;
    assert_eq!(bench.parked(), 0);
    let next = bench.start(&waiting);
    sleep(ms(150)).await;
    assert_eq!(bench.parked(), 1, "the slot is free again");
    next.abort();
}

#[tokio::test(start_paused = true)]
async fn each_waiting_request_takes_a_slot_of_its_own() {
    let bench = bench(|config| config.parking.max = 3, |_, _| (ms(10), busy()));
    let actor = agent();
    let answers = join_all((0..5).map(|_| bench.resolve(&actor))).await;
    let count = |refusal| answers.iter().filter(|answer| *answer.as_ref().unwrap_err() == refusal).count();
    assert_eq!((count(Refusal::NoCapacity), count(Refusal::ParkingFull)), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn with_parking_off_only_contention_is_waited_out() {
    let off = |config: &mut RouterConfig| config.parking.max = 0;
    let full = bench(off, |_, _| (ms(1), busy()));
    let started = Instant::now();
    assert_eq!(full.resolve(&agent()).await.unwrap_err(), Refusal::NoCapacity);
    assert!(started.elapsed() < ms(10));
    let contended =
        bench(off, |actor, call| (ms(1), if call < 3 { Err(Status::aborted("")) } else { ok(actor, true) }));
    contended.resolve(&agent()).await.unwrap();
    assert_eq!(contended.calls(&agent()), 4);
}

#[tokio::test(start_paused = true)]
async fn an_unusable_answer_is_an_internal_error_and_not_remembered() {
    let bench = bench(|_| {}, |actor, _| (ms(1), Ok(running(&object(actor), "nowhere", false))));
    assert_eq!(bench.resolve(&agent()).await.unwrap_err(), Refusal::Internal);
    assert_eq!(bench.resolve(&agent()).await.unwrap_err(), Refusal::Internal);
    assert_eq!(bench.calls(&agent()), 2);
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_dies_frees_its_callers_and_its_place() {
    let bench =
        bench(|_| {}, |actor, call| if call == 0 { panic!("by the script") } else { (ms(1), ok(actor, false)) });
    assert_eq!(bench.resolve(&agent()).await.unwrap_err(), Refusal::Internal);
    bench.resolve(&agent()).await.unwrap();
}

/// B035
#[tokio::test(start_paused = true)]
async fn abandoned_requests_leave_nothing_behind() {
    let bench = bench(|config| config.parking.max = 100_000, |_, _| (ms(10), busy()));
    for round in 0..50 {
        let clients: Vec<_> = (0..200).map(|n| bench.start(&actor(&format!("a{}", n % 20)))).collect();
        sleep(ms(1_000)).await;
        clients.iter().for_each(JoinHandle::abort);
        settle().await;
        assert_eq!(bench.parked(), 0, "round {round}");
    }
    sleep(ms(10_000)).await;
    assert!(bench.resolver.inner.flights.is_empty());
}

#[tokio::test]
async fn over_a_real_control_plane_a_burst_is_one_call() {
    let api = Api::serve(|actor, call| async move {
        tokio::time::sleep(ms(50)).await;
        if call == 0 {
            Err(Status::resource_exhausted("no free workers available"))
        } else {
            Ok(running(&actor, "127.0.0.1", true))
        }
    })
    .await;
    let control = Arc::new(Control::new(&api.config()).unwrap());
    let resolver = Resolver::new(&config(|_| {}), control, Telemetry::default());
    let (actor, trace) = (agent(), Trace::default());
    let answers = join_all((0..50).map(|_| resolver.resolve_in(&actor, &trace))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().assignment.worker.to_string() == "127.0.0.1:8443"));
    assert_eq!((api.seen.calls(), api.seen.connections()), (2, 1));
}

#[tokio::test]
async fn where_nothing_is_kept_a_running_actor_is_looked_up_each_time_and_a_sleeping_one_woken() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "127.0.0.1", true)) }).await;
    let control = Arc::new(Control::new(&api.config()).unwrap());
    let resolver = Resolver::new(&config(|config| config.cache.ttl_ms = 0), control, Telemetry::default());
    let (actor, trace) = (agent(), Trace::default());
    let reference = ObjectRef { atespace: actor.atespace().into(), name: actor.name().into() };
    let ask = async |trace| resolver.resolve_in(&actor, trace).await.unwrap();
    // Nobody is asked before there is a connection.
    assert_eq!(ask(&trace).await.disposition, Disposition::Triggered);
    for ip in ["127.0.0.2", "127.0.0.3"] {
        api.seen.run(std::slice::from_ref(&reference), ip);
        let found = ask(&trace).await;
        assert_eq!((found.assignment.worker.ip().to_string().as_str(), found.disposition), (ip, Disposition::None));
    }
    assert_eq!(api.seen.calls(), 1);
    // A trace follows calls.
    let traced = Trace::passing(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    assert_eq!(ask(&traced).await.disposition, Disposition::Triggered);
    api.seen.run(&[], "127.0.0.2");
    assert_eq!(ask(&trace).await.disposition, Disposition::Triggered);
    assert_eq!((api.seen.calls(), api.seen.locates.load(Ordering::SeqCst)), (3, 1));
}
