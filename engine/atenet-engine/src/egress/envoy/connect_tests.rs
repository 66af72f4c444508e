use std::future::pending;

use tonic::Code;

use super::*;
use crate::actor_ref::ActorRef;
use crate::config::EgressDecisionsConfig;
use crate::drain;
use crate::egress::envoy::tunnels::Tunnels;
use crate::egress::{Gateway, Limits};
use crate::extproc::recent::Recent;
use crate::telemetry::Telemetry;
use crate::testing::api::{Api, running};

/// A gateway over `api`, with an hour for everything.
fn parts(api: &Api, drain: drain::Drain) -> Arc<Parts> {
    const HOUR: u64 = 3_600_000;
    let mut config = EgressDecisionsConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        socket: None,
        control: api.config(),
        origin_roots: api.scratch.path("services.pem"),
        allow_cidrs: Vec::new(),
        name_servers: Vec::new(),
        credential_providers: Vec::new(),
        limits: Default::default(),
        intercepts: false,
        policy_ttl_ms: HOUR,
        recent: 1,
        threads: None,
    };
    config.limits.sniff_ms = HOUR;
    config.limits.recheck_ms = HOUR;
    let limits = Limits::new(&config.limits, &Default::default(), &Default::default());
    let gateway = Gateway::new(&config.decides(), (Telemetry::default(), drain), None, None, limits).unwrap();
    Arc::new(Parts {
        gateway: Arc::new(gateway),
        tunnels: Tunnels::new().unwrap(),
        recent: Recent::new(1),
        intercepts: false,
    })
}

#[tokio::test]
async fn a_forced_stop_is_no_good_end_of_a_tunnels_question() {
    let api = Api::serve(|actor, _| async move { Ok(running(&actor, "127.0.0.1", false)) }).await;
    let (control, drain) = drain::channel();
    let parts = parts(&api, drain);
    let dialled = "192.0.2.1:80".parse().unwrap();
    let registered = parts.tunnels.open(Tunnel::new(ActorRef::parse(b"a/b").unwrap(), "u".into(), dialled));
    let (sender, mut told) = mpsc::channel(4);
    let living = tokio::spawn(live(parts, registered, pending(), sender));
    control.force();
    let status = told.recv().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    living.await.unwrap();
}
