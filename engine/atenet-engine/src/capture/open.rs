//! The sockets of one activation, made in its gateway namespace.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use atenet_net::NetNs;
use socket2::{Domain, Socket};
use tokio::net::{TcpListener, UdpSocket};

use super::activation::Activation;
use super::{CaptureError, Shared, listen};
use crate::config::CaptureConfig;
use crate::dns;

const BACKLOG: i32 = 1024;
/// Hundreds of questions may come in one burst.
const DATAGRAM_BUFFER: usize = 1 << 20;

pub(super) struct Sockets {
    /// None where there is no gateway: the kernel then refuses what is redirected here.
    capture: Option<TcpListener>,
    questions: UdpSocket,
    conversations: TcpListener,
}

impl Sockets {
    /// Needs a runtime around it.
    pub(super) fn bind(netns: &Path, config: &CaptureConfig, capturing: bool) -> Result<Self, CaptureError> {
        let place = NetNs::open(netns).map_err(|source| CaptureError::Netns { path: netns.to_owned(), source })?;
        let failed = |what| move |source| CaptureError::Listen { what, path: netns.to_owned(), source };
        let capture = SocketAddr::new(config.address.into(), config.capture_port);
        let relay = SocketAddr::new(config.address.into(), config.dns_port);
        let capture = capturing.then(|| tcp(&place, capture)).transpose().map_err(failed("the capture port"))?;
        Ok(Self {
            capture,
            questions: udp(&place, relay).map_err(failed("the relay's UDP port"))?,
            conversations: tcp(&place, relay).map_err(failed("the relay's TCP port"))?,
        })
    }

    pub(super) fn serve(self, shared: &Arc<Shared>, activation: &Arc<Activation>) {
        if let Some(capture) = self.capture {
            tokio::spawn(listen::accept(capture, shared.clone(), activation.clone()));
        }
        let Self { questions, conversations, .. } = self;
        let upstream = &shared.upstream;
        dns::serve(questions, conversations, &activation.relay, upstream, &shared.metrics.dns, activation.drain());
    }
}

fn bound(socket: OwnedFd, address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::from(socket);
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn tcp(place: &NetNs, address: SocketAddr) -> io::Result<TcpListener> {
    let socket = bound(place.tcp_socket(Domain::IPV4)?, address)?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn udp(place: &NetNs, address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = bound(place.udp_socket(Domain::IPV4)?, address)?;
    atenet_net::grow_receive_buffer(&socket, DATAGRAM_BUFFER)?;
    UdpSocket::from_std(socket.into())
}
