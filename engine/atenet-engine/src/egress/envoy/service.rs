//! The two services that Envoy's filters call: one for HTTP, one for connections.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

use super::question::{Asking, asked};
use super::tunnels::{Open, Tunnels};
use super::{answer, connect, other, request, server_name};
use crate::egress::Gateway;
use crate::egress::denial::Denial;
use crate::envoy_network_proto::network_external_processor_server::{
    NetworkExternalProcessor, NetworkExternalProcessorServer,
};
use crate::envoy_network_proto::{ProcessingRequest as Shown, ProcessingResponse as Told};
use crate::envoy_proto::external_processor_server::{ExternalProcessor, ExternalProcessorServer};
use crate::envoy_proto::{ProcessingRequest, ProcessingResponse};
use crate::extproc::recent::Recent;
use crate::policy::Layer;

const FOR_CONNECTIONS: &str = "/envoy.service.network_ext_proc.v3.";

/// What every question is answered from.
pub(super) struct Parts {
    pub(super) gateway: Arc<Gateway>,
    pub(super) tunnels: Tunnels,
    pub(super) recent: Recent,
    /// Whether Envoy can show leaves.
    pub(super) intercepts: bool,
}

pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

pub(super) fn once<T: Send + 'static>(answer: T) -> Answers<T> {
    Box::pin(futures_util::stream::once(std::future::ready(Ok(answer))))
}

/// Answers that come one by one, from whoever holds the other end.
pub(super) fn answers<T: Send + 'static>() -> (mpsc::Sender<Result<T, Status>>, Answers<T>) {
    let (sender, mut receiver) = mpsc::channel(4);
    (sender, Box::pin(futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx))))
}

/// A question's part of both services.
#[derive(Clone)]
struct Processor(Arc<Parts>);

impl Processor {
    fn tunnel(&self, id: &str) -> Result<Arc<Open>, Denial> {
        // One that has just ended, or that an earlier process knew.
        self.0.tunnels.get(id).ok_or(Denial::ControlUnavailable)
    }
}

#[tonic::async_trait]
impl ExternalProcessor for Processor {
    type ProcessStream = Answers<ProcessingResponse>;

    /// When whoever waits leaves, Envoy resets the stream and this future is dropped.
    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<Response<Self::ProcessStream>, Status> {
        let _in_flight = self.0.gateway.drain.guard();
        let mut messages = request.into_inner();
        let message = messages.message().await?.ok_or_else(|| Status::invalid_argument("no message"))?;
        let asking = Asking::read(&message).ok_or_else(|| Status::invalid_argument("no request headers"))?;
        let of = asked(&message.attributes);
        let answers = match of.chain {
            "tunnel" => connect::answer(&self.0, asking, messages).await,
            "server-name" => match self.tunnel(of.tunnel) {
                Ok(open) => once(server_name::answer(&self.0, &open, asking.server_name()).await),
                Err(denial) => once(answer::refused(denial, false, answer::Noted::default())),
            },
            chain @ ("http" | "tls") => {
                let layer = if chain == "http" { Layer::Http } else { Layer::Tls };
                match self.tunnel(of.tunnel) {
                    Ok(open) => request::answer(&self.0, &open, layer, asking, messages).await,
                    Err(denial) => once(answer::refused(denial, false, answer::Noted::default())),
                }
            }
            // A chain that nobody here knows must not be taken for an open door.
            _ => return Err(Status::invalid_argument("no such filter chain")),
        };
        Ok(Response::new(answers))
    }
}

#[tonic::async_trait]
impl NetworkExternalProcessor for Processor {
    type ProcessStream = Answers<Told>;

    async fn process(&self, request: Request<Streaming<Shown>>) -> Result<Response<Self::ProcessStream>, Status> {
        let mut messages = request.into_inner();
        let message = messages.message().await?.ok_or_else(|| Status::invalid_argument("no message"))?;
        let open = self.tunnel(asked(&message.attributes).tunnel).map_err(|_| Status::not_found("no such tunnel"))?;
        Ok(Response::new(other::answer(&self.0, open, message, messages)))
    }
}

/// Both services on one connection, told apart by the call's path.
#[derive(Clone)]
pub(super) struct Services {
    requests: ExternalProcessorServer<Processor>,
    connections: NetworkExternalProcessorServer<Processor>,
}

impl Services {
    pub(super) fn new(parts: Arc<Parts>) -> Self {
        let processor = Processor(parts);
        Self {
            requests: ExternalProcessorServer::new(processor.clone()),
            connections: NetworkExternalProcessorServer::new(processor),
        }
    }
}

impl Service<http::Request<Incoming>> for Services {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        if request.uri().path().starts_with(FOR_CONNECTIONS) {
            return self.connections.call(request);
        }
        self.requests.call(request)
    }
}
