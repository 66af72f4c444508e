//! What news do to requests that wait and to what is remembered; and how they are come by.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::{Instant, advance, timeout};
use tonic::Status;

use super::super::Resolver;
use super::super::tests::{agent, bench, busy, config, ms, ok, settle};
use super::*;
use crate::control::Control;
use crate::proto::watch_event::Event;
use crate::proto::{AssignmentEnded, CapacityFreed, ObjectRef};
use crate::telemetry::Telemetry;
use crate::testing::api::{Api, running};
use crate::trace::Trace;

fn ended(uid: &str, version: i64) -> News {
    News::AssignmentEnded { actor: agent(), uid: uid.into(), version }
}

/// The incarnation and version that scripted answers have.
const UID: &str = "00000000-0000-4000-8000-000000000001";
const VERSION: i64 = 3;

#[tokio::test(start_paused = true)]
async fn freed_capacity_wakes_a_parked_request_before_its_next_attempt() {
    let bench = bench(|_| {}, |actor, call| (ms(1), if call == 0 { busy() } else { ok(actor, true) }));
    let waiting = bench.start(&agent());
    advance(ms(1)).await;
    settle().await;
    let began = Instant::now();
    advance(ms(10)).await;
    bench.resolver.inner.hear(&News::CapacityFreed);
    settle().await;
    advance(ms(1)).await;
    assert!(waiting.await.unwrap().is_ok());
    assert!(began.elapsed() < ms(50), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_news_brought_forward_in_vain_takes_no_turn() {
    let bench = bench(|_| {}, |actor, call| (ms(0), if call < 4 { busy() } else { ok(actor, true) }));
    let began = Instant::now();
    let waiting = bench.start(&agent());
    settle().await;
    for _ in 0..2 {
        advance(ms(10)).await;
        bench.resolver.inner.hear(&News::CapacityFreed);
        settle().await;
    }
    waiting.await.unwrap().unwrap();
    let at: Vec<_> = bench.all_calls(&agent()).iter().map(|call| call.duration_since(began).as_millis()).collect();
    assert_eq!((at[0], at[1], at[2]), (0, 10, 20));
    assert!((100..=111).contains(&at[3]), "{at:?}: the first pause is as long as without news");
    assert!((210..=232).contains(&at[4]), "{at:?}: and the second has grown by one step");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_in_the_air_when_the_slot_is_freed_is_followed_by_another() {
    let bench = bench(|_| {}, |actor, call| (ms(30), if call == 0 { busy() } else { ok(actor, true) }));
    let began = Instant::now();
    let waiting = bench.start(&agent());
    settle().await;
    bench.resolver.inner.hear(&News::CapacityFreed);
    waiting.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), ms(60));
}

#[tokio::test(start_paused = true)]
async fn an_assignment_that_ended_is_gone_before_the_next_request() {
    let bench = bench(|_| {}, |actor, _| (ms(1), ok(actor, false)));
    bench.resolve(&agent()).await.unwrap();
    for (news, calls) in [
        (ended(UID, VERSION), 1),
        (ended("another incarnation", VERSION + 1), 1),
        (News::CapacityFreed, 1),
        (ended(UID, VERSION + 1), 2),
        (News::Synced, 3),
    ] {
        bench.resolver.inner.hear(&news);
        bench.resolve(&agent()).await.unwrap();
        assert_eq!(bench.calls(&agent()), calls, "{news:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_known_to_be_over_when_it_comes_is_asked_for_again() {
    let bench = bench(
        |_| {},
        |actor, call| {
            let mut answer = ok(actor, true).unwrap();
            answer.actor.as_mut().unwrap().metadata.as_mut().unwrap().version = VERSION + 2 * i64::from(call > 0);
            (ms(50), Ok(answer))
        },
    );
    let waiting = bench.start(&agent());
    settle().await;
    bench.resolver.inner.hear(&ended(UID, VERSION + 1));
    assert_eq!(waiting.await.unwrap().unwrap().assignment.version, VERSION + 2);
    assert_eq!(bench.calls(&agent()), 2);
}

#[tokio::test(start_paused = true)]
async fn one_freed_slot_does_not_wake_a_thousand() {
    let bench = bench(|_| {}, |_, _| (ms(0), busy()));
    let waiting: Vec<_> =
        (0..100).map(|n| bench.start(&crate::actor_ref::ActorRef::new("team", &format!("a{n}")).unwrap())).collect();
    for _ in 0..10 {
        settle().await;
    }
    advance(ms(10)).await;
    bench.resolver.inner.hear(&News::CapacityFreed);
    for _ in 0..10 {
        settle().await;
    }
    let calls: usize =
        (0..100).map(|n| bench.calls(&crate::actor_ref::ActorRef::new("team", &format!("a{n}")).unwrap())).sum();
    assert_eq!(calls, 100 + WOKEN);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

// ---------------------------------------------------------------- over a real control plane

async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(ms(5)).await;
        }
    };
    timeout(Duration::from_secs(20), waiting).await.expect("it never happened");
}

fn followed(api: &Api, park: bool) -> Resolver {
    let control = Arc::new(Control::new(&api.config()).unwrap());
    let settings = config(|config| {
        config.cache.ttl_ms = 3_600_000;
        if park {
            // Nobody asks again by itself.
            config.parking.retry_interval_ms = 3_600_000;
            config.parking.budget_ms = 7_200_000;
        }
    });
    let resolver = Resolver::new(&settings, control, Telemetry::default());
    resolver.follow_news();
    resolver
}

fn assignment_ended() -> Event {
    let actor = ObjectRef { atespace: "team".into(), name: "agent".into() };
    Event::AssignmentEnded(AssignmentEnded { actor: Some(actor), actor_uid: UID.into(), version: VERSION + 1 })
}

#[tokio::test]
async fn a_parked_request_is_served_by_news_alone() {
    let room = Arc::new(AtomicBool::new(false));
    let script = room.clone();
    let api = Api::serve(move |actor, _| {
        let room = script.load(Ordering::SeqCst);
        async move { if room { Ok(running(&actor, "127.0.0.1", true)) } else { Err(Status::resource_exhausted("")) } }
    })
    .await;
    api.seen.tells();
    let resolver = followed(&api, true);
    until(|| api.seen.watches.load(Ordering::SeqCst) == 1).await;
    let (waiting, agent, trace) = (resolver.clone(), agent(), Trace::default());
    let served = tokio::spawn(async move { waiting.resolve_in(&agent, &trace).await });
    until(|| resolver.parked().0 == 1).await;
    room.store(true, Ordering::SeqCst);
    until(|| api.seen.tell(Event::CapacityFreed(CapacityFreed {})) == 1).await;
    assert!(timeout(Duration::from_secs(20), served).await.unwrap().unwrap().is_ok());
    assert_eq!(api.seen.connections(), 1, "news come over the one connection");
}

#[tokio::test]
async fn a_suspended_actor_is_asked_for_again_and_so_is_everything_after_a_reconnect() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "127.0.0.1", false)) }).await;
    api.seen.tells();
    let resolver = followed(&api, false);
    until(|| api.seen.watches.load(Ordering::SeqCst) == 1).await;
    let (agent, trace) = (agent(), Trace::default());
    let cached = async || resolver.resolve_in(&agent, &trace).await.unwrap().cached;
    // The first word of a watch clears what was remembered before it.
    until(|| resolver.inner.cache.get(&agent).is_none()).await;
    cached().await;
    until(|| api.seen.tell(assignment_ended()) == 1).await;
    until(|| resolver.inner.cache.get(&agent).is_none()).await;
    assert!(!cached().await);
    assert!(cached().await);
    api.break_connections();
    until(|| api.seen.watches.load(Ordering::SeqCst) == 2).await;
    until(|| resolver.inner.cache.get(&agent).is_none()).await;
    assert!(!cached().await);
}

#[tokio::test]
async fn a_control_plane_that_tells_nothing_is_asked_once_a_connection() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "127.0.0.1", false)) }).await;
    let resolver = followed(&api, false);
    until(|| api.seen.watches.load(Ordering::SeqCst) == 1).await;
    let trace = Trace::default();
    for name in ["a", "b", "c"] {
        let actor = crate::actor_ref::ActorRef::new("team", name).unwrap();
        resolver.resolve_in(&actor, &trace).await.unwrap();
    }
    assert_eq!(api.seen.watches.load(Ordering::SeqCst), 1, "and everything works");
    api.break_connections();
    // A request makes the next connection; only then it is asked again.
    until(|| {
        resolver.inner.cache.clear();
        api.seen.connections() == 2 || {
            let (resolver, agent) = (resolver.clone(), agent());
            tokio::spawn(async move { resolver.resolve_in(&agent, &Trace::default()).await.map(drop) });
            false
        }
    })
    .await;
    until(|| api.seen.watches.load(Ordering::SeqCst) == 2).await;
}
