//! The router's client of the control plane: ResumeActor over one mTLS HTTP/2 connection.

mod call;
mod connection;
mod egress;
mod locate;
mod news;
#[cfg(test)]
mod tests;
mod transport;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tonic::Status;

use crate::actor_ref::ActorRef;
use crate::config::ControlConfig;
use crate::error::EngineError;
use crate::grpc::framed;
use crate::proto::control_client::ControlClient;
use crate::proto::{ObjectRef, ResumeActorRequest, ResumeActorResponse};
use crate::tls::ClientTls;

use self::call::Method;
pub(crate) use self::connection::Connection;
use self::connection::Watch;
pub(crate) use self::egress::in_time;
use self::locate::Locator;
pub use self::news::{News, NewsStream};

/// How long one attempt may take; longer than the park budget, so that a resume that has its worker ends well.
pub const ATTEMPT_DEADLINE: Duration = Duration::from_secs(30);
/// How long one look-up may take; whoever gets no answer makes an attempt.
const LOCATE_LIMIT: Duration = Duration::from_secs(1);
/// The same as the attempt's in microseconds, as gRPC spells it.
const ATTEMPT_TIMEOUT: &str = "30000000u";

/// What the resolver asks of a control plane.
pub trait ControlPlane: Send + Sync + 'static {
    /// One ResumeActor attempt. `trace`: the W3C `traceparent` to send along.
    fn resume<'a>(
        &'a self,
        actor: &'a ActorRef,
        trace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ResumeActorResponse, Status>>;

    /// The actor as an attempt would answer, if it runs now; none if it does not, or if this cannot be said. Wakes nobody.
    fn locate<'a>(&'a self, _actor: &'a ActorRef) -> BoxFuture<'a, Option<ResumeActorResponse>> {
        Box::pin(std::future::ready(None))
    }

    /// What it tells by itself, from now on. Unimplemented by one that tells nothing.
    fn news(&self) -> BoxFuture<'_, Result<NewsStream, Status>> {
        Box::pin(std::future::ready(Err(Status::unimplemented("it tells nothing by itself"))))
    }

    /// Resolves once another control plane may be answering than at the last call.
    fn replaced(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A control plane behind an address.
#[derive(Clone)]
pub struct Control {
    client: ControlClient<Connection>,
    connection: Connection,
    resume: Arc<Method>,
    locate: Arc<Method>,
    locator: Arc<Locator>,
}

impl Control {
    /// Reads the credential files; connects at the first call.
    pub fn new(config: &ControlConfig) -> Result<Self, EngineError> {
        Self::watched(config, Watch::default())
    }

    fn watched(config: &ControlConfig, watch: Watch) -> Result<Self, EngineError> {
        let tls = ClientTls::new(Some(config.credentials.clone()), config.roots.clone(), &[b"h2"])
            .map_err(|error| EngineError::tls("control plane client", error))?;
        Self::over(Connection::new(&config.address, &config.server_name, tls, watch)?)
    }

    fn over(connection: Connection) -> Result<Self, EngineError> {
        let resume = Arc::new(connection.method("/ateapi.Control/ResumeActor", ATTEMPT_TIMEOUT)?);
        let locate = Arc::new(connection.method(locate::PATH, ATTEMPT_TIMEOUT)?);
        let (client, locator) = (ControlClient::new(connection.clone()), Arc::default());
        Ok(Self { client, connection, resume, locate, locator })
    }
}

impl ControlPlane for Control {
    fn resume<'a>(
        &'a self,
        actor: &'a ActorRef,
        trace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ResumeActorResponse, Status>> {
        let target = ObjectRef { atespace: actor.atespace().to_owned(), name: actor.name().to_owned() };
        let question = framed(&ResumeActorRequest { actor: Some(target) });
        Box::pin(async move {
            let attempt = async {
                let response = self.connection.send(|| self.resume.head(trace), question).await?;
                call::answer(response).await
            };
            match tokio::time::timeout(ATTEMPT_DEADLINE, attempt).await {
                Ok(answer) => answer,
                Err(_elapsed) => Err(Status::deadline_exceeded("ResumeActor took too long")),
            }
        })
    }

    fn locate<'a>(&'a self, actor: &'a ActorRef) -> BoxFuture<'a, Option<ResumeActorResponse>> {
        let asked = self.locator.ask(&self.connection, &self.locate, actor);
        Box::pin(async move { tokio::time::timeout(LOCATE_LIMIT, asked).await.ok().flatten() })
    }

    fn news(&self) -> BoxFuture<'_, Result<NewsStream, Status>> {
        Box::pin(news::watch(self.connection.clone()))
    }

    fn replaced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.connection.replaced())
    }
}
