//! The process's metrics, in OpenTelemetry's names as Prometheus spells them. docs/metrics.md lists them.
//!
//! Actor names are never a label.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::{Outcome, RequestRecord};
use crate::assignment::Disposition;

const ROUTE_SECONDS: [f64; 18] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0];
const WAIT_SECONDS: [f64; 13] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
const REQUEST_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    ate_router_outcome: &'static str,
    ate_router_resume: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    http_response_status_code: u16,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OutcomeLabel {
    pub(super) outcome: &'static str,
}

pub(super) type Level = Gauge<i64, AtomicI64>;
type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

pub(super) struct Metrics {
    registry: Registry,
    route: Durations<RouteLabels>,
    /// The commonest series, found without a look-up.
    route_warm: Histogram,
    request: Durations<RequestLabels>,
    wait: Durations<OutcomeLabel>,
    pub(super) parked: Level,
    pub(super) shed: Counter,
    pub(super) cache_hits: Counter,
    pub(super) cache_misses: Counter,
    pub(super) stale_retries: Counter,
    pub(super) resume_calls: Family<ResumeLabel, Counter>,
    pub(super) client_connections: Level,
    pub(super) worker_connections: Level,
    pub(super) worker_connections_opened: Counter,
    pub(super) tunnels: Level,
    pub(super) tunnels_opened: Counter,
    pub(super) egress_tunnels: Level,
    pub(super) egress_decisions: Family<OutcomeLabel, Counter>,
    pub(super) log_dropped: Counter,
    pub(super) spans_dropped: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResumeLabel {
    pub(super) rpc_grpc_status_code: i32,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let route: Durations<RouteLabels> = Family::new_with_constructor(|| Histogram::new(ROUTE_SECONDS));
        let warm = RouteLabels { ate_router_outcome: "ok", ate_router_resume: resume_label(Disposition::None) };
        let mut metrics = Self {
            registry: Registry::default(),
            route_warm: route.get_or_create_owned(&warm),
            route,
            request: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            wait: Family::new_with_constructor(|| Histogram::new(WAIT_SECONDS)),
            parked: Level::default(),
            shed: Counter::default(),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            stale_retries: Counter::default(),
            resume_calls: Family::default(),
            client_connections: Level::default(),
            worker_connections: Level::default(),
            worker_connections_opened: Counter::default(),
            tunnels: Level::default(),
            tunnels_opened: Counter::default(),
            egress_tunnels: Level::default(),
            egress_decisions: Family::default(),
            log_dropped: Counter::default(),
            spans_dropped: Counter::default(),
        };
        metrics.register_durations();
        metrics.register_counts();
        metrics
    }

    fn register_durations(&mut self) {
        let r = &mut self.registry;
        let seconds = || Unit::Seconds;
        r.register_with_unit(
            "atenet_router_route_duration",
            "From a request's head to its actor's assignment",
            seconds(),
            self.route.clone(),
        );
        r.register_with_unit(
            "http_server_request_duration",
            "From a request's head to the end of its response",
            seconds(),
            self.request.clone(),
        );
        r.register_with_unit(
            "atenet_router_parking_wait_duration",
            "How long parked requests waited",
            seconds(),
            self.wait.clone(),
        );
    }

    fn register_counts(&mut self) {
        let r = &mut self.registry;
        r.register("atenet_router_parking_active", "Requests parked now", self.parked.clone());
        r.register("atenet_router_parking_rejected", "Requests shed by a full parking lot", self.shed.clone());
        r.register("atenet_router_cache_hits", "Look-ups answered from the assignment cache", self.cache_hits.clone());
        r.register("atenet_router_cache_misses", "Look-ups that the cache could not answer", self.cache_misses.clone());
        r.register(
            "atenet_router_stale_retries",
            "Look-ups repeated after a worker denied the actor",
            self.stale_retries.clone(),
        );
        r.register("atenet_router_resume_calls", "ResumeActor attempts by gRPC status", self.resume_calls.clone());
        r.register("atenet_router_client_connections", "Client connections open now", self.client_connections.clone());
        r.register(
            "atenet_router_worker_connections",
            "Connections to workers open now",
            self.worker_connections.clone(),
        );
        r.register(
            "atenet_router_worker_connections_opened",
            "Connections to workers made",
            self.worker_connections_opened.clone(),
        );
        r.register("atenet_router_tunnels", "Tunnels to actors open now", self.tunnels.clone());
        r.register("atenet_router_tunnels_opened", "Tunnels to actors made", self.tunnels_opened.clone());
        r.register("atenet_egress_tunnels", "Actors' egress tunnels open now", self.egress_tunnels.clone());
        r.register("atenet_egress_decisions", "What became of what actors sent out", self.egress_decisions.clone());
        r.register(
            "atenet_router_access_log_dropped",
            "Access log lines dropped because the writer fell behind",
            self.log_dropped.clone(),
        );
        r.register("atenet_router_spans_dropped", "Spans that the collector did not take", self.spans_dropped.clone());
    }

    pub(super) fn request(&self, record: &RequestRecord) {
        self.routed(record.outcome, record.disposition, record.route);
        let status = record.status.map_or(0, |status| status.as_u16());
        let labels = RequestLabels { http_response_status_code: status, outcome: record.outcome.label() };
        self.request.get_or_create(&labels).observe(record.total.as_secs_f64());
    }

    pub(super) fn routed(&self, outcome: Outcome, disposition: Disposition, route: Duration) {
        if matches!((outcome, disposition), (Outcome::Served, Disposition::None)) {
            self.route_warm.observe(route.as_secs_f64());
            return;
        }
        let labels = RouteLabels { ate_router_outcome: outcome.label(), ate_router_resume: resume_label(disposition) };
        self.route.get_or_create(&labels).observe(route.as_secs_f64());
    }

    pub(super) fn waited(&self, outcome: &'static str, time: Duration) {
        self.wait.get_or_create(&OutcomeLabel { outcome }).observe(time.as_secs_f64());
    }

    /// Prometheus text.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        text::encode(&mut out, &self.registry).ok();
        out
    }
}

pub(crate) const fn resume_label(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::None => "none",
        Disposition::Triggered => "triggered",
        Disposition::Joined => "joined",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../docs/metrics.md");

    /// The router's part of the page: other processes have sections of their own.
    fn documented() -> Vec<String> {
        let section = DOCUMENT.split("\n## ").find(|section| section.starts_with("Router ")).unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect()
    }

    #[test]
    fn every_metric_is_documented_and_every_documented_one_exists() {
        let metrics = Metrics::new();
        // A family without a series is not shown.
        metrics.request(&crate::telemetry::access_log::tests::record());
        metrics.waited("served", Duration::ZERO);
        metrics.resume_calls.get_or_create(&ResumeLabel { rpc_grpc_status_code: 0 }).inc();
        metrics.egress_decisions.get_or_create(&OutcomeLabel { outcome: "ok" }).inc();
        let text = metrics.text();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let mut registered: Vec<String> = types
            .filter_map(|line| line.split_once(' '))
            .map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
            .collect();
        let mut documented = documented();
        registered.sort();
        documented.sort();
        assert_eq!(registered, documented);
    }
}
