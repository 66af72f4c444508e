//! What every connection shares: the resolver, the tunnels, limits and telemetry; and the way from a
//! plan to a connection to its actor.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::retry::{Attempts, Next};
use super::route::{Plan, Scope, is_idempotent};
use crate::actor_ref::ActorRef;
use crate::assignment::Resolved;
use crate::config::RouterConfig;
use crate::drain::Drain;
use crate::exchange::http2_conn;
use crate::refusal::Refusal;
use crate::resolve::Resolver;
use crate::telemetry::Telemetry;
use crate::trace::Trace;
use crate::tunnel::client::{ActorConn, ActorH2, OpenError, Tunnel, TunnelClient};

/// One per router.
pub(super) struct Gateway {
    pub(super) routes: Routes,
    pub(super) tunnels: TunnelClient,
    pub(super) telemetry: Telemetry,
    pub(super) drain: Drain,
    pub(super) limits: Limits,
}

#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) head_bytes: usize,
    /// Fields in a request's head.
    pub(super) headers: usize,
    pub(super) streams: u32,
    pub(super) tls_handshake: Duration,
    pub(super) header: Duration,
    pub(super) client_idle: Duration,
    pub(super) stream_idle: Duration,
}

impl Limits {
    /// What an HTTP/2 client's connection may take.
    pub(super) const fn http2(&self) -> http2_conn::Limits {
        http2_conn::Limits {
            head_bytes: self.head_bytes,
            streams: self.streams,
            header: self.header,
            idle: self.client_idle,
        }
    }

    pub(super) fn new(config: &RouterConfig) -> Self {
        let ms = Duration::from_millis;
        Self {
            head_bytes: config.limits.head_bytes,
            headers: config.limits.headers,
            streams: config.limits.streams,
            tls_handshake: ms(config.timeouts.tls_handshake_ms),
            header: ms(config.timeouts.header_ms),
            client_idle: ms(config.timeouts.client_idle_ms),
            stream_idle: ms(config.timeouts.stream_idle_ms),
        }
    }
}

/// The resolver; in tests, a script.
#[derive(Clone)]
pub(super) enum Routes {
    Resolver(Resolver),
    #[cfg(test)]
    Script(Arc<super::testing::Script>),
}

impl Routes {
    async fn resolve(&self, actor: &ActorRef, trace: &Trace) -> Result<Resolved, Refusal> {
        match self {
            Self::Resolver(resolver) => resolver.resolve_in(actor, trace).await,
            #[cfg(test)]
            Self::Script(script) => script.resolve(actor).await,
        }
    }

    pub(super) fn forget(&self, actor: &ActorRef, generation: u64) {
        match self {
            Self::Resolver(resolver) => resolver.forget(actor, generation),
            #[cfg(test)]
            Self::Script(script) => script.forget(generation),
        }
    }
}

/// One listener's, or one CONNECT's, view of the gateway.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) gateway: Arc<Gateway>,
    pub(super) listener: Arc<str>,
    pub(super) scope: Scope,
}

/// What a plan is carried on, and how it was found.
pub(super) struct Reached<T> {
    pub(super) to: T,
    pub(super) resolved: Resolved,
}

/// Where an HTTP/2 request to an actor goes.
pub(super) enum Http2 {
    Open(ActorH2),
    Fresh(Tunnel),
}

impl Gateway {
    /// A connection that speaks HTTP/1.1: an idle one of this activation, else a fresh tunnel.
    /// `fresh`: an idle one has just failed.
    pub(super) async fn reach_http1(
        &self,
        plan: &Plan,
        method: &http::Method,
        fresh: bool,
        noted: &mut Option<Resolved>,
    ) -> Result<Reached<Box<ActorConn>>, Refusal> {
        let idempotent = is_idempotent(method);
        let idle = |resolved: &Resolved| {
            if fresh { None } else { self.tunnels.take_idle(&resolved.assignment, plan.port, idempotent) }
        };
        let make = |tunnel, resolved: &Resolved| ActorConn::new(tunnel, resolved.assignment.clone(), plan.port);
        self.reach(plan, idle, make, noted).await
    }

    /// A connection that speaks HTTP/2: the one that is open, else a fresh tunnel to begin one in.
    pub(super) async fn reach_http2(
        &self,
        plan: &Plan,
        noted: &mut Option<Resolved>,
    ) -> Result<Reached<Http2>, Refusal> {
        let open = |resolved: &Resolved| self.tunnels.shared(&resolved.assignment, plan.port).map(Http2::Open);
        self.reach(plan, open, |tunnel, _| Http2::Fresh(tunnel), noted).await
    }

    /// A tunnel of its own.
    pub(super) async fn reach_tunnel(
        &self,
        plan: &Plan,
        noted: &mut Option<Resolved>,
    ) -> Result<Reached<Tunnel>, Refusal> {
        self.reach(plan, |_| None, |tunnel, _| tunnel, noted).await
    }

    /// Resolves, then takes what is idle or opens a tunnel; a stale or unreachable worker is
    /// forgotten and asked for anew. `noted` keeps the last answer for the access log.
    async fn reach<T>(
        &self,
        plan: &Plan,
        idle: impl Fn(&Resolved) -> Option<T>,
        make: impl Fn(Tunnel, &Resolved) -> T,
        noted: &mut Option<Resolved>,
    ) -> Result<Reached<T>, Refusal> {
        let (mut attempts, mut first_attempt) = (Attempts::default(), None::<Instant>);
        loop {
            let resolved = self.routes.resolve(&plan.actor, &plan.trace).await?;
            // How the first answer was come by is what the request's record tells.
            let first = noted.take().unwrap_or_else(|| resolved.clone());
            *noted = Some(Resolved { assignment: resolved.assignment.clone(), ..first });
            if let Some(to) = idle(&resolved) {
                return Ok(Reached { to, resolved });
            }
            let spent = first_attempt.get_or_insert_with(Instant::now).elapsed();
            let next = match attempts.admit(&resolved.assignment, spent) {
                Err(next) => next,
                // Boxed, as all that is rare: what a request holds while it is carried stays small.
                Ok(()) => match Box::pin(self.tunnels.open(&resolved.assignment, plan.port)).await {
                    Ok(tunnel) => return Ok(Reached { to: make(tunnel, &resolved), resolved }),
                    Err(error) => {
                        note_failure(plan, &resolved, &error);
                        attempts.failed(&resolved.assignment, &error)
                    }
                },
            };
            match next {
                Next::GiveUp(refusal) => {
                    self.routes.forget(&plan.actor, resolved.generation);
                    return Err(refusal);
                }
                Next::Again(pause) => {
                    self.routes.forget(&plan.actor, resolved.generation);
                    sleep(pause).await;
                }
            }
        }
    }
}

fn note_failure(plan: &Plan, resolved: &Resolved, error: &OpenError) {
    let worker = resolved.assignment.worker;
    tracing::debug!(actor = %plan.actor, %worker, %error, "no tunnel");
}
