//! What the egress gateway asks of the control plane.

use std::time::Duration;

use tonic::{Code, Request, Status};

use super::Control;
use crate::actor_ref::ActorRef;
use crate::proto::{Actor, EgressPolicy, GetActorEgressPolicyRequest, GetActorRequest, MintActorJwtRequest, ObjectRef};

/// How long one call may take; a connection waits for it.
const LIMIT: Duration = Duration::from_secs(5);

fn reference(actor: &ActorRef) -> Option<ObjectRef> {
    Some(ObjectRef { atespace: actor.atespace().to_owned(), name: actor.name().to_owned() })
}

/// The answer, or that it took too long.
pub(crate) async fn in_time<T>(call: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, Status> {
    match tokio::time::timeout(LIMIT, call).await {
        Ok(answer) => answer.map(tonic::Response::into_inner),
        Err(_elapsed) => Err(Status::deadline_exceeded("no answer in time")),
    }
}

fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(LIMIT);
    request
}

impl Control {
    pub(crate) async fn get_actor(&self, actor: &ActorRef) -> Result<Actor, Status> {
        let mut client = self.client.clone();
        in_time(client.get_actor(request(GetActorRequest { actor: reference(actor) }))).await
    }

    /// The actor's policy; an actor without one has an empty one.
    pub(crate) async fn egress_policy(&self, actor: &ActorRef) -> Result<EgressPolicy, Status> {
        let mut client = self.client.clone();
        let asked = request(GetActorEgressPolicyRequest { actor: reference(actor) });
        match in_time(client.get_actor_egress_policy(asked)).await {
            Err(status) if status.code() == Code::NotFound => Ok(EgressPolicy::default()),
            answer => answer,
        }
    }

    /// A token for this incarnation of the actor.
    pub(crate) async fn actor_jwt(
        &self,
        actor: &ActorRef,
        uid: &str,
        audiences: &[String],
        expiration_seconds: i32,
    ) -> Result<String, Status> {
        let mut client = self.client.clone();
        let asked = MintActorJwtRequest {
            audience: audiences.to_vec(),
            actor: reference(actor),
            actor_uid: uid.to_owned(),
            expiration_seconds,
        };
        Ok(in_time(client.mint_actor_jwt(request(asked))).await?.actor_jwt)
    }
}
