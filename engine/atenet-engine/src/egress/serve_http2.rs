//! An actor's HTTP/2 connection: each stream a request of its own.

use std::sync::Arc;

use http::Method;
use tokio::io::{AsyncRead, AsyncWrite};

use super::carry::{Leg, Scratch, carry};
use super::denial::Denial;
use crate::exchange::client_http2::{Body, Respond};
use crate::exchange::http2_conn::{self, Stream};
use crate::exchange::request_http2::{Ask, read};
use crate::http1::{MAX_FIELDS, RequestHead};

/// Serves a connection to its end.
pub(super) async fn serve<T: AsyncRead + AsyncWrite + Unpin + Send>(leg: Arc<Leg>, io: T) {
    let (limits, drain) = (leg.gateway.limits.http2(), leg.gateway.drain.clone());
    // Extended CONNECT is not offered: no upgrade leaves an actor.
    http2_conn::serve(limits, &drain, io, false, |stream, counted| {
        let (leg, guard) = (leg.clone(), leg.gateway.drain.guard());
        tokio::spawn(async move {
            tokio::select! {
                () = request(&leg, stream) => {}
                () = leg.gateway.drain.forced() => {}
            }
            drop((counted, guard));
        });
    })
    .await;
}

async fn request(leg: &Leg, (request, respond): Stream) {
    let (parts, stream) = request.into_parts();
    let mut head = RequestHead::default();
    let judged = match read(&parts, stream.is_end_stream(), MAX_FIELDS, &mut head) {
        Ok(Ask::Request(framing)) => Ok(framing),
        Ok(Ask::WebSocket) => Err(Denial::Upgrade),
        Ok(Ask::Connect { .. }) => Err(Denial::NestedConnect),
        Err(_) if parts.method == Method::CONNECT => Err(Denial::NestedConnect),
        Err(error) => Err(error.into()),
    };
    drop(parts);
    let (mut body, mut respond) = (Body::new(stream), Respond::new(respond));
    let mut scratch = Scratch::new(leg);
    carry(leg, &mut head, judged, (&mut body, &mut respond), &mut scratch).await;
}
