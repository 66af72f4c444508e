//! Sends finished spans to a collector, in batches, from a task of its own.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prometheus_client::metrics::counter::Counter;
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::body::Body;

use crate::config::{OtlpProtocol, TracingConfig};
use crate::otlp_proto::trace_service_client::TraceServiceClient;
use crate::otlp_proto::{
    AnyValue, ExportTraceServiceRequest, InstrumentationScope, KeyValue, Resource, ResourceSpans, ScopeSpans, Span,
    any_value,
};

/// Spans that may wait.
const QUEUE: usize = 8_192;
const BATCH: usize = 512;
/// How long the first span of a batch waits for others.
const GATHER: Duration = Duration::from_millis(500);
const SEND_LIMIT: Duration = Duration::from_secs(5);
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
const SERVICE: &str = "atenet-router";

enum Item {
    Span(Box<Span>),
    /// Answered when everything before it is sent.
    Flush(oneshot::Sender<()>),
}

pub(super) struct Exporter {
    queue: mpsc::Sender<Item>,
    dropped: Counter,
}

impl Exporter {
    pub(super) fn start(config: &TracingConfig, dropped: Counter) -> Self {
        let (queue, items) = mpsc::channel(QUEUE);
        tokio::spawn(run(items, Collector::new(config), dropped.clone()));
        Self { queue, dropped }
    }

    pub(super) fn send(&self, span: Span) {
        if self.queue.try_send(Item::Span(Box::new(span))).is_err() {
            self.dropped.inc();
        }
    }

    pub(super) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        let flushed = async {
            self.queue.send(Item::Flush(done)).await.ok();
            wait.await.ok();
        };
        // A collector that is down must not hold up the end of the process.
        timeout(FLUSH_LIMIT, flushed).await.ok();
    }
}

async fn run(mut items: mpsc::Receiver<Item>, mut collector: Collector, dropped: Counter) {
    while let Some(first) = items.recv().await {
        let (mut spans, mut flush) = (Vec::new(), None);
        let ends = Instant::now() + GATHER;
        let mut next = Some(first);
        while let Some(item) = next.take() {
            match item {
                Item::Span(span) => spans.push(*span),
                Item::Flush(done) => flush = Some(done),
            }
            if flush.is_none() && spans.len() < BATCH {
                next = timeout_at(ends, items.recv()).await.ok().flatten();
            }
        }
        let count = spans.len() as u64;
        if count > 0 && !collector.take(spans).await {
            dropped.inc_by(count);
        }
        if let Some(done) = flush {
            done.send(()).ok();
        }
    }
}

/// One collector and whether it took the last batch.
struct Collector {
    address: String,
    path: Uri,
    protocol: OtlpProtocol,
    http: Client<HttpConnector, Full<Bytes>>,
    grpc: TraceServiceClient<Client<HttpConnector, Body>>,
    healthy: bool,
}

impl Collector {
    fn new(config: &TracingConfig) -> Self {
        let uri = |path: &str| {
            let whole = format!("http://{}{path}", config.collector);
            // The configuration was checked; a path that is none after all fails at sending, and is logged there.
            whole.parse::<Uri>().unwrap_or_default()
        };
        let grpc = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        Self {
            address: config.collector.clone(),
            path: uri(&config.path),
            protocol: config.protocol,
            http: Client::builder(TokioExecutor::new()).build_http(),
            grpc: TraceServiceClient::with_origin(grpc, uri("")),
            healthy: true,
        }
    }

    /// False: the batch is lost. Said once, when it starts and when it ends.
    async fn take(&mut self, spans: Vec<Span>) -> bool {
        let sent = match timeout(SEND_LIMIT, self.send(batch(spans))).await {
            Ok(sent) => sent,
            Err(_elapsed) => Err("took too long".to_owned()),
        };
        match &sent {
            Err(error) if self.healthy => tracing::warn!(collector = %self.address, %error, "spans are lost"),
            Ok(()) if !self.healthy => tracing::info!(collector = %self.address, "spans are taken again"),
            _ => {}
        }
        self.healthy = sent.is_ok();
        sent.is_ok()
    }

    async fn send(&mut self, batch: ExportTraceServiceRequest) -> Result<(), String> {
        match self.protocol {
            OtlpProtocol::Grpc => self.grpc.export(batch).await.map(drop).map_err(|status| status.to_string()),
            OtlpProtocol::Http => self.post(batch).await,
        }
    }

    async fn post(&self, batch: ExportTraceServiceRequest) -> Result<(), String> {
        let request = Request::post(self.path.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(batch.encode_to_vec().into()))
            .map_err(|error| error.to_string())?;
        let response = self.http.request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        // Read to its end, so that the connection can be used again.
        response.into_body().collect().await.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(()) } else { Err(format!("answered {status}")) }
    }
}

fn batch(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let value = any_value::Value::StringValue(SERVICE.to_owned());
    let name = KeyValue { key: "service.name".to_owned(), value: Some(AnyValue { value: Some(value) }) };
    let scope = InstrumentationScope { name: SERVICE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let resource_spans = ResourceSpans {
        resource: Some(Resource { attributes: vec![name] }),
        scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}
