//! A request inside a tunnel, cleartext or intercepted: judged, given its credentials, told where to go.

use std::sync::Arc;
use std::time::Instant;

use tonic::Streaming;

use super::answer::{self, Noted};
use super::question::Asking;
use super::service::{Answers, Parts, answers, once};
use super::tunnels::Open;
use crate::egress::Refused;
use crate::egress::carry::Leg;
use crate::egress::plan::{Plan, prepare};
use crate::envoy_proto::{ProcessingRequest, ProcessingResponse};
use crate::exchange::headers;
use crate::extproc::recent::Decision;
use crate::http1::Kind;
use crate::policy::{Effect, Layer};

pub(super) async fn answer(
    parts: &Parts,
    open: &Open,
    layer: Layer,
    mut asking: Asking,
    messages: Streaming<ProcessingRequest>,
) -> Answers<ProcessingResponse> {
    open.show();
    let (began, grpc) = (Instant::now(), headers::is_grpc(&asking.head.fields));
    let leg = Leg { gateway: parts.gateway.clone(), tunnel: open.tunnel.clone(), layer };
    let asked = (asking.head.method.to_string(), text(asking.head.fields.get(Kind::Host)), text(Some(asking.path())));
    let judged = judge(&leg, open, &mut asking).await;
    let outcome = judged.as_ref().err().map_or("ok", |refused| refused.denial.reason());
    let actor = Some(open.tunnel.actor.to_string());
    let decision = Decision { actor, outcome, worker: None, took: began.elapsed() };
    parts.recent.push((&asked.0, &asked.1, &asked.2), decision);
    match judged {
        Ok((answer, effects)) => {
            parts.gateway.telemetry.egress_decision("ok");
            if answer.mode_override.is_some() { with_trailers(answer, effects, messages) } else { once(answer) }
        }
        Err(refused) => {
            let denial = refused.denial;
            leg.note(refused);
            once(answer::refused(denial, grpc, Noted::default().tunnel(&open.tunnel)))
        }
    }
}

type Judged = (ProcessingResponse, Arc<[Effect]>);

async fn judge(leg: &Leg, open: &Open, asking: &mut Asking) -> Result<Judged, Refused> {
    let before = asking.head.fields.clone();
    let plan: Plan = prepare(leg, &mut asking.head, asking.framing).await?;
    let refused = |denial| Refused::new(denial).of(&plan.host).by(plan.rule);
    let address = open.address(&leg.gateway.origins, &plan.host).await.map_err(refused)?;
    open.tunnel.used(leg.layer, &plan.host, plan.kind).map_err(refused)?;
    let noted = Noted::default().tunnel(&open.tunnel).rule(&plan.host, plan.rule);
    let answer = answer::carried(&plan, address, (&before, &asking.head.fields), noted);
    Ok((answer, plan.effects))
}

/// The request's trailers, if it has any, are still to be looked at.
fn with_trailers(
    answer: ProcessingResponse,
    effects: Arc<[Effect]>,
    mut messages: Streaming<ProcessingRequest>,
) -> Answers<ProcessingResponse> {
    let (sender, answers) = answers();
    // The queue is empty: there is room.
    let _sent = sender.try_send(Ok(answer));
    tokio::spawn(async move {
        if let Ok(Some(message)) = messages.message().await
            && message.request_trailers.is_some()
        {
            // Envoy may have given the request up.
            let _sent = sender.send(Ok(answer::trailers(&effects))).await;
        }
    });
    answers
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}
