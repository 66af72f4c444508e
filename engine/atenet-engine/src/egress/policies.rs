//! Reading policies: each decision's policy is read after the decision was asked for (row E-17), and decisions of one
//! actor that wait at the same time share a reading.
//!
//! One reading is in the air for an actor. Whoever comes meanwhile waits for the next one, which begins when this one
//! has ended, so nobody is judged by what was read before it asked. A burst costs two readings, not one for each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tonic::Code;

use crate::actor_ref::ActorRef;
use crate::control::Control;
use crate::proto::EgressPolicy;

type Read = Result<Arc<EgressPolicy>, Code>;

/// Who waits for an actor's next reading. An actor is in it while a reading of its policy is in the air.
type Waiting = HashMap<ActorRef, Vec<oneshot::Sender<Read>>>;

/// Cheap to clone; clones share readings.
#[derive(Clone)]
pub(super) struct Policies {
    control: Control,
    waiting: Arc<Mutex<Waiting>>,
}

impl Policies {
    pub(super) fn new(control: Control) -> Self {
        Self { control, waiting: Arc::default() }
    }

    /// The actor's policy, read after this was called; empty when it has none.
    pub(super) async fn read(&self, actor: &ActorRef) -> Read {
        let (tell, told) = oneshot::channel();
        match self.waiting.lock().entry(actor.clone()) {
            Entry::Occupied(mut next) => next.get_mut().push(tell),
            Entry::Vacant(free) => {
                free.insert(vec![tell]);
                tokio::spawn(self.clone().serve(actor.clone()));
            }
        }
        // Not told: the runtime is ending.
        told.await.unwrap_or(Err(Code::Cancelled))
    }

    /// Reads again and again until nobody waits.
    async fn serve(self, actor: ActorRef) {
        while let Some(asking) = self.next(&actor) {
            let read = self.control.egress_policy(&actor).await.map(Arc::new).map_err(|status| status.code());
            for tell in asking {
                // Whoever has left needs no answer.
                let _left = tell.send(read.clone());
            }
        }
    }

    fn next(&self, actor: &ActorRef) -> Option<Vec<oneshot::Sender<Read>>> {
        let mut waiting = self.waiting.lock();
        let asking = std::mem::take(waiting.get_mut(actor)?);
        if asking.is_empty() {
            waiting.remove(actor);
            return None;
        }
        Some(asking)
    }
}
