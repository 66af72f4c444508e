//! A control plane over real mTLS and HTTP/2 that answers ResumeActor by a script.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use tonic::Status;

use super::pki::{Authority, Leaf, Scratch};
use crate::config::ControlConfig;
use crate::proto::watch_event::Event;
use crate::proto::{
    Actor, ActorState, ActorStatus, LocateRequest, LocateResponse, ObjectRef, ResourceMetadata, ResumeActorRequest,
    ResumeActorResponse, Synced, WatchEvent, WatchRequest, WorkerAssignment,
};
use crate::spiffe::SpiffeId;
use crate::tls::{Callers, ClientAuth, ServerTls};

pub(crate) const SERVER_NAME: &str = "api.ate-system.svc";

type Outcome = Result<ResumeActorResponse, Status>;
/// The actor and how many calls for it came before.
type Script = Arc<dyn Fn(ObjectRef, usize) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// RUNNING on a worker of the pool `local`.
pub(crate) fn running(actor: &ObjectRef, ip: &str, resumed: bool) -> ResumeActorResponse {
    let metadata = ResourceMetadata {
        atespace: actor.atespace.clone(),
        name: actor.name.clone(),
        uid: "00000000-0000-4000-8000-000000000001".into(),
        version: 3,
        ..Default::default()
    };
    let worker = WorkerAssignment {
        worker_namespace: "default".into(),
        worker_pool: "local".into(),
        worker_pod_ips: vec![ip.to_owned()],
        worker_epoch: 1,
        ..Default::default()
    };
    let status =
        ActorStatus { state: ActorState::Running.into(), worker_assignment: Some(worker), ..Default::default() };
    let actor = Actor { metadata: Some(metadata), status: Some(status), ..Default::default() };
    ResumeActorResponse { actor: Some(actor), resumed }
}

pub(crate) struct Seen {
    calls: Mutex<HashMap<String, usize>>,
    /// Times that a router asked for news.
    pub(crate) watches: AtomicUsize,
    /// Where news go; until the first time that somebody tells any, there is no such method.
    news: broadcast::Sender<WatchEvent>,
    tells: AtomicBool,
    pub(crate) connections: AtomicUsize,
    pub(crate) headers: Mutex<Vec<HeaderMap>>,
    /// Streams of look-ups that a router began.
    pub(crate) locates: AtomicUsize,
    /// Who runs, by `<atespace>/<name>`; as long as there is none, there is no such method.
    pub(crate) running: Mutex<Option<HashMap<String, Actor>>>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            watches: AtomicUsize::default(),
            news: broadcast::Sender::new(64),
            tells: AtomicBool::default(),
            connections: AtomicUsize::default(),
            headers: Mutex::default(),
            locates: AtomicUsize::default(),
            running: Mutex::default(),
        }
    }
}

impl Seen {
    /// From now on it answers Watch.
    pub(crate) fn tells(&self) {
        self.tells.store(true, Ordering::SeqCst);
    }

    /// From now on it answers Locate, and these run.
    pub(crate) fn run(&self, actors: &[ObjectRef], ip: &str) {
        let named = |actor: &ObjectRef| format!("{}/{}", actor.atespace, actor.name);
        let all = actors.iter().filter_map(|actor| Some((named(actor), running(actor, ip, false).actor?)));
        *self.running.lock() = Some(all.collect());
    }

    /// To every router that watches; how many those are.
    pub(crate) fn tell(&self, event: Event) -> usize {
        self.news.send(WatchEvent { event: Some(event) }).unwrap_or_default()
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.lock().values().sum()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(crate) struct Api {
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) pods: Arc<Authority>,
    services: Arc<Authority>,
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    accepting: AbortHandle,
    conversations: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Api {
    /// Serves on a port of the system's choice.
    pub(crate) async fn serve<F, R>(script: F) -> Self
    where
        F: Fn(ObjectRef, usize) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let scratch = Arc::new(Scratch::new());
        let (pods, services) = (Arc::new(Authority::new()), Arc::new(Authority::new()));
        scratch.put("pods.pem", &pods.pem);
        scratch.put("services.pem", &services.pem);
        pods.credential(&scratch, "router.pem", &Leaf::pod(router_id().as_str()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, scratch, pods, services, script).await
    }

    /// Another instance at the same address, for the same clients.
    pub(crate) async fn successor<F, R>(self, script: F) -> Self
    where
        F: Fn(ObjectRef, usize) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.stop();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        // The old listener's task ends when it is next polled.
        while socket.bind(self.address).is_err() {
            tokio::task::yield_now().await;
        }
        let listener = socket.listen(64).unwrap();
        Self::on(listener, self.scratch.clone(), self.pods.clone(), self.services.clone(), script).await
    }

    async fn on<F, R>(
        listener: TcpListener,
        scratch: Arc<Scratch>,
        pods: Arc<Authority>,
        services: Arc<Authority>,
        script: F,
    ) -> Self
    where
        F: Fn(ObjectRef, usize) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let files = services.credential(&scratch, "service.pem", &Leaf::service(SERVER_NAME));
        let auth = ClientAuth::Require { roots: scratch.path("pods.pem"), callers: Callers::OneOf(vec![router_id()]) };
        let tls = ServerTls::new(files, auth, &[b"h2"]).unwrap();
        let script: Script = Arc::new(move |actor, call| Box::pin(script(actor, call)));
        let (seen, conversations) = (Arc::new(Seen::default()), Arc::default());
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, tls, script, seen.clone(), Arc::clone(&conversations)));
        let accepting = accepting.abort_handle();
        Self { scratch, pods, services, address, seen, accepting, conversations }
    }

    /// Ends the listener and every connection.
    pub(crate) fn stop(&self) {
        self.accepting.abort();
        self.break_connections();
    }

    pub(crate) fn break_connections(&self) {
        self.conversations.lock().drain(..).for_each(|conversation| conversation.abort());
    }

    pub(crate) fn config(&self) -> ControlConfig {
        let pod = self.scratch.path("router.pem");
        ControlConfig {
            address: self.address.to_string(),
            server_name: SERVER_NAME.into(),
            credentials: super::pki::one_file(&pod),
            roots: self.scratch.path("services.pem"),
        }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn router_id() -> SpiffeId {
    SpiffeId::pod("ate-system", "atenet-router").unwrap()
}

async fn accept(
    listener: TcpListener,
    tls: ServerTls,
    script: Script,
    seen: Arc<Seen>,
    conversations: Arc<Mutex<Vec<AbortHandle>>>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let conversation = tokio::spawn(converse(stream, tls.clone(), script.clone(), seen.clone()));
        conversations.lock().push(conversation.abort_handle());
    }
}

async fn converse(stream: TcpStream, tls: ServerTls, script: Script, seen: Arc<Seen>) {
    let Ok(stream) = tls.acceptor().accept(stream).await else { return };
    seen.connections.fetch_add(1, Ordering::SeqCst);
    let service = service_fn(move |request: Request<Incoming>| {
        let (script, seen) = (script.clone(), seen.clone());
        async move { Ok::<_, std::convert::Infallible>(resume(request, script, seen).await) }
    });
    http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await.ok();
}

async fn watch(request: Request<Incoming>, seen: Arc<Seen>) -> Response<tonic::body::Body> {
    seen.watches.fetch_add(1, Ordering::SeqCst);
    if !seen.tells.load(Ordering::SeqCst) {
        return Status::unimplemented("unknown method").into_http();
    }
    let service = tower::service_fn(move |_: tonic::Request<WatchRequest>| {
        let heard = seen.news.subscribe();
        let first = WatchEvent { event: Some(Event::Synced(Synced {})) };
        let rest = stream::unfold(heard, |mut heard| async move { Some((Ok(heard.recv().await.ok()?), heard)) });
        let told = stream::once(std::future::ready(Ok(first))).chain(rest);
        async move { Ok::<_, Status>(tonic::Response::new(told)) }
    });
    let codec = tonic_prost::ProstCodec::<WatchEvent, WatchRequest>::default();
    tonic::server::Grpc::new(codec).server_streaming(service, request).await
}

/// A peer without the method, unless it is told who runs.
async fn locate(request: Request<Incoming>, seen: Arc<Seen>) -> Response<tonic::body::Body> {
    seen.locates.fetch_add(1, Ordering::SeqCst);
    if seen.running.lock().is_none() {
        return Status::unimplemented("unknown method").into_http();
    }
    let service = tower::service_fn(move |request: tonic::Request<tonic::Streaming<LocateRequest>>| {
        let seen = seen.clone();
        let answers = request.into_inner().map(move |asked| {
            let actor = asked?.actor.unwrap_or_default();
            let running = seen.running.lock();
            let found = running.as_ref().and_then(|all| all.get(&format!("{}/{}", actor.atespace, actor.name)));
            Ok(LocateResponse { actor: found.cloned() })
        });
        async move { Ok::<_, Status>(tonic::Response::new(answers)) }
    });
    let codec = tonic_prost::ProstCodec::<LocateResponse, LocateRequest>::default();
    tonic::server::Grpc::new(codec).streaming(service, request).await
}

async fn resume(request: Request<Incoming>, script: Script, seen: Arc<Seen>) -> Response<tonic::body::Body> {
    if request.uri().path() == "/ateapi.RouterSupport/Watch" {
        return watch(request, seen).await;
    }
    if request.uri().path() == "/ateapi.RouterSupport/Locate" {
        return locate(request, seen).await;
    }
    assert_eq!(request.uri().path(), "/ateapi.Control/ResumeActor");
    seen.headers.lock().push(request.headers().clone());
    let service = tower::service_fn(move |request: tonic::Request<ResumeActorRequest>| {
        let actor = request.into_inner().actor.unwrap();
        let call = {
            let mut calls = seen.calls.lock();
            let count = calls.entry(format!("{}/{}", actor.atespace, actor.name)).or_default();
            *count += 1;
            *count - 1
        };
        let answer = script(actor, call);
        async move { answer.await.map(tonic::Response::new) }
    });
    let codec = tonic_prost::ProstCodec::<ResumeActorResponse, ResumeActorRequest>::default();
    tonic::server::Grpc::new(codec).unary(service, request).await
}
