//! One trace from the client through the router and the control plane to the actor.
//!
//! Without a collector a request's `traceparent` travels on as it came. With one, a sampled request is a span of its
//! own: what is called on its behalf is told that span as parent.

mod context;
mod export;
mod span;

use std::sync::Arc;

pub use self::context::SpanContext;
use self::export::Exporter;
pub(crate) use self::span::{Kind, Span};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use crate::config::TracingConfig;

/// Decides what is recorded, and sends it off. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tracer(Arc<Shared>);

struct Shared {
    random_sampling: f64,
    client_sampling: f64,
    exporter: Exporter,
}

impl Tracer {
    /// Call it inside a runtime: a task of its own sends the spans.
    pub(crate) fn start(config: &TracingConfig, dropped: Counter) -> Self {
        Self(Arc::new(Shared {
            random_sampling: config.random_sampling,
            client_sampling: config.client_sampling,
            exporter: Exporter::start(config, dropped),
        }))
    }

    /// A request with this `traceparent`.
    pub(crate) fn request(&self, incoming: Option<&str>) -> Trace {
        let parent = incoming.and_then(SpanContext::parse);
        let sampled = match parent {
            // The caller's decision is kept, and may be thinned out.
            Some(parent) => parent.sampled() && chance(self.0.client_sampling),
            None => chance(self.0.random_sampling),
        };
        if !sampled {
            return Trace::passing(incoming);
        }
        Trace::recorded(Span::new(SpanContext::below(parent), parent, Kind::Server))
    }

    /// A call on behalf of whoever sent this header; `None` if that is not recorded.
    pub(crate) fn call(&self, header: Option<&str>) -> Option<Span> {
        let parent = header.and_then(SpanContext::parse).filter(SpanContext::sampled)?;
        Some(Span::new(SpanContext::below(Some(parent)), Some(parent), Kind::Client))
    }

    /// Never waits: spans that do not fit are dropped and counted.
    pub(crate) fn send(&self, span: Span) {
        self.0.exporter.send(span.ended());
    }

    /// Sends what is left.
    pub(crate) async fn flush(&self) {
        self.0.exporter.flush().await;
    }
}

fn chance(share: f64) -> bool {
    share >= 1.0 || fastrand::f64() < share
}

/// The trace of one request. Cheap to clone; costs nothing where there is none.
#[derive(Debug, Clone, Default)]
pub struct Trace(Option<Arc<Traced>>);

#[derive(Debug)]
struct Traced {
    header: String,
    /// The request's span, if it is recorded, until it ends.
    span: Mutex<Option<Span>>,
}

impl Trace {
    /// Passes a header on as it came.
    #[must_use]
    pub fn passing(header: Option<&str>) -> Self {
        Self(header.map(|header| Arc::new(Traced { header: header.to_owned(), span: Mutex::new(None) })))
    }

    fn recorded(span: Span) -> Self {
        Self(Some(Arc::new(Traced { header: span.context().header(), span: Mutex::new(Some(span)) })))
    }

    /// What is sent on as `traceparent`; `None`: nothing.
    #[must_use]
    pub fn header(&self) -> Option<&str> {
        self.0.as_ref().map(|traced| traced.header.as_str())
    }

    /// The trace id, if the header is a trace context.
    pub(crate) fn id(&self) -> Option<&str> {
        let header = self.header()?;
        SpanContext::parse(header)?;
        header.split('-').nth(1)
    }

    /// This request shared the look-up of another.
    pub(crate) fn link(&self, flight: SpanContext) {
        let Some(traced) = &self.0 else { return };
        if let Some(span) = traced.span.lock().as_mut() {
            span.link(flight);
        }
    }

    /// The request's span, once, if it is recorded.
    pub(crate) fn take_span(&self) -> Option<Span> {
        self.0.as_ref().and_then(|traced| traced.span.lock().take())
    }
}

#[cfg(test)]
mod tests;
