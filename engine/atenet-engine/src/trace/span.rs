//! One span while it runs, and as OTLP has it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::context::SpanContext;
use crate::otlp_proto::any_value::Value;
use crate::otlp_proto::span::{Link, SpanKind};
use crate::otlp_proto::status::StatusCode;
use crate::otlp_proto::{AnyValue, KeyValue, Span as OtlpSpan, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Server,
    Client,
}

/// A span that runs since it was made.
#[derive(Debug)]
pub(crate) struct Span {
    context: SpanContext,
    started: Instant,
    record: OtlpSpan,
}

impl Span {
    pub(super) fn new(context: SpanContext, parent: Option<SpanContext>, kind: Kind) -> Self {
        let kind = match kind {
            Kind::Server => SpanKind::Server,
            Kind::Client => SpanKind::Client,
        };
        let record = OtlpSpan {
            trace_id: context.trace_id.to_be_bytes().to_vec(),
            span_id: context.span_id.to_be_bytes().to_vec(),
            parent_span_id: parent.map(|parent| parent.span_id.to_be_bytes().to_vec()).unwrap_or_default(),
            kind: kind.into(),
            start_time_unix_nano: nanoseconds(SystemTime::now()),
            ..OtlpSpan::default()
        };
        Self { context, started: Instant::now(), record }
    }

    pub(crate) fn context(&self) -> SpanContext {
        self.context
    }

    pub(crate) fn name(&mut self, name: impl Into<String>) {
        self.record.name = name.into();
    }

    pub(crate) fn text(&mut self, key: &str, value: impl Into<String>) {
        self.attribute(key, Value::StringValue(value.into()));
    }

    pub(crate) fn number(&mut self, key: &str, value: i64) {
        self.attribute(key, Value::IntValue(value));
    }

    fn attribute(&mut self, key: &str, value: Value) {
        self.record.attributes.push(KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) });
    }

    /// Marks the span as failed.
    pub(crate) fn failed(&mut self, message: &str) {
        self.record.status = Some(Status { message: message.to_owned(), code: StatusCode::Error.into() });
    }

    pub(super) fn link(&mut self, to: SpanContext) {
        let (trace_id, span_id) = (to.trace_id.to_be_bytes().to_vec(), to.span_id.to_be_bytes().to_vec());
        self.record.links.push(Link { trace_id, span_id });
    }

    /// Over now. The length is measured on the steady clock.
    pub(super) fn ended(mut self) -> OtlpSpan {
        let took = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.record.end_time_unix_nano = self.record.start_time_unix_nano.saturating_add(took);
        self.record
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
