//! The client against a real server: mTLS, HTTP/2, gRPC.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tonic::Code;

use super::*;
use crate::testing::api::{Api, running};
use crate::testing::pki::Leaf;

const SOON: Duration = Duration::from_secs(10);

fn actor() -> ActorRef {
    ActorRef::new("team", "agent").unwrap()
}

fn quick() -> Watch {
    Watch::of(Duration::from_millis(100), Duration::from_millis(100), Duration::from_millis(500))
}

async fn resumed(control: &Control) -> Result<ResumeActorResponse, Status> {
    tokio::time::timeout(SOON, control.resume(&actor(), None)).await.unwrap()
}

#[tokio::test]
async fn calls_share_one_connection_and_carry_the_trace() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", true)) }).await;
    let control = Control::new(&api.config()).unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let calls = (0..20).map(|_| async { control.resume(&actor(), Some(trace)).await.unwrap() });
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.resumed));
    assert_eq!((api.seen.calls(), api.seen.connections()), (20, 1));
    let headers = api.seen.headers.lock();
    assert!(headers.iter().all(|headers| headers["traceparent"] == trace));
    assert!(headers.iter().all(|headers| headers["grpc-timeout"] == "30000000u"));
}

#[tokio::test]
async fn a_status_keeps_its_code_and_text() {
    let api = Api::serve(|_, _| async { Err(Status::failed_precondition("actor is CRASHED")) }).await;
    let control = Control::new(&api.config()).unwrap();
    let status = resumed(&control).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "actor is CRASHED"));
}

#[tokio::test]
async fn nobody_there_is_unavailable_within_the_connect_limit() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", false)) }).await;
    let control = Control::new(&api.config()).unwrap();
    api.stop();
    while tokio::net::TcpStream::connect(api.address).await.is_ok() {}
    assert_eq!(resumed(&control).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn a_listener_that_never_finishes_tls_is_given_up() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", false)) }).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = ControlConfig { address: silent.local_addr().unwrap().to_string(), ..api.config() };
    let control = Control::watched(&config, quick()).unwrap();
    assert_eq!(resumed(&control).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn callers_do_not_queue_for_attempts_of_their_own() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", false)) }).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = ControlConfig { address: silent.local_addr().unwrap().to_string(), ..api.config() };
    let control = Control::watched(&config, quick()).unwrap();
    let calls = (0..20).map(|_| resumed(&control));
    // One after the other they would take ten seconds.
    let limit = Duration::from_secs(4);
    let all = tokio::time::timeout(limit, futures_util::future::join_all(calls)).await.unwrap();
    assert!(all.iter().all(|answer| answer.as_ref().unwrap_err().code() == Code::Unavailable));
}

#[tokio::test]
async fn a_restarted_control_plane_is_found_without_a_failed_call() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", false)) }).await;
    let config = api.config();
    let tls = ClientTls::new(Some(config.credentials), config.roots, &[b"h2"]).unwrap();
    let connection = Connection::new(&config.address, &config.server_name, tls, Watch::default()).unwrap();
    let control = Control::over(connection.clone()).unwrap();
    resumed(&control).await.unwrap();
    let next = api.successor(|actor, _| async move { Ok(running(&actor, "10.0.0.2", false)) }).await;
    while connection.is_open() {
        tokio::task::yield_now().await;
    }
    resumed(&control).await.unwrap();
    assert_eq!(next.seen.calls(), 1);
}

fn reference() -> ObjectRef {
    ObjectRef { atespace: "team".into(), name: "agent".into() }
}

/// With a connection, so that look-ups have one to go by.
async fn connected(api: &Api) -> Control {
    let control = Control::new(&api.config()).unwrap();
    resumed(&control).await.unwrap();
    control
}

async fn located(control: &Control) -> Option<ResumeActorResponse> {
    control.locate(&actor()).await
}

#[tokio::test]
async fn running_actors_are_asked_about_on_one_stream_and_each_time_anew() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", true)) }).await;
    let control = connected(&api).await;
    for ip in ["10.0.0.2", "10.0.0.3"] {
        api.seen.run(&[reference()], ip);
        let answers = futures_util::future::join_all((0..50).map(|_| located(&control))).await;
        assert!(answers.into_iter().all(|answer| answer == Some(running(&reference(), ip, false))));
    }
    api.seen.run(&[], "10.0.0.2");
    assert_eq!(located(&control).await, None);
    assert_eq!((api.seen.calls(), api.seen.locates.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_control_plane_that_locates_nobody_is_asked_once_a_connection() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", true)) }).await;
    let control = connected(&api).await;
    for _ in 0..3 {
        assert_eq!(located(&control).await, None);
    }
    assert_eq!(api.seen.locates.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nobody_is_located_before_there_is_a_connection() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", true)) }).await;
    api.seen.run(&[reference()], "10.0.0.2");
    let control = Control::new(&api.config()).unwrap();
    assert_eq!(located(&control).await, None);
    assert_eq!(api.seen.connections(), 0);
}

#[tokio::test]
async fn look_ups_find_the_next_connection() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", true)) }).await;
    api.seen.run(&[reference()], "10.0.0.2");
    let control = connected(&api).await;
    for round in 1..=5 {
        while located(&control).await.is_none() {
            // The old connection may take a moment to be seen as gone.
            let _broken = resumed(&control).await;
        }
        assert_eq!(api.seen.locates.load(Ordering::SeqCst), round);
        api.break_connections();
    }
}

/// I-40: nothing closes the connection, it only falls silent.
#[tokio::test]
async fn a_control_plane_that_hangs_is_left_for_the_next_one() {
    let api = Api::serve(|_, _| std::future::pending()).await;
    let control = Control::watched(&api.config(), quick()).unwrap();
    // The peer answers pings while it works, so a long call alone is no hang.
    let long = tokio::time::timeout(Duration::from_millis(600), control.resume(&actor(), None)).await;
    assert!(long.is_err(), "{long:?}");
    let gate = Freezer::between(&api).await;
    let control = Control::watched(&ControlConfig { address: gate.address.clone(), ..api.config() }, quick()).unwrap();
    let target = actor();
    let call = control.resume(&target, None);
    tokio::pin!(call);
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut call).await.is_err());
    gate.freeze();
    let status = tokio::time::timeout(SOON, call).await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    gate.thaw();
    assert!(tokio::time::timeout(Duration::from_millis(300), control.resume(&actor(), None)).await.is_err());
    assert_eq!(api.seen.calls(), 3, "a call reached the peer over a new connection");
}

#[tokio::test]
async fn a_replaced_certificate_is_shown_on_the_next_connection() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "10.0.0.1", false)) }).await;
    let control = Control::new(&api.config()).unwrap();
    resumed(&control).await.unwrap();
    api.pods.credential(&api.scratch, "router.pem", &Leaf::pod("spiffe://cluster.local/ns/default/sa/other"));
    resumed(&control).await.unwrap();
    api.break_connections();
    let refused = loop {
        // The old connection may take a moment to be seen as gone.
        match resumed(&control).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::Unavailable);
    api.pods.credential(&api.scratch, "router.pem", &Leaf::pod(crate::testing::api::router_id().as_str()));
    resumed(&control).await.unwrap();
}

/// A relay that can stop relaying without closing anything, as a machine that hangs does.
struct Freezer {
    address: String,
    frozen: tokio::sync::watch::Sender<bool>,
}

impl Freezer {
    async fn between(api: &Api) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (frozen, watched) = tokio::sync::watch::channel(false);
        let target = api.address;
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut watched = watched.clone();
                tokio::spawn(async move {
                    let mut far = tokio::net::TcpStream::connect(target).await.unwrap();
                    let relay = tokio::io::copy_bidirectional(&mut near, &mut far);
                    let frozen = async { watched.wait_for(|frozen| *frozen).await.is_ok() };
                    let hang = tokio::select! { _ = relay => false, frozen = frozen => frozen };
                    if hang {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { address, frozen }
    }

    fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    /// For connections made from now on.
    fn thaw(&self) {
        self.frozen.send_replace(false);
    }
}
