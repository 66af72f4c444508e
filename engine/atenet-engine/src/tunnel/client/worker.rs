//! The connections to one worker: made under single flight, a further one only past the peer's stream limit.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::connection::{Connection, Slot};
use super::{Limits, OpenError};
use crate::spiffe::SpiffeId;
use crate::telemetry::Telemetry;
use crate::tls::ClientTls;

/// One worker, as (address, identity).
pub(super) struct Worker {
    tls: ClientTls,
    limits: Limits,
    telemetry: Telemetry,
    address: SocketAddr,
    id: SpiffeId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: Vec<Arc<Connection>>,
    dialling: Option<Dial>,
}

type Dial = watch::Receiver<Option<Result<(), String>>>;

impl Worker {
    pub(super) fn new(tls: ClientTls, limits: Limits, telemetry: Telemetry, who: (SocketAddr, SpiffeId)) -> Self {
        Self { tls, limits, telemetry, address: who.0, id: who.1, state: Mutex::default() }
    }

    /// A place on a connection, made if need be. Whoever waits shares one dial and its error.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<(Arc<Connection>, Slot), OpenError> {
        loop {
            let mut dial = match self.place_or_dial() {
                Ok(place) => return Ok(place),
                Err(dial) => dial,
            };
            let outcome = dial.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
            match outcome {
                Ok(Some(Err(error))) => return Err(OpenError::Unreachable(error)),
                Ok(_) => {}
                Err(_) => return Err(OpenError::Unreachable("the dial was given up".into())),
            }
        }
    }

    fn place_or_dial(self: &Arc<Self>) -> Result<(Arc<Connection>, Slot), Dial> {
        let mut state = self.state.lock();
        state.connections.retain(|c| c.usable());
        if let Some(place) = state.connections.iter().find_map(Connection::try_slot) {
            return Ok(place);
        }
        if let Some(dial) = &state.dialling {
            return Err(dial.clone());
        }
        let (done, dial) = watch::channel(None);
        state.dialling = Some(dial.clone());
        drop(state);
        // A task of its own: the dial belongs to everyone who waits, not to who came first.
        tokio::spawn(self.clone().dial(done));
        Err(dial)
    }

    async fn dial(self: Arc<Self>, done: watch::Sender<Option<Result<(), String>>>) {
        let result = Connection::dial(&self.tls, self.limits, &self.telemetry, (self.address, &self.id)).await;
        let mut state = self.state.lock();
        state.dialling = None;
        let outcome = result.map(|connection| state.connections.push(connection));
        drop(state);
        if let Err(error) = &outcome {
            tracing::info!(worker = %self.address, %error, "cannot reach a worker");
        }
        // Nobody may be waiting any more.
        let _nobody = done.send(Some(outcome));
    }

    /// Whether nothing is held for this worker.
    pub(super) fn is_vacant(&self) -> bool {
        let mut state = self.state.lock();
        state.connections.retain(|c| c.usable());
        state.connections.is_empty() && state.dialling.is_none()
    }
}
