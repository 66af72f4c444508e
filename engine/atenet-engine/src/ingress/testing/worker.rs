//! A scripted worker: the far end of the router's tunnels, with actors that are functions of a stream.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::pki::Pki;
use crate::pipe::{H2Duplex, H2Sink, H2Source};
use crate::spiffe::SpiffeId;
use crate::tls::ServerTls;

/// The actor's end of a tunnel. Dropping it without an orderly end is a reset.
pub(in crate::ingress) type Stream = H2Duplex;
pub(in crate::ingress) type Actor = Arc<dyn Fn(Stream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

pub(in crate::ingress) fn actor<F, R>(behaviour: F) -> Actor
where
    F: Fn(Stream) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |stream| Box::pin(behaviour(stream)))
}

/// One CONNECT, as the worker saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ingress) struct Asked {
    pub(in crate::ingress) authority: String,
    pub(in crate::ingress) actor: String,
    /// How many came before.
    pub(in crate::ingress) before: usize,
}

#[derive(Clone)]
pub(in crate::ingress) enum Answer {
    Open(Actor),
    Stale,
    Status(u16),
    /// Never answered.
    Silent,
    /// The connection is told to go away; this stream is not served.
    GoAway,
}

type Behaviour = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

pub(in crate::ingress) struct Worker {
    pub(in crate::ingress) address: SocketAddr,
    pub(in crate::ingress) id: SpiffeId,
    pub(in crate::ingress) connections: AtomicUsize,
    pub(in crate::ingress) asked: Mutex<Vec<Asked>>,
    behaviour: Behaviour,
    max_streams: u32,
    goaway: watch::Sender<u32>,
}

impl Worker {
    pub(in crate::ingress) async fn start(
        pki: &Pki,
        behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::with_limit(pki, 10_000, behaviour).await
    }

    pub(in crate::ingress) async fn with_limit(
        pki: &Pki,
        max_streams: u32,
        behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Arc<Self> {
        let id = SpiffeId::pod("default", "local").unwrap();
        let tls = pki.worker_tls(&id);
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let worker = Arc::new(Self {
            address: socket.local_addr().unwrap(),
            id,
            connections: AtomicUsize::new(0),
            asked: Mutex::default(),
            behaviour: Arc::new(behaviour),
            max_streams,
            goaway: watch::channel(0).0,
        });
        tokio::spawn(worker.clone().accept(socket, tls));
        worker
    }

    /// Every connection that is open now is told to go away, politely.
    pub(in crate::ingress) fn go_away(&self) {
        self.goaway.send_modify(|n| *n += 1);
    }

    pub(in crate::ingress) fn connects(&self) -> usize {
        self.asked.lock().len()
    }

    async fn accept(self: Arc<Self>, socket: TcpListener, tls: ServerTls) {
        while let Ok((stream, _)) = socket.accept().await {
            let (this, acceptor) = (self.clone(), tls.acceptor());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                this.connections.fetch_add(1, Ordering::SeqCst);
                this.serve(stream).await;
            });
        }
    }

    async fn serve(self: Arc<Self>, stream: crate::tls::ServerStream<tokio::net::TcpStream>) {
        let mut builder = h2::server::Builder::new();
        builder.initial_window_size(1 << 20).initial_connection_window_size(4 << 20);
        builder.max_concurrent_streams(self.max_streams).max_send_buffer_size(256 << 10);
        let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
        let mut goaway = self.goaway.subscribe();
        loop {
            let accepted = tokio::select! {
                accepted = connection.accept() => accepted,
                Ok(()) = goaway.changed() => {
                    connection.graceful_shutdown();
                    continue;
                }
            };
            let Some(Ok((request, mut respond))) = accepted else { return };
            let asked = self.note(&request);
            let answer =
                if request.method() == Method::CONNECT { (self.behaviour)(&asked) } else { Answer::Status(405) };
            let head = |status: u16| Response::builder().status(StatusCode::from_u16(status).unwrap());
            match answer {
                Answer::Open(actor) => {
                    let send = respond.send_response(head(200).body(()).unwrap(), false).unwrap();
                    let stream = H2Duplex::new(H2Source::new(request.into_body()), H2Sink::new(send));
                    tokio::spawn(actor(stream));
                }
                Answer::Stale => {
                    let response = head(421).header("x-ate-assignment-stale", "true").body(()).unwrap();
                    respond.send_response(response, true).unwrap();
                }
                Answer::Status(status) => {
                    respond.send_response(head(status).body(()).unwrap(), true).unwrap();
                }
                Answer::Silent => {
                    tokio::spawn(async move {
                        std::future::pending::<()>().await;
                        drop((request, respond));
                    });
                }
                Answer::GoAway => {
                    connection.graceful_shutdown();
                    respond.send_reset(h2::Reason::REFUSED_STREAM);
                }
            }
        }
    }

    fn note<T>(&self, request: &http::Request<T>) -> Asked {
        let mut asked = self.asked.lock();
        let actor = request.headers().get("ate-target-actor").map(|v| v.to_str().unwrap().to_owned());
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let note = Asked { authority, actor: actor.unwrap_or_default(), before: asked.len() };
        asked.push(note.clone());
        note
    }
}
