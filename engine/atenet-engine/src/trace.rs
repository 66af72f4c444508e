//! One trace from the client through the router and the control plane to the actor.
//!
//! Without a collector a request's `traceparent` travels on as it came. With one, a sampled request is a span of its
//! own: what is called on its behalf is told that span as parent.

mod context;
mod export;
mod span;

use std::sync::{Arc, OnceLock};

pub use self::context::SpanContext;
use self::export::Exporter;
pub(crate) use self::span::{Kind, Span};
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
        let context = SpanContext::below(parent);
        let open = Open { span: Span::new(context, parent, Kind::Server), link: OnceLock::new() };
        Trace { header: Some(context.header()), open: Some(Box::new(open)) }
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

/// The trace of one request.
#[derive(Debug, Default)]
pub struct Trace {
    header: Option<String>,
    open: Option<Box<Open>>,
}

#[derive(Debug)]
struct Open {
    span: Span,
    /// The look-up of another request that this one shared.
    link: OnceLock<SpanContext>,
}

impl Trace {
    /// Passes a header on as it came.
    #[must_use]
    pub fn passing(header: Option<&str>) -> Self {
        Self { header: header.map(str::to_owned), open: None }
    }

    /// What is sent on as `traceparent`; `None`: nothing.
    #[must_use]
    pub fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    /// The trace id, if the header is a trace context.
    pub(crate) fn id(&self) -> Option<&str> {
        let header = self.header()?;
        SpanContext::parse(header)?;
        header.split('-').nth(1)
    }

    /// This request shared the look-up of another.
    pub(crate) fn link(&self, flight: SpanContext) {
        if let Some(open) = &self.open {
            // The first look-up is the one that it waited for.
            open.link.set(flight).ok();
        }
    }

    /// The request's span, if it is recorded; the header stays.
    pub(crate) fn take_span(&mut self) -> Option<Span> {
        let Open { mut span, link } = *self.open.take()?;
        if let Some(flight) = link.into_inner() {
            span.link(flight);
        }
        Some(span)
    }
}

#[cfg(test)]
mod tests;
