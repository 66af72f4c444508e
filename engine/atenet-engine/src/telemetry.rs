//! Metrics and the access log: one record a request, never on the hot path's account.

mod access_log;
mod metrics;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};

use self::access_log::AccessLog;
pub(crate) use self::metrics::resume_label;
use self::metrics::{Level, Metrics, OutcomeLabel, ResumeLabel};
use crate::actor_ref::ActorRef;
use crate::assignment::Disposition;
use crate::config::TracingConfig;
use crate::refusal::Refusal;
use crate::trace::{Span, Trace, Tracer};

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
    /// Nothing moved for the idle limit after the response had started, so the router cut it.
    IdleTimeout,
}

impl Outcome {
    const fn class(self) -> &'static str {
        match self {
            Self::Served => "ok",
            Self::Refused(_) => "refused",
            Self::ClientGone => "client-gone",
            Self::UpstreamReset => "upstream-reset",
            Self::IdleTimeout => "idle-timeout",
        }
    }

    const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Refused(refusal) => Some(refusal.reason()),
            _ => None,
        }
    }

    /// The metrics' `outcome`: a refusal's own token.
    pub(crate) const fn label(self) -> &'static str {
        match self.reason() {
            Some(reason) => reason,
            None => self.class(),
        }
    }
}

/// What is known of one request when it is over.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    /// None: the request named no actor.
    pub actor: Option<ActorRef>,
    /// The listener's name.
    pub listener: Arc<str>,
    pub method: Method,
    /// None: no status was sent.
    pub status: Option<StatusCode>,
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
    pub upstream: Option<SocketAddr>,
    /// From [`Telemetry::trace`].
    pub trace: Trace,
}

/// The process's metrics and access log. Cheap to clone.
#[derive(Clone)]
pub struct Telemetry {
    metrics: Arc<Metrics>,
    log: Option<Arc<AccessLog>>,
    tracer: Option<Tracer>,
}

/// Counts as open until dropped.
pub struct Open(Level);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn open(level: &Level) -> Open {
    level.inc();
    Open(level.clone())
}

/// Metrics without an access log.
impl Default for Telemetry {
    fn default() -> Self {
        Self { metrics: Arc::new(Metrics::new()), log: None, tracer: None }
    }
}

impl Telemetry {
    /// With an access log on `sink`.
    pub fn with_access_log(sink: Box<dyn Write + Send>) -> std::io::Result<Self> {
        Ok(Self { log: Some(Arc::new(AccessLog::to(sink)?)), ..Self::default() })
    }

    /// With spans that go to a collector. Call it inside a runtime.
    #[must_use]
    pub fn with_tracing(mut self, config: &TracingConfig) -> Self {
        self.tracer = Some(Tracer::start(config, self.metrics.spans_dropped.clone()));
        self
    }

    /// The trace of a request that came with this `traceparent`; its span, if it is recorded, starts now.
    #[must_use]
    pub fn trace(&self, incoming: Option<&str>) -> Trace {
        self.tracer.as_ref().map_or_else(|| Trace::passing(incoming), |tracer| tracer.request(incoming))
    }

    /// Called once for each request, at its end.
    pub fn request(&self, record: RequestRecord) {
        self.metrics.request(&record);
        if let Some(span) = record.trace.take_span() {
            self.send(request_span(span, &record));
        }
        let logged = self.log.as_ref().is_none_or(|log| log.push(record));
        if !logged {
            self.metrics.log_dropped.inc();
        }
    }

    /// A request whose bytes another program carries: only its way to an answer is known here.
    pub(crate) fn routed(&self, outcome: Outcome, disposition: Disposition, route: Duration) {
        self.metrics.routed(outcome, disposition, route);
    }

    /// The span of such a request's way to an answer is over.
    pub(crate) fn decided(&self, mut span: Span, actor: Option<&ActorRef>, outcome: Outcome, disposition: Disposition) {
        span.name("route");
        describe(&mut span, actor, outcome, disposition);
        self.send(span);
    }

    /// A client connection, for as long as the returned value lives.
    #[must_use]
    pub fn client_connection(&self) -> Open {
        open(&self.metrics.client_connections)
    }

    /// A connection to a worker.
    #[must_use]
    pub fn worker_connection(&self) -> Open {
        self.metrics.worker_connections_opened.inc();
        open(&self.metrics.worker_connections)
    }

    /// A tunnel (one stream of such a connection).
    #[must_use]
    pub fn tunnel(&self) -> Open {
        self.metrics.tunnels_opened.inc();
        open(&self.metrics.tunnels)
    }

    /// Prometheus text.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        self.metrics.text()
    }

    /// Sends the spans and writes out the access log; later requests are not logged.
    pub async fn close(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.flush().await;
        }
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// The span of a look-up on behalf of whoever sent this header, if that is recorded.
    pub(crate) fn call_span(&self, header: Option<&str>) -> Option<Span> {
        self.tracer.as_ref().and_then(|tracer| tracer.call(header))
    }

    pub(crate) fn send(&self, span: Span) {
        if let Some(tracer) = &self.tracer {
            tracer.send(span);
        }
    }

    pub(crate) fn cache_hit(&self) {
        self.metrics.cache_hits.inc();
    }

    pub(crate) fn cache_miss(&self) {
        self.metrics.cache_misses.inc();
    }

    pub(crate) fn stale_retry(&self) {
        self.metrics.stale_retries.inc();
    }

    pub(crate) fn resume_call(&self, code: tonic::Code) {
        let label = ResumeLabel { rpc_grpc_status_code: code as i32 };
        self.metrics.resume_calls.get_or_create(&label).inc();
    }

    /// One parked request.
    pub(crate) fn parked(&self) -> Open {
        open(&self.metrics.parked)
    }

    pub(crate) fn waited(&self, outcome: &'static str, time: Duration) {
        self.metrics.waited(outcome, time);
    }

    /// One actor's egress tunnel.
    pub(crate) fn egress_tunnel(&self) -> Open {
        open(&self.metrics.egress_tunnels)
    }

    /// What became of a tunnel, a connection or a request on its way out: `ok`, or the denial's token.
    pub(crate) fn egress_decision(&self, outcome: &'static str) {
        self.metrics.egress_decisions.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn shed(&self) {
        self.metrics.shed.inc();
    }
}

/// What a request's span says.
fn request_span(mut span: Span, record: &RequestRecord) -> Span {
    span.name(record.method.as_str());
    span.text("http.request.method", record.method.as_str());
    describe(&mut span, record.actor.as_ref(), record.outcome, record.disposition);
    if let Some(status) = record.status {
        span.number("http.response.status_code", status.as_u16().into());
    }
    if let Some(upstream) = record.upstream {
        span.text("network.peer.address", upstream.to_string());
    }
    let failed = record.status.is_none_or(|status| status.is_server_error());
    if failed {
        span.failed(record.outcome.label());
    }
    span
}

/// Which actor, what became of the request, and whether it woke the actor.
fn describe(span: &mut Span, actor: Option<&ActorRef>, outcome: Outcome, disposition: Disposition) {
    if let Some(actor) = actor {
        span.text("ate.atespace", actor.atespace());
        span.text("ate.actor", actor.name());
    }
    span.text("ate.router.outcome", outcome.label());
    span.text("ate.router.resume", resume_label(disposition));
}

#[cfg(test)]
mod tests {
    use super::access_log::tests::{Sink, record};
    use super::*;

    #[test]
    fn a_request_shows_in_the_metrics_without_its_actors_name() {
        let telemetry = Telemetry::default();
        telemetry.request(record());
        telemetry.request(RequestRecord {
            outcome: Outcome::Refused(Refusal::NoCapacity),
            status: Some(StatusCode::GATEWAY_TIMEOUT),
            ..record()
        });
        let text = telemetry.metrics_text();
        for line in [
            r#"atenet_router_route_duration_seconds_count{ate_router_outcome="ok",ate_router_resume="triggered"} 1"#,
            r#"atenet_router_route_duration_seconds_count{ate_router_outcome="no-capacity",ate_router_resume="triggered"} 1"#,
            r#"http_server_request_duration_seconds_count{http_response_status_code="504",outcome="no-capacity"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("agent-7") && !text.contains("team-a"));
    }

    #[test]
    fn open_things_are_counted_while_they_live() {
        let telemetry = Telemetry::default();
        let tunnel = telemetry.tunnel();
        assert!(telemetry.metrics_text().contains("atenet_router_tunnels 1"));
        drop(tunnel);
        let text = telemetry.metrics_text();
        assert!(text.contains("atenet_router_tunnels 0") && text.contains("atenet_router_tunnels_opened_total 1"));
    }

    #[tokio::test]
    async fn requests_after_the_close_are_counted_as_dropped_lines() {
        let sink = Sink::default();
        let telemetry = Telemetry::with_access_log(Box::new(sink.clone())).unwrap();
        telemetry.request(record());
        telemetry.close().await;
        telemetry.request(record());
        assert_eq!(sink.lines().len(), 1);
        assert!(telemetry.metrics_text().contains("atenet_router_access_log_dropped_total 1"));
    }
}
