//! gRPC: a request that must stay HTTP/2 to the actor (row I-08).

use http::uri::Scheme;
use tokio::time::Instant;

use super::carry::{Ended, Record, Scratch, unserved};
use super::gateway::{Front, Http2, Reached};
use super::route::Plan;
use crate::exchange::actor_http2::{Recv, Send, request};
use crate::exchange::party::{ActorError, RequestBody, Responder, gone};
use crate::exchange::pump::{End, Pump};
use crate::http1::RequestHead;
use crate::refusal::Refusal;
use crate::tunnel::client::ActorH2;

/// Requests tried on open connections that turned out dead, before any byte was sent.
const REPEATS: u32 = 2;

/// One call. An actor that does not speak HTTP/2 is never spoken to in anything less.
pub(super) async fn attempt<B: RequestBody, R: Responder>(
    front: &Front,
    plan: &Plan,
    head: &RequestHead,
    client: (&mut B, &mut R),
    scratch: &mut Scratch,
    record: &mut Record,
) -> Ended {
    let (body, responder) = client;
    let bodiless = !plan.framing.has_body();
    for _ in 0..=REPEATS {
        let Some(request) = request(head, Scheme::HTTP) else { return Ended::Refused(Refusal::BadRequest) };
        let conn = tokio::select! {
            biased;
            conn = connection(front, plan, record) => conn,
            () = gone(body, responder) => return Ended::Gone,
        };
        let mut conn = match conn {
            Ok(conn) => conn,
            Err(refusal) => return Ended::Refused(refusal),
        };
        let sent = tokio::select! {
            biased;
            sent = conn.request(request, bodiless) => sent,
            () = gone(body, responder) => return Ended::Gone,
        };
        // Nothing was sent: the connection had ended since it was offered.
        let Ok((response, sink)) = sent else { continue };
        let actor = (Send::new(sink, bodiless), Recv::new(response, conn.heard()));
        let mut pump = Pump::new((body, responder), actor, &head.method, &mut scratch.response, &scratch.idle);
        let end = pump.run().await;
        record.tally = std::mem::take(&mut pump.tally);
        return conclude(front, record, end);
    }
    Ended::Refused(Refusal::ActorConnectFailed)
}

async fn connection(front: &Front, plan: &Plan, record: &mut Record) -> Result<ActorH2, Refusal> {
    let reached = front.gateway.reach_http2(plan, &mut record.resolved).await;
    record.routed.get_or_insert_with(Instant::now);
    let Reached { to, resolved } = reached?;
    match to {
        Http2::Open(conn) => Ok(conn),
        Http2::Fresh(tunnel) => {
            let begun = ActorH2::begin(tunnel, resolved.assignment.clone(), plan.port).await;
            let conn = begun.map_err(|_| Refusal::ActorConnectFailed)?;
            front.gateway.tunnels.share(conn.clone());
            Ok(conn)
        }
    }
}

fn conclude(front: &Front, record: &Record, end: End) -> Ended {
    match end {
        End::Failed(ActorError::Protocol) => Ended::Refused(Refusal::ProtocolUnsupported),
        End::Failed(ActorError::Broken { .. }) => {
            if let (Some(resolved), Some(actor)) = (&record.resolved, &record.actor) {
                front.gateway.routes.forget(actor, resolved.generation);
            }
            unserved(end)
        }
        other => unserved(other),
    }
}
