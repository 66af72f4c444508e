//! What an actor dialled: where to, whether it may, and its bytes both ways.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::activation::Activation;
use super::gateway::Tunnel;
use super::refusal::Refusal;
use super::{Shared, log};
use crate::pipe::{Ending, Idle, IoSink, IoSource, Relayed, Reset, Socket, relay, split};

/// After a failed accept; it is mostly a lack of descriptors, which only time helps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A connection that says nothing is the gateway's to end, which knows what it is used for.
const SILENCE: Duration = Duration::from_secs(30 * 24 * 3600);
/// A gateway whose machine vanished is noticed within a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// Accepts until the activation ends.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, activation: Arc<Activation>) {
    let drain = activation.drain().clone();
    let _listening = drain.guard();
    let own = listener.local_addr().ok();
    let ended = drain.draining();
    tokio::pin!(ended);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut ended => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(actor = %activation.actor, %error, "cannot accept an actor's connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let destination = atenet_net::original_destination(&stream).ok();
        let destination = destination.filter(|found| Some((*found).into()) != own && leads_out(*found));
        let (Some(destination), Some(place)) = (destination, activation.place()) else {
            let refusal = if destination.is_none() { Refusal::Destination } else { Refusal::TooMany };
            refuse(&shared, &activation, stream, destination, &refusal);
            continue;
        };
        let guard = drain.guard();
        let (shared, activation) = (shared.clone(), activation.clone());
        tokio::spawn(async move {
            serve(&shared, &activation, stream, destination, place).await;
            drop(guard);
        });
    }
}

/// Whether anything outside has this address. The rules of the namespace refuse the others before they get here.
fn leads_out(destination: SocketAddrV4) -> bool {
    let address = *destination.ip();
    let nowhere = address.octets()[0] == 0
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address >= Ipv4Addr::new(240, 0, 0, 0);
    !nowhere && destination.port() != 0
}

async fn serve(
    shared: &Shared,
    activation: &Activation,
    stream: TcpStream,
    destination: SocketAddrV4,
    place: OwnedSemaphorePermit,
) {
    let ended = activation.drain().draining();
    tokio::pin!(ended);
    let opened = tokio::select! {
        biased;
        () = &mut ended => Err(Refusal::Ended),
        opened = open(shared, activation, destination) => opened,
    };
    let Tunnel { mut from, mut to, beneath: beneath_gateway } = match opened {
        Ok(tunnel) => tunnel,
        Err(refusal) => return refuse(shared, activation, stream, Some(destination), &refusal),
    };
    tune(&stream);
    let record = Open::new(shared, activation, destination);
    let (read, write) = split(stream);
    let beneath = write.handle();
    let (mut from_actor, mut to_actor) = (IoSource::new(read), IoSink::new(write));
    let idle = Idle::new(SILENCE);
    let relayed = tokio::select! {
        biased;
        () = &mut ended => {
            beneath.reset_on_close();
            beneath_gateway.reset_on_close();
            None
        }
        relayed = relay((&mut from_actor, &mut to_actor), (&mut from, &mut to), &idle) => Some(relayed),
    };
    record.closed(relayed);
    drop(place);
}

const fn name(ending: Ending) -> &'static str {
    match ending {
        Ending::Clean => "finished",
        Ending::ClientBroke => "actor_reset",
        Ending::ActorBroke => "gateway_reset",
        Ending::Idle => "idle",
    }
}

async fn open(shared: &Shared, activation: &Activation, destination: SocketAddrV4) -> Result<Tunnel, Refusal> {
    let credential = activation.credential_now()?;
    let (Some(gateway), Some(address)) = (&shared.gateway, &activation.gateway) else {
        return Err(Refusal::NoCredential);
    };
    gateway.open(address, &credential.certificate, destination).await
}

fn refuse(
    shared: &Shared,
    activation: &Activation,
    mut stream: TcpStream,
    destination: Option<SocketAddrV4>,
    refusal: &Refusal,
) {
    // Counted before the actor can have seen it.
    activation.counts.refused(refusal);
    shared.metrics.refused(refusal.name());
    log::refused(activation, destination, refusal);
    stream.reset_on_close();
}

/// Without delay, and with probes, so that an end nobody said is noticed.
pub(super) fn tune(stream: &TcpStream) {
    let keepalive =
        TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_PROBES);
    let tuned = stream.set_nodelay(true).and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keepalive));
    if let Err(error) = tuned {
        // A socket that is already gone shows at the first read.
        tracing::debug!(%error, "cannot tune a connection");
    }
}

/// A running connection's numbers and its line still to come.
struct Open<'a> {
    shared: &'a Shared,
    activation: &'a Activation,
    destination: SocketAddrV4,
    since: Instant,
}

impl<'a> Open<'a> {
    fn new(shared: &'a Shared, activation: &'a Activation, destination: SocketAddrV4) -> Self {
        activation.counts.opened.fetch_add(1, Ordering::Relaxed);
        activation.counts.open.fetch_add(1, Ordering::Relaxed);
        shared.metrics.opened();
        log::opened(activation, destination);
        Self { shared, activation, destination, since: Instant::now() }
    }

    /// `relayed`: none when the activation ended first; what was carried until then is not known.
    fn closed(self, relayed: Option<Relayed>) {
        let (sent, received) = relayed.map_or((0, 0), |relayed| (relayed.bytes_in, relayed.bytes_out));
        self.activation.counts.sent.fetch_add(sent, Ordering::Relaxed);
        self.activation.counts.received.fetch_add(received, Ordering::Relaxed);
        self.shared.metrics.carried(sent, received);
        let ending = relayed.map_or("deactivated", |relayed| name(relayed.ending));
        log::closed(self.activation, self.destination, self.since.elapsed(), (sent, received), ending);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.activation.counts.open.fetch_sub(1, Ordering::Relaxed);
        self.shared.metrics.closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_something_outside_may_have_lead_out() {
        let out = |text: &str| leads_out(text.parse().unwrap());
        assert!(out("203.0.113.9:443") && out("10.0.0.1:1") && out("198.18.0.1:65535"));
        for text in [
            "0.0.0.0:1",
            "0.1.2.3:1",
            "127.0.0.1:80",
            "169.254.169.254:80",
            "224.0.0.1:1",
            "255.255.255.255:1",
            "203.0.113.9:0",
        ] {
            assert!(!out(text), "{text}");
        }
    }
}
