//! The native router: listeners to tunnels.

mod carry;
mod connect;
#[cfg(test)]
mod connect_tests;
mod gateway;
mod grpc;
#[cfg(test)]
mod http1_tests;
#[cfg(test)]
mod http2_tests;
mod listen;
mod retry;
mod route;
mod serve_http1;
mod serve_http2;
#[cfg(test)]
mod testing;
mod tunnelled;
mod websocket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use self::gateway::{Front, Gateway, Limits, Routes};
use self::listen::Listener;
pub(crate) use self::listen::bind;
use self::route::Scope;
use crate::config::{ConfigError, ListenerConfig, Protocol, RouterConfig};
use crate::drain::Drain;
use crate::error::EngineError;
use crate::resolve::Resolver;
use crate::telemetry::Telemetry;
use crate::tls::{ClientAuth, ServerTls};
use crate::tunnel::client::TunnelClient;

/// The running listeners.
pub struct Ingress {
    addresses: BTreeMap<String, Vec<SocketAddr>>,
}

impl Ingress {
    /// Binds every listener, then serves until `drain` says otherwise. Must run inside a tokio runtime.
    pub fn start(
        config: &RouterConfig,
        resolver: Resolver,
        telemetry: Telemetry,
        drain: Drain,
    ) -> Result<Self, EngineError> {
        Self::start_with(config, Routes::Resolver(resolver), telemetry, drain)
    }

    fn start_with(
        config: &RouterConfig,
        routes: Routes,
        telemetry: Telemetry,
        drain: Drain,
    ) -> Result<Self, EngineError> {
        let worker = config.worker.as_ref().ok_or_else(|| ConfigError::new("worker", "is required for listeners"))?;
        let tunnels = TunnelClient::new(worker, &config.timeouts, telemetry.clone())
            .map_err(|source| EngineError::tls("worker credentials", source))?;
        tokio::spawn(end_idle_in_drain(tunnels.clone(), drain.clone()));
        let limits = Limits::new(config);
        let gateway = Arc::new(Gateway { routes, tunnels, telemetry, drain, limits });
        let connections = Arc::new(Semaphore::new(config.limits.connections));
        let mut listeners = Vec::new();
        let mut addresses = BTreeMap::new();
        for listener in &config.listeners {
            let (bound, listener) = open(listener, &gateway, &connections)?;
            addresses.insert(listener.front.listener.to_string(), vec![bound]);
            listeners.push(listener);
        }
        // Only when all are bound does any accept.
        for listener in listeners {
            tokio::spawn(listener.run());
        }
        Ok(Self { addresses })
    }

    /// The bound addresses by the listener's name.
    #[must_use]
    pub fn addresses(&self) -> BTreeMap<String, Vec<SocketAddr>> {
        self.addresses.clone()
    }
}

/// From the drain on no exchange begins, so that what lies idle has no use any more.
async fn end_idle_in_drain(tunnels: TunnelClient, drain: Drain) {
    drain.draining().await;
    tunnels.end_idle();
}

fn open(
    config: &ListenerConfig,
    gateway: &Arc<Gateway>,
    connections: &Arc<Semaphore>,
) -> Result<(SocketAddr, Listener), EngineError> {
    let alpn: &[&[u8]] = &[b"h2", b"http/1.1"];
    let tls = match (&config.protocol, &config.tls) {
        (Protocol::Https, Some(files)) => Some(
            ServerTls::new(files.clone(), ClientAuth::None, alpn)
                .map_err(|source| EngineError::tls(format!("listener {}", config.name), source))?,
        ),
        _ => None,
    };
    let failed = |source| EngineError::Listen { name: config.name.clone(), address: config.address, source };
    let socket = listen::bind(config.address).map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    let front = Front { gateway: gateway.clone(), listener: config.name.as_str().into(), scope: Scope::Direct };
    Ok((bound, Listener { socket, tls, mode: config.mode, front, connections: connections.clone() }))
}
