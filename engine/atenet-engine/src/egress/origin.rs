//! The way to an origin: one resolution, its addresses checked, one of them dialled, its certificate verified
//! (rows E-11, E-12 and E-21).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use atenet_net::interface_addresses;
use rustls::CertificateError;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::denial::{Denial, Distrust};
use super::floor::Floor;
use super::lookups::Lookups;
use super::names::Names;
use crate::config::{Decides, millis};
use crate::error::EngineError;
use crate::policy::Host;
use crate::tls::{ClientStream, ClientTls, PeerName, TlsError};

/// Where an actor wants to go.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    /// The actor's.
    pub(super) uid: &'a Arc<str>,
    pub(super) host: &'a Host,
    pub(super) port: u16,
}

pub(super) struct Origins {
    lookups: Lookups,
    floor: Floor,
    tls: ClientTls,
    connect: Duration,
    handshake: Duration,
}

impl Origins {
    /// Reads the roots now, so that a bad file is an error at start.
    pub(super) fn new(config: &Decides<'_>) -> Result<Self, EngineError> {
        let tls = ClientTls::new(None, config.origin_roots.clone(), &[b"h2", b"http/1.1"])
            .map_err(|source| EngineError::tls("egress origins", source))?;
        let own = interface_addresses().map_err(EngineError::Addresses)?;
        let floor = Floor::new(config.allow_cidrs.to_vec(), &own);
        let limits = config.limits;
        let lookups = Lookups::new(Names::new(config.name_servers)?);
        Ok(Self {
            lookups,
            floor,
            tls,
            connect: millis(limits.connect_ms),
            handshake: millis(limits.origin_handshake_ms),
        })
    }

    /// A TCP connection to the host on this port.
    pub(super) async fn dial(&self, target: Target<'_>) -> Result<TcpStream, Denial> {
        let host = target.host;
        // What was checked is what is dialled: no name is looked up again.
        for address in self.checked(target).await? {
            match timeout(self.connect, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // A socket that is already gone shows at the first write.
                    let _gone = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => tracing::debug!(%host, %address, %error, "no connection to an origin"),
                Err(_) => tracing::debug!(%host, %address, "no connection to an origin in time"),
            }
        }
        Err(Denial::Unreachable)
    }

    /// The host's addresses that may be dialled, at least one.
    pub(super) async fn checked(&self, target: Target<'_>) -> Result<Vec<SocketAddr>, Denial> {
        let found = self.resolve(target).await?;
        let good: Vec<_> = found.into_iter().filter(|address| self.floor.lets(address.ip())).collect();
        if good.is_empty() { Err(Denial::Address) } else { Ok(good) }
    }

    async fn resolve(&self, Target { uid, host, port }: Target<'_>) -> Result<Vec<SocketAddr>, Denial> {
        let name = match host {
            Host::Address(ip) => return Ok(vec![SocketAddr::new(*ip, port)]),
            Host::Name(name) => name,
        };
        let found = timeout(self.connect, self.lookups.resolve(uid, name)).await.unwrap_or(Err(Denial::Unresolved))?;
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// The same with TLS, verified for this host.
    pub(super) async fn dial_tls(&self, target: Target<'_>) -> Result<ClientStream<TcpStream>, Denial> {
        let stream = self.dial(target).await?;
        let host = target.host;
        let name = match host {
            Host::Name(name) => name.to_string(),
            Host::Address(ip) => ip.to_string(),
        };
        match timeout(self.handshake, self.tls.connect(stream, PeerName::Dns(name))).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                tracing::debug!(%host, %error, "no TLS handshake with an origin");
                Err(distrust(&error))
            }
            Err(_) => Err(Denial::Unreachable),
        }
    }
}

fn distrust(error: &TlsError) -> Denial {
    let TlsError::Handshake(error) = error else { return Denial::Untrusted(Distrust::Other) };
    let Some(inner) = error.get_ref() else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Denial::Broken,
            _ => Denial::Untrusted(Distrust::Other),
        };
    };
    let Some(rustls::Error::InvalidCertificate(problem)) = inner.downcast_ref::<rustls::Error>() else {
        return Denial::Untrusted(Distrust::Other);
    };
    Denial::Untrusted(match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Distrust::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Distrust::NotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Distrust::WrongName,
        CertificateError::UnknownIssuer => Distrust::UnknownIssuer,
        _ => Distrust::Other,
    })
}
