//! Metrics and the access log: one record a request, never on the hot path's account.

use std::sync::Arc;
use std::time::Duration;

use crate::actor_ref::ActorRef;
use crate::assignment::Disposition;
use crate::refusal::Refusal;

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The actor's response went through to its end.
    Served,
    /// The router answered itself.
    Refused(Refusal),
    /// The client left first.
    ClientGone,
    /// The actor or its worker broke off after the response had started.
    UpstreamReset,
}

/// What is known of one request when it is over.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    /// None: the request named no actor.
    pub actor: Option<ActorRef>,
    /// The listener's name.
    pub listener: Arc<str>,
    pub method: http::Method,
    /// None: no status was sent.
    pub status: Option<http::StatusCode>,
    pub outcome: Outcome,
    pub disposition: Disposition,
    pub cached: bool,
    /// From the request's head to its assignment.
    pub route: Duration,
    /// From the request's head to the end of the response.
    pub total: Duration,
    /// Body bytes from and to the client.
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// The worker that it went to.
    pub upstream: Option<std::net::SocketAddr>,
}

/// The process's metrics and access log. Cheap to clone.
#[derive(Clone, Default)]
pub struct Telemetry {
    inner: Arc<()>,
}

impl Telemetry {
    /// Called once for each request, at its end.
    pub fn request(&self, record: &RequestRecord) {
        let _ = (&self.inner, record);
    }
}
