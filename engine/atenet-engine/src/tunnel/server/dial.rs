//! A connection to the actor's port, made inside the actor's network.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::Domain;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::activation::{Activation, Tunnel};
use super::decline::Decline;

/// How long a dial may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct DialLimits {
    pub(super) timeout: Duration,
    /// From the activation on: a workload that has just been restored may need a moment until it listens.
    pub(super) retry_window: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Dials the actor. Ends with [`Decline::Stale`] when the activation ends first; the late connection is closed.
pub(super) async fn dial(tunnel: &Tunnel, port: u16, limits: DialLimits) -> Result<TcpStream, Decline> {
    let activation = tunnel.activation();
    tokio::select! {
        biased;
        () = tunnel.closing() => Err(Decline::Stale),
        dialled = timeout(limits.timeout, connect(activation, port, limits.retry_window)) => {
            let result = dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            result.map_err(|error| declined(activation, port, &error))
        }
    }
}

fn declined(activation: &Activation, port: u16, error: &io::Error) -> Decline {
    let decline = match error.raw_os_error() {
        // EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL: this worker's lack, not the actor's.
        Some(24 | 23 | 105 | 12 | 99) => Decline::Exhausted,
        _ => Decline::ActorRefused,
    };
    tracing::debug!(actor = %activation.target.actor, port, %error, "dial failed");
    decline
}

async fn connect(activation: &Activation, port: u16, retry_window: Duration) -> io::Result<TcpStream> {
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match connect_once(activation, port).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if error.kind() != io::ErrorKind::ConnectionRefused || activation.age() + pause > retry_window {
            return Err(error);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn connect_once(activation: &Activation, port: u16) -> io::Result<TcpStream> {
    let address = SocketAddr::new(activation.target.address, port);
    let socket = activation.target.netns.tcp_socket_async(Domain::for_address(address)).await?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
