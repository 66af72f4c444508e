//! Questions in datagrams.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::UdpSocket;
use tokio::sync::Semaphore;

use super::outcome::Outcome;
use super::question::{LONGEST, Question};
use super::relay::Step;
use super::{Service, answer};

/// Questions of one actor that wait for a resolver at a time.
const FORWARDED: usize = 512;

/// Serves until the drain begins.
pub(super) async fn serve(socket: UdpSocket, service: Service) {
    let _serving = service.drain.guard();
    let socket = Arc::new(socket);
    let forwarded = Arc::new(Semaphore::new(FORWARDED));
    let ended = service.drain.draining();
    tokio::pin!(ended);
    // One byte more than a question may have: a longer datagram shows as too long.
    let mut page = vec![0; LONGEST + 1];
    loop {
        let received = tokio::select! {
            biased;
            () = &mut ended => return,
            received = socket.recv_from(&mut page) => received,
        };
        let (length, client) = match received {
            Ok(received) => received,
            Err(error) => {
                // Mostly the echo of an answer that could not be delivered.
                tracing::debug!(%error, "a datagram failed");
                tokio::task::yield_now().await;
                continue;
            }
        };
        match service.relay.step(page.get(..length).unwrap_or_default()) {
            Step::Nothing(outcome) => service.count(outcome),
            Step::Answer(message, outcome) => {
                service.count(outcome);
                // Answers without a wait for a resolver are short.
                if let Some(bytes) = answer::written(&message, LONGEST) {
                    note(socket.send_to(&bytes, client).await);
                }
            }
            Step::Forward(question) => match forwarded.clone().try_acquire_owned() {
                Err(_) => service.count(Outcome::Limited),
                Ok(place) => {
                    let (service, socket) = (service.clone(), socket.clone());
                    tokio::spawn(async move {
                        forward(&service, &socket, client, &question).await;
                        drop(place);
                    });
                }
            },
        }
    }
}

async fn forward(service: &Service, socket: &UdpSocket, client: SocketAddr, question: &Question) {
    let _in_flight = service.drain.guard();
    let message = tokio::select! {
        () = service.drain.draining() => return,
        message = service.forwarded(question) => message,
    };
    if let Some(bytes) = answer::written(&message, question.asker.udp_limit()) {
        note(socket.send_to(&bytes, client).await);
    }
}

/// A client that is gone does not need its answer.
fn note(sent: io::Result<usize>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "an answer could not be sent");
    }
}
