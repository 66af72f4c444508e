//! What the control plane tells by itself: `ateapi.RouterSupport/Watch`.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tonic::Status;

use super::connection::Connection;
use crate::actor_ref::ActorRef;
use crate::proto::router_support_client::RouterSupportClient;
use crate::proto::watch_event::Event;
use crate::proto::{WatchEvent, WatchRequest};

/// The first event comes with the answer's head.
const OPENING_LIMIT: Duration = Duration::from_secs(10);

/// One thing that a router is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Something may have been missed.
    Synced,
    /// A resume that found no room is worth another try.
    CapacityFreed,
    /// Assignments of lower versions of this incarnation are over.
    AssignmentEnded { actor: ActorRef, uid: String, version: i64 },
}

/// Ends, or fails, when no more will be told.
pub type NewsStream = BoxStream<'static, Result<News, Status>>;

pub(super) async fn watch(connection: Connection) -> Result<NewsStream, Status> {
    let mut client = RouterSupportClient::new(connection);
    let opening = client.watch(WatchRequest {});
    let answer = tokio::time::timeout(OPENING_LIMIT, opening)
        .await
        .map_err(|_elapsed| Status::deadline_exceeded("Watch took too long to begin"))??;
    let told = answer.into_inner().filter_map(|event| std::future::ready(event.map(read).transpose()));
    Ok(told.boxed())
}

/// `None`: a later control plane tells of what this router does not know.
fn read(event: WatchEvent) -> Option<News> {
    match event.event? {
        Event::Synced(_) => Some(News::Synced),
        Event::CapacityFreed(_) => Some(News::CapacityFreed),
        Event::AssignmentEnded(ended) => {
            let actor = ended.actor?;
            let actor = ActorRef::new(&actor.atespace, &actor.name).ok()?;
            Some(News::AssignmentEnded { actor, uid: ended.actor_uid, version: ended.version })
        }
    }
}
