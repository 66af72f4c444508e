//! What comes out of a tunnel: first bytes, then HTTP request by request, or TLS by its ClientHello (rows E-07, E-08).

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout;

use super::carry::Leg;
use super::denial::Denial;
use super::first::{First, MAX_BYTES, began_as_tls, first};
use super::hello::{Hello, HelloError};
use super::plan::judge_name;
use super::tunnel::Tunnel;
use super::{Gateway, Refused, serve_http1, serve_http2};
use crate::http1::Reader;
use crate::pipe::{Duplex, Idle, IoSink, IoSource, Outbox, Sink, Source, relay, split};
use crate::policy::{Host, Layer, RuleKind};

/// A fatal alert of TLS 1.2, which every version reads before the handshake.
pub(super) const fn alert(description: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, description]
}

/// Serves the inside of one tunnel to its end.
pub(super) async fn serve<S, K>(gateway: &Arc<Gateway>, tunnel: &Arc<Tunnel>, mut reader: Reader<S>, mut sink: K)
where
    S: Source + Unpin + 'static,
    K: Sink + Unpin + 'static,
{
    let shown = match timeout(gateway.limits.sniff, show(&mut reader)).await {
        Ok(Some(shown)) => shown,
        Ok(None) => return,
        Err(_) if began_as_tls(reader.buffered()) => First::Malformed(HelloError::Malformed),
        Err(_) => First::Unclear,
    };
    let leg = |layer| Leg { gateway: gateway.clone(), tunnel: tunnel.clone(), layer };
    match shown {
        First::Http1 => serve_http1::serve(&leg(Layer::Http), reader, sink).await,
        First::Http2 => {
            let (source, chunk) = reader.into_parts();
            serve_http2::serve(Arc::new(leg(Layer::Http)), Duplex::with_chunk(source, sink, chunk)).await;
        }
        First::Tls(hello) => tls(gateway, tunnel, reader, sink, hello).await,
        First::Malformed(_) => refuse_tls(gateway, tunnel, sink, Refused::new(Denial::BadHello)).await,
        First::Other | First::Unclear => {
            let denial = if shown == First::Other { Denial::UnknownProtocol } else { Denial::Silent };
            gateway.denied(tunnel, &Refused::new(denial));
            sink.reset();
        }
    }
}

/// What the first bytes are; none when the actor ended without a word.
async fn show<S: Source>(reader: &mut Reader<S>) -> Option<First> {
    loop {
        match first(reader.buffered()) {
            First::Unclear if reader.buffered().len() > MAX_BYTES => return Some(First::Other),
            First::Unclear => {}
            clear => return Some(clear),
        }
        if !poll_fn(|cx| reader.poll_fill(cx)).await.ok()? {
            return (!reader.buffered().is_empty()).then_some(First::Other);
        }
    }
}

async fn tls<S, K>(gateway: &Arc<Gateway>, tunnel: &Arc<Tunnel>, reader: Reader<S>, sink: K, hello: Hello)
where
    S: Source + Unpin + 'static,
    K: Sink + Unpin + 'static,
{
    match judge_name(gateway, tunnel, hello.server_name.as_deref()).await {
        Err(refused) => refuse_tls(gateway, tunnel, sink, refused).await,
        Ok((host, rule, RuleKind::TlsPassthrough)) => {
            let _used = tunnel.uses(Layer::Tls, &host, RuleKind::TlsPassthrough);
            pass_through(gateway, tunnel, (reader, sink), (host, rule)).await;
        }
        Ok((host, rule, _)) => {
            let _used = tunnel.uses(Layer::Tls, &host, RuleKind::Https);
            intercept(gateway, tunnel, (reader, sink), (host, rule)).await;
        }
    }
}

/// TLS is refused in its own words: an alert, then the end.
async fn refuse_tls<K: Sink>(gateway: &Gateway, tunnel: &Tunnel, mut sink: K, refused: Refused) {
    let denial = refused.denial;
    gateway.denied(tunnel, &refused.on(Layer::Tls));
    let mut out = Outbox::default();
    out.push(Bytes::copy_from_slice(&alert(denial.alert())));
    let told = async {
        poll_fn(|cx| sink.poll_send(cx, &mut out)).await?;
        poll_fn(|cx| sink.poll_end(cx)).await
    };
    // An actor that does not listen is not waited for.
    let _told = timeout(gateway.limits.header, told).await;
}

async fn pass_through<S: Source, K: Sink>(
    gateway: &Gateway,
    tunnel: &Tunnel,
    (mut reader, mut sink): (Reader<S>, K),
    (host, rule): (Host, usize),
) {
    let stream = match gateway.origins.dial(tunnel.target(&host)).await {
        Ok(stream) => stream,
        Err(denial) => return refuse_tls(gateway, tunnel, sink, Refused::new(denial).of(&host).by(rule)).await,
    };
    gateway.telemetry.egress_decision("ok");
    let (read, write) = split(stream);
    let (mut source, mut to_origin) = (IoSource::new(read), IoSink::new(write));
    let idle = Idle::new(gateway.limits.stream_idle);
    relay((&mut reader, &mut sink), (&mut source, &mut to_origin), &idle).await;
}

async fn intercept<S, K>(
    gateway: &Arc<Gateway>,
    tunnel: &Arc<Tunnel>,
    (reader, sink): (Reader<S>, K),
    (host, rule): (Host, usize),
) where
    S: Source + Unpin + 'static,
    K: Sink + Unpin + 'static,
{
    let Some(interception) = &gateway.interception else {
        return refuse_tls(gateway, tunnel, sink, Refused::new(Denial::InterceptionOff).of(&host).by(rule)).await;
    };
    let acceptor = match interception.acceptor(&host.to_string()) {
        Ok(acceptor) => acceptor,
        Err(error) => {
            tracing::error!(%host, %error, "cannot mint a leaf");
            return refuse_tls(gateway, tunnel, sink, Refused::new(Denial::InterceptionOff).of(&host).by(rule)).await;
        }
    };
    let (source, chunk) = reader.into_parts();
    let accepted = acceptor.accept(Duplex::with_chunk(source, sink, chunk));
    let stream = match timeout(gateway.limits.tls_handshake, accepted).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            return tracing::info!(actor = %tunnel.actor, %host, %error, "an actor's TLS handshake failed: does it trust the interception authority?");
        }
        Err(_) => return tracing::debug!(actor = %tunnel.actor, %host, "no TLS handshake in time"),
    };
    let leg = Leg { gateway: gateway.clone(), tunnel: tunnel.clone(), layer: Layer::Tls };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        return serve_http2::serve(Arc::new(leg), stream).await;
    }
    let (read, write) = split(stream);
    serve_http1::serve(&leg, Reader::new(IoSource::new(read)), IoSink::new(write)).await;
}
