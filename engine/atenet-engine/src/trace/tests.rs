//! Spans as a collector receives them.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use prost::Message;
use tokio::net::TcpListener;

use super::*;
use crate::config::OtlpProtocol;
use crate::otlp_proto::{ExportTraceServiceRequest, Span as OtlpSpan};

const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

type Batches = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

async fn collector() -> (SocketAddr, Batches) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let batches = Batches::default();
    let taken = batches.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let taken = taken.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let taken = taken.clone();
                async move {
                    assert_eq!(request.uri().path(), "/v1/traces");
                    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
                    let body = request.into_body().collect().await?.to_bytes();
                    taken.lock().push(ExportTraceServiceRequest::decode(body).unwrap());
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::new())))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, batches)
}

fn tracer(collector: impl ToString, random_sampling: f64, client_sampling: f64) -> Tracer {
    counted(collector, random_sampling, client_sampling, Counter::default())
}

fn counted(collector: impl ToString, random_sampling: f64, client_sampling: f64, dropped: Counter) -> Tracer {
    let config = TracingConfig {
        collector: collector.to_string(),
        protocol: OtlpProtocol::Http,
        path: "/v1/traces".into(),
        random_sampling,
        client_sampling,
    };
    Tracer::start(&config, dropped)
}

fn spans(batches: &Batches) -> Vec<OtlpSpan> {
    let batches = batches.lock();
    let scopes = batches.iter().flat_map(|b| &b.resource_spans).flat_map(|r| &r.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

#[tokio::test]
async fn a_request_and_its_call_are_parent_and_child_of_the_callers_trace() {
    let (address, batches) = collector().await;
    let tracer = tracer(address, 0.0, 1.0);
    let request = tracer.request(Some(HEADER));
    let call = tracer.call(request.header()).unwrap();
    let other = tracer.request(Some(HEADER));
    other.link(call.context());
    tracer.send(call);
    tracer.send(request.take_span().unwrap());
    tracer.send(other.take_span().unwrap());
    tracer.flush().await;

    let spans = spans(&batches);
    let [call, request, other] = spans.as_slice() else { panic!("{spans:?}") };
    let caller = SpanContext::parse(HEADER).unwrap();
    assert!(spans.iter().all(|span| span.trace_id == caller.trace_id.to_be_bytes()));
    assert_eq!(request.parent_span_id, caller.span_id.to_be_bytes());
    assert_eq!(call.parent_span_id, request.span_id);
    assert_eq!((request.kind, call.kind), (2, 3));
    assert_eq!((&other.links[0].trace_id, &other.links[0].span_id), (&call.trace_id, &call.span_id));
    assert!(request.end_time_unix_nano >= request.start_time_unix_nano);
    let resource = batches.lock()[0].resource_spans[0].resource.clone().unwrap();
    assert_eq!(resource.attributes[0].key, "service.name");
}

#[tokio::test]
async fn the_callers_decision_is_kept_and_shares_are_heeded() {
    let unsampled = HEADER.replace("-01", "-00");
    let all = tracer("127.0.0.1:1", 1.0, 1.0);
    let trace = all.request(Some(&unsampled));
    assert_eq!(trace.header(), Some(unsampled.as_str()));
    assert!(trace.take_span().is_none() && all.call(Some(&unsampled)).is_none());
    assert!(all.request(None).header().is_some());

    let none = tracer("127.0.0.1:1", 0.0, 0.0);
    let trace = none.request(Some(HEADER));
    assert_eq!(trace.header(), Some(HEADER));
    assert!(trace.take_span().is_none());
    assert_eq!(none.request(None).header(), None);
}

#[tokio::test]
async fn without_a_tracer_a_header_travels_on_as_it_came() {
    let odd = Trace::passing(Some("not a trace context"));
    odd.link(SpanContext::parse(HEADER).unwrap());
    assert_eq!(odd.header(), Some("not a trace context"));
    assert!(odd.take_span().is_none());
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_spans_and_nothing_else() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let dropped = Counter::default();
    let tracer = counted(closed, 1.0, 1.0, dropped.clone());
    for _ in 0..10 {
        tracer.send(tracer.request(None).take_span().unwrap());
    }
    tracer.flush().await;
    assert_eq!(dropped.get(), 10);
}
