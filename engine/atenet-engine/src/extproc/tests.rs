//! Over a real connection, with a scripted control plane.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use prost_types::{Struct, Value, value::Kind};
use tonic::transport::Channel;

use super::*;
use crate::actor_ref::ActorRef;
use crate::envoy_proto::external_processor_client::ExternalProcessorClient;
use crate::envoy_proto::processing_response::Response;
use crate::envoy_proto::{HeaderMap, HeaderValue, HttpHeaders, ProcessingRequest, ProcessingResponse};
use crate::proto::{Actor, ActorStatus, ResourceMetadata, ResumeActorResponse, WorkerAssignment};

/// Knows `team/a`, on a worker; everything else is not found, but `team/slow`, which never answers.
#[derive(Default)]
struct Plane(AtomicUsize);

impl ControlPlane for Plane {
    fn resume<'a>(
        &'a self,
        actor: &'a ActorRef,
        _trace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ResumeActorResponse, tonic::Status>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match actor.as_str() {
                "team/a" => Ok(running()),
                "team/slow" => std::future::pending().await,
                _ => Err(tonic::Status::not_found("")),
            }
        })
    }
}

fn running() -> ResumeActorResponse {
    let worker = WorkerAssignment {
        worker_namespace: "default".into(),
        worker_pool: "local".into(),
        worker_pod_ips: vec!["fd00::7".into()],
        worker_epoch: 4,
        ..Default::default()
    };
    let metadata = ResourceMetadata {
        atespace: "team".into(),
        name: "a".into(),
        uid: "u".into(),
        version: 9,
        ..Default::default()
    };
    let status = ActorStatus { worker_assignment: Some(worker), ..Default::default() };
    ResumeActorResponse {
        actor: Some(Actor { metadata: Some(metadata), status: Some(status), ..Default::default() }),
        resumed: true,
    }
}

struct Bench {
    service: ExtProc,
    plane: Arc<Plane>,
    client: ExternalProcessorClient<Channel>,
}

async fn bench() -> Bench {
    let config = r#"{"listen": "127.0.0.1:0", "control": {"address": "api:443", "server_name": "api",
                     "credentials": {"cert": "a", "key": "a"}, "roots": "b"}}"#;
    let config = ExtProcConfig::from_json(config).unwrap();
    let plane = Arc::new(Plane::default());
    let service = ExtProc::with_control_plane(&config, plane.clone()).await.unwrap();
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", service.address())).unwrap();
    let client = ExternalProcessorClient::new(endpoint.connect().await.unwrap());
    Bench { service, plane, client }
}

fn request(target: &str, content_type: &str) -> ProcessingRequest {
    let header = |key: &str, value: &str| HeaderValue {
        key: key.into(),
        value: String::new(),
        raw_value: value.as_bytes().to_vec(),
    };
    let headers = vec![
        header(":method", "POST"),
        header(":authority", "x"),
        header(":path", "/p?token=secret"),
        header("content-type", content_type),
        header("ate-target-actor", target),
    ];
    let chain = Value { kind: Some(Kind::StringValue("ingress".into())) };
    let attributes = Struct { fields: [("xds.filter_chain_name".to_owned(), chain)].into() };
    let headers = Some(HeaderMap { headers });
    ProcessingRequest {
        request_headers: Some(HttpHeaders { headers, ..HttpHeaders::default() }),
        attributes: [("envoy.filters.http.ext_proc".to_owned(), attributes)].into(),
        ..ProcessingRequest::default()
    }
}

impl Bench {
    async fn ask(&mut self, request: ProcessingRequest) -> ProcessingResponse {
        let mut answers = self.client.process(futures_util::stream::iter([request])).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap();
        assert!(answers.message().await.unwrap().is_none(), "one answer a stream");
        answer
    }
}

fn metadata(answer: ProcessingResponse) -> std::collections::BTreeMap<String, String> {
    let Some(Kind::StructValue(values)) =
        answer.dynamic_metadata.unwrap().fields.remove("x-ate-assignment").unwrap().kind
    else {
        panic!("no struct")
    };
    let text = |value: Value| match value.kind {
        Some(Kind::StringValue(text)) => Some(text),
        Some(Kind::NumberValue(_)) => None,
        other => panic!("{other:?} is no text"),
    };
    values.fields.into_iter().filter_map(|(key, value)| Some((key, text(value)?))).collect()
}

#[tokio::test]
async fn an_assignment_is_answered_as_metadata() {
    let mut bench = bench().await;
    let found = metadata(bench.ask(request("team/a", "text/plain")).await);
    let want = [
        ("actor", "team/a"),
        ("activation", "team/a|u|9|[fd00::7]:8443|4|spiffe://cluster.local/ns/default/sa/local|80"),
        ("authority", "[fd00::7]:80"),
        ("atespace", "team"),
        ("name", "a"),
        ("resume", "triggered"),
        ("worker", "[fd00::7]:8443"),
        ("worker_ip", "[fd00::7]"),
        ("worker_port", "8443"),
        ("worker_spiffe_id", "spiffe://cluster.local/ns/default/sa/local"),
    ];
    assert_eq!(found, want.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
}

#[tokio::test]
async fn every_request_asks_the_control_plane() {
    let mut bench = bench().await;
    for _ in 0..3 {
        bench.ask(request("team/a", "text/plain")).await;
    }
    assert_eq!(bench.plane.0.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_refusal_is_given_at_once_in_the_callers_protocol() {
    let mut bench = bench().await;
    for (content_type, body) in [("text/plain", "no such actor\n"), ("application/grpc", "no such actor")] {
        let said = bench.ask(request("team/none", content_type)).await;
        assert_eq!(metadata(said.clone())["name"], "none");
        let Some(Response::ImmediateResponse(answer)) = said.response else { panic!("no immediate response") };
        assert_eq!((answer.status.unwrap().code, answer.grpc_status.unwrap().status), (404, 5));
        assert_eq!(String::from_utf8(answer.body).unwrap(), body);
        assert_eq!(answer.details, "ate_actor_not_found");
        let reason = &answer.headers.unwrap().set_headers[0];
        assert_eq!(reason.header.as_ref().unwrap().raw_value, b"actor-not-found");
    }
    assert_eq!(bench.plane.0.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_malformed_target_never_reaches_the_control_plane() {
    let mut bench = bench().await;
    bench.ask(request("Team/a", "text/plain")).await;
    assert_eq!(bench.plane.0.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_client_that_leaves_is_noted_and_forgotten() {
    let mut bench = bench().await;
    let slow = request("team/slow", "text/plain");
    let asked = tokio::time::timeout(Duration::from_millis(200), bench.ask(slow)).await;
    assert!(asked.is_err());
    tokio::time::timeout(Duration::from_secs(5), async {
        while bench.service.status().deciding > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let status = serde_json::to_value(bench.service.status()).unwrap();
    assert_eq!(
        (&status["requests"][0]["outcome"], &status["requests"][0]["path"]),
        (&"client-gone".into(), &"/p".into())
    );
}
