//! What Envoy took neither for HTTP nor for TLS: shown to us, so that it is refused as on the native dataplane
//! (row E-07). Not a byte of it goes on.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout;
use tonic::Streaming;

use super::service::{Answers, Parts, answers};
use super::tunnels::Open;
use crate::egress::Refused;
use crate::egress::denial::Denial;
use crate::egress::first::{First, MAX_BYTES, began_as_tls, first};
use crate::egress::plan::judge_name;
use crate::envoy_network_proto::{Data, ProcessingRequest as Shown, ProcessingResponse as Told};
use crate::policy::Layer;

/// As Envoy's API calls them.
const CLOSE: i32 = 1;
const RESET: i32 = 2;

pub(super) fn answer(parts: &Arc<Parts>, open: Arc<Open>, shown: Shown, messages: Streaming<Shown>) -> Answers<Told> {
    let (sender, answers) = answers();
    let parts = parts.clone();
    open.show();
    tokio::spawn(async move {
        let Some(refused) = judge(&parts, &open, shown, messages).await else { return };
        parts.gateway.denied(&open.tunnel, &refused);
        for told in refusal(&refused) {
            // Envoy may have lost the connection meanwhile.
            let _sent = sender.send(Ok(told)).await;
        }
    });
    answers
}

/// Why it is refused; none: the actor ended it.
async fn judge(parts: &Parts, open: &Open, shown: Shown, mut messages: Streaming<Shown>) -> Option<Refused> {
    let mut data = shown.read_data?;
    let mut bytes = std::mem::take(&mut data.data);
    let read_on = async {
        loop {
            match first(&bytes) {
                First::Unclear if bytes.len() <= MAX_BYTES && !data.end_of_stream => {}
                clear => return Some(clear),
            }
            data = messages.message().await.ok()??.read_data?;
            bytes.extend_from_slice(&data.data);
        }
    };
    // Also what Envoy gave up waiting for.
    let left = parts.gateway.limits.sniff.saturating_sub(open.since.elapsed());
    let clear = match timeout(left, read_on).await {
        Ok(clear) => clear?,
        Err(_elapsed) => First::Unclear,
    };
    let denial = match clear {
        First::Tls(hello) => {
            // Envoy reads no ClientHello in it. What we would let pass, it cannot carry.
            let judged = judge_name(&parts.gateway, &open.tunnel, hello.server_name.as_deref()).await;
            return Some(judged.err().unwrap_or(Refused::new(Denial::BadHello)).on(Layer::Tls));
        }
        First::Malformed(_) => Denial::BadHello,
        First::Unclear if began_as_tls(&bytes) => Denial::BadHello,
        First::Unclear if !data.end_of_stream => Denial::Silent,
        // Also what Envoy and we read differently.
        _ => Denial::UnknownProtocol,
    };
    let refused = Refused::new(denial);
    Some(if denial == Denial::BadHello { refused.on(Layer::Tls) } else { refused })
}

/// TLS is refused by alert, anything else by a reset.
fn refusal(refused: &Refused) -> Vec<Told> {
    if refused.layer != Some(Layer::Tls) {
        return vec![Told { connection_status: RESET, ..Told::default() }];
    }
    let alert = Bytes::copy_from_slice(&crate::egress::inside::alert(refused.denial.alert()));
    let said = Data { data: alert.to_vec(), end_of_stream: false };
    vec![Told { write_data: Some(said), ..Told::default() }, Told { connection_status: CLOSE, ..Told::default() }]
}
