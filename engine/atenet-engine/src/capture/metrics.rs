//! The worker's numbers of its actors' egress. docs/metrics.md lists them; actor names are never a label.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::dns::DnsMetrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabel {
    direction: &'static str,
}

pub(super) struct Metrics {
    registry: Registry,
    open: Gauge<i64, AtomicI64>,
    connections: Family<OutcomeLabel, Counter>,
    bytes: Family<DirectionLabel, Counter>,
    pub(super) dns: DnsMetrics,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("ateworker");
        let (open, connections, bytes) = (Gauge::default(), Family::default(), Family::default());
        registry.register("egress_tunnels_open", "Connections of actors that run through the gateway", open.clone());
        let help = "Connections that actors dialled, by what became of them";
        registry.register("egress_connections", help, connections.clone());
        registry.register("egress_bytes", "Bytes that ended connections carried", bytes.clone());
        let dns = DnsMetrics::new(&mut registry);
        Self { registry, open, connections, bytes, dns }
    }

    pub(super) fn opened(&self) {
        self.open.inc();
        self.connections.get_or_create(&OutcomeLabel { outcome: "opened" }).inc();
    }

    pub(super) fn closed(&self) {
        self.open.dec();
    }

    pub(super) fn refused(&self, outcome: &'static str) {
        self.connections.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(super) fn carried(&self, sent: u64, received: u64) {
        self.bytes.get_or_create(&DirectionLabel { direction: "sent" }).inc_by(sent);
        self.bytes.get_or_create(&DirectionLabel { direction: "received" }).inc_by(received);
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        text::encode(&mut out, &self.registry).ok();
        out
    }
}
