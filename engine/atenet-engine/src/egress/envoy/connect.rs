//! A worker's CONNECT: admitted or not; then the tunnel's life, which ends with Envoy's question or by our word
//! (rows E-04, E-05, E-07 and E-24).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until};
use tonic::{Status, Streaming};

use super::answer::{self, Noted};
use super::question::Asking;
use super::service::{Answers, Parts, answers, once};
use super::tunnels::Registered;
use crate::egress::Refused;
use crate::egress::admit::{admit, caller, connect_target};
use crate::egress::denial::Denial;
use crate::egress::tunnel::Tunnel;
use crate::envoy_proto::{ProcessingRequest, ProcessingResponse};
use crate::extproc::recent::Decision;

/// Envoy's own limit comes first, and shows us what little has come.
const BEHIND_ENVOY: Duration = Duration::from_secs(1);

type Questions = Streaming<ProcessingRequest>;
type Sender = mpsc::Sender<Result<ProcessingResponse, Status>>;

pub(super) async fn answer(parts: &Arc<Parts>, asking: Asking, messages: Questions) -> Answers<ProcessingResponse> {
    let began = Instant::now();
    let admitted = open(parts, asking).await;
    let (actor, outcome) = match &admitted {
        Ok(tunnel) => (Some(tunnel.actor.to_string()), "ok"),
        Err(denial) => (None, denial.reason()),
    };
    parts.recent.push(("CONNECT", "", ""), Decision { actor, outcome, worker: None, took: began.elapsed() });
    let tunnel = match admitted {
        Ok(tunnel) => tunnel,
        Err(denial) => {
            parts.gateway.telemetry.egress_decision(denial.reason());
            return once(answer::refused(denial, false, Noted::default()));
        }
    };
    let registered = parts.tunnels.open(tunnel);
    let (sender, answers) = answers();
    // The queue is empty: there is room.
    let _sent = sender.try_send(Ok(answer::opened(&registered.open)));
    tokio::spawn(live(parts.clone(), registered, over(messages), sender));
    answers
}

async fn open(parts: &Parts, asking: Asking) -> Result<Tunnel, Denial> {
    let gateway = &parts.gateway;
    let certificate = asking.certificate();
    let head = asking.connect();
    // Whatever else the CONNECT's fields claim plays no part.
    let caller = caller(certificate.as_ref())?;
    let dialled = connect_target(&head).inspect_err(|denial| gateway.unopened(&caller.actor, None, *denial))?;
    let port = Some(dialled.port());
    let admitted = admit(&gateway.control, &caller).await;
    let uid = admitted.inspect_err(|denial| gateway.unopened(&caller.actor, port, *denial))?;
    Ok(Tunnel::new(caller.actor, uid, dialled))
}

/// Envoy waits for a word about trailers that a CONNECT never has. An error in its stead ends the tunnel.
async fn live(parts: Arc<Parts>, registered: Registered, over: impl Future<Output = ()>, sender: Sender) {
    let gateway = &parts.gateway;
    let _open = gateway.telemetry.egress_tunnel();
    let status = tokio::select! {
        () = over => return,
        () = sender.closed() => return,
        // A question that ends well would let the tunnel live on with nobody to look after it.
        () = gateway.drain.forced() => Status::unavailable("stopping"),
        ended = ended_by_us(&parts, &registered) => {
            gateway.denied(&registered.open.tunnel, &ended);
            Status::aborted(ended.denial.reason())
        }
    };
    // Envoy may have gone by itself meanwhile.
    let _told = sender.send(Err(status)).await;
}

async fn over(mut messages: Questions) {
    while let Ok(Some(_)) = messages.message().await {}
}

/// Silent past the limit, or withdrawn.
async fn ended_by_us(parts: &Parts, registered: &Registered) -> Refused {
    let limits = &parts.gateway.limits;
    let open = &registered.open;
    let silent_at = tokio::time::Instant::now() + limits.sniff + BEHIND_ENVOY;
    let silence = async {
        sleep_until(silent_at).await;
        if open.has_shown() {
            std::future::pending::<()>().await;
        }
    };
    let withdrawal = async {
        loop {
            sleep(limits.recheck).await;
            if let Some(host) = open.tunnel.withdrawn(&parts.gateway).await {
                return host;
            }
        }
    };
    tokio::select! {
        () = silence => Refused::new(Denial::Silent),
        host = withdrawal => Refused::new(Denial::Withdrawn).of(&host),
    }
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
