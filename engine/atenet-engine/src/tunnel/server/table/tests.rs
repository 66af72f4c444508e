use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use atenet_net::NetNs;
use tokio::time::Instant;

use super::*;

async fn target(name: &str, uid: &str) -> Target {
    let netns = tokio::task::spawn_blocking(|| NetNs::open(Path::new("/proc/self/ns/net"))).await.unwrap().unwrap();
    Target {
        actor: ActorRef::new("team", name).unwrap(),
        uid: uid.into(),
        netns,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    }
}

fn actor(name: &str) -> ActorRef {
    ActorRef::new("team", name).unwrap()
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn an_actor_is_admitted_only_while_active() {
    let table = Table::default();
    assert!(table.admit(&actor("a")).is_none());
    table.activate(target("a", "1").await);
    assert!(table.admit(&actor("a")).is_some());
    assert!(table.admit(&actor("b")).is_none());
    assert!(table.deactivate(&actor("a"), "1", LONG).await);
    assert!(table.admit(&actor("a")).is_none());
}

#[tokio::test]
async fn a_late_teardown_cannot_remove_a_newer_incarnation() {
    let table = Table::default();
    table.activate(target("a", "1").await);
    table.activate(target("a", "2").await);
    assert!(!table.deactivate(&actor("a"), "1", LONG).await);
    assert_eq!(&*table.admit(&actor("a")).unwrap().activation().target.uid, "2");
}

#[tokio::test]
async fn the_same_uid_again_keeps_the_running_activation() {
    let table = Table::default();
    table.activate(target("a", "1").await);
    let tunnel = table.admit(&actor("a")).unwrap();
    table.activate(target("a", "1").await);
    assert_eq!(tunnel.activation().phase(), Phase::Open);
    assert_eq!(table.all().len(), 1);
}

#[tokio::test]
async fn another_uid_resets_the_older_incarnation() {
    let table = Table::default();
    table.activate(target("a", "1").await);
    let older = table.admit(&actor("a")).unwrap();
    table.activate(target("a", "2").await);
    assert_eq!(older.activation().phase(), Phase::Cut);
    assert_eq!(table.admit(&actor("a")).unwrap().activation().phase(), Phase::Open);
}

#[tokio::test(start_paused = true)]
async fn running_tunnels_get_the_grace_and_then_are_cut() {
    let table = Arc::new(Table::default());
    let ready = target("a", "1").await;
    table.activate(ready);
    let tunnel = table.admit(&actor("a")).unwrap();
    let start = Instant::now();
    let ending = tokio::spawn({
        let table = table.clone();
        async move { table.deactivate(&actor("a"), "1", Duration::from_secs(5)).await }
    });
    tunnel.closing().await;
    assert!(table.admit(&actor("a")).is_none(), "a new tunnel got in behind the deactivation");
    while tunnel.activation().phase() < Phase::Cut {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(start.elapsed() >= Duration::from_secs(5));
    assert!(!ending.is_finished(), "it returned before the last tunnel was gone");
    drop(tunnel);
    assert!(ending.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn it_returns_as_soon_as_the_last_tunnel_ends() {
    let table = Arc::new(Table::default());
    let ready = target("a", "1").await;
    table.activate(ready);
    let tunnels = [table.admit(&actor("a")).unwrap(), table.admit(&actor("a")).unwrap()];
    let start = Instant::now();
    let ending = tokio::spawn({
        let table = table.clone();
        async move { table.deactivate(&actor("a"), "1", LONG).await }
    });
    tunnels[0].closing().await;
    drop(tunnels);
    assert!(ending.await.unwrap());
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_deactivation_waits_for_the_first_ones_tunnels() {
    let table = Arc::new(Table::default());
    let ready = target("a", "1").await;
    table.activate(ready);
    let tunnel = table.admit(&actor("a")).unwrap();
    let first = tokio::spawn({
        let table = table.clone();
        async move { table.deactivate(&actor("a"), "1", LONG).await }
    });
    tunnel.closing().await;
    let cut = tokio::spawn({
        let table = table.clone();
        async move { table.deactivate(&actor("a"), "1", Duration::ZERO).await }
    });
    while tunnel.activation().phase() < Phase::Cut {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!cut.is_finished());
    drop(tunnel);
    assert!(first.await.unwrap());
    assert!(!cut.await.unwrap());
}

#[tokio::test]
async fn ingress_closes_only_for_an_idle_incarnation() {
    let table = Table::default();
    table.activate(target("a", "1").await);
    assert!(!table.close_if_idle(&actor("a"), "2", Duration::ZERO), "another incarnation");
    assert!(!table.close_if_idle(&actor("a"), "1", LONG), "not for so long");
    let mut tunnel = table.admit(&actor("a")).unwrap();
    tunnel.asked(b"GET / HTTP/1.1\r\n\r\n");
    assert!(!table.close_if_idle(&actor("a"), "1", Duration::ZERO), "a request is in flight");
    assert!(table.admit(&actor("a")).is_some(), "nothing has changed");
    tunnel.answered(&bytes::Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    assert!(table.close_if_idle(&actor("a"), "1", Duration::ZERO), "a connection that is only kept");
    assert!(table.admit(&actor("a")).is_none());
    assert_eq!(tunnel.activation().phase(), Phase::Closing);
    drop(tunnel);
    assert!(!table.deactivate(&actor("a"), "1", LONG).await, "it was closed before");
}

#[tokio::test]
async fn a_tunnel_that_ends_with_its_request_in_flight_leaves_the_books_right() {
    let table = Table::default();
    table.activate(target("a", "1").await);
    let mut tunnel = table.admit(&actor("a")).unwrap();
    tunnel.asked(b"GET / HTTP/1.1\r\n\r\n");
    let activation = table.all()[0].clone();
    assert_eq!(activation.snapshot().in_flight, 1);
    drop(tunnel);
    assert_eq!(activation.snapshot().in_flight, 0);
    assert!(table.close_if_idle(&actor("a"), "1", Duration::ZERO));
}
