//! A ClientHello: intercepted, passed through to an address, or refused by alert (rows E-08 and E-12).

use std::time::Instant;

use super::answer::{self, Noted};
use super::service::Parts;
use super::tunnels::Open;
use crate::egress::Refused;
use crate::egress::denial::Denial;
use crate::egress::plan::judge_name;
use crate::envoy_proto::ProcessingResponse;
use crate::extproc::recent::Decision;
use crate::policy::{Layer, RuleKind};

pub(super) async fn answer(parts: &Parts, open: &Open, name: Option<&[u8]>) -> ProcessingResponse {
    open.show();
    let began = Instant::now();
    let judged = judge(parts, open, name).await;
    let outcome = judged.as_ref().err().map_or("ok", |refused| refused.denial.reason());
    let shown = String::from_utf8_lossy(name.unwrap_or_default());
    let actor = Some(open.tunnel.actor.to_string());
    parts.recent.push(("TLS", &shown, ""), Decision { actor, outcome, worker: None, took: began.elapsed() });
    judged.unwrap_or_else(|refused| {
        let refused = refused.on(Layer::Tls);
        parts.gateway.denied(&open.tunnel, &refused);
        let chain = format!("alert-{}", refused.denial.alert());
        answer::chain(&chain, Noted::default().tunnel(&open.tunnel))
    })
}

async fn judge(parts: &Parts, open: &Open, name: Option<&[u8]>) -> Result<ProcessingResponse, Refused> {
    let gateway = &parts.gateway;
    let (host, rule, kind) = judge_name(gateway, &open.tunnel, name).await?;
    let noted = Noted::default().tunnel(&open.tunnel).rule(&host, rule);
    let refused = |denial| Refused::new(denial).of(&host).by(rule);
    let answer = if kind == RuleKind::TlsPassthrough {
        let address = open.address(&gateway.origins, &host).await.map_err(refused)?;
        answer::passes(address, noted)
    } else if parts.intercepts {
        answer::chain("tls", noted)
    } else {
        return Err(refused(Denial::InterceptionOff));
    };
    open.tunnel.used(Layer::Tls, &host, kind).map_err(refused)?;
    if kind == RuleKind::TlsPassthrough {
        gateway.telemetry.egress_decision("ok");
    }
    Ok(answer)
}
