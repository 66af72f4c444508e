//! One look-up in the air per actor, which belongs to nobody.
//!
//! A flight is a task of its own: callers come and go, it goes on. It ends when it has an answer, when its patience
//! does, or, between two attempts, when nobody waits for it any more.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::answer::{self, Verdict};
use super::cache::Entry;
use super::parking::{Next, Patience};
use super::{Answer, Inner};
use crate::actor_ref::ActorRef;
use crate::refusal::Refusal;

/// What the callers of a flight see.
#[derive(Clone)]
pub(super) enum Progress {
    /// The first attempt is in the air.
    Asking,
    /// An answer was retryable: from here on each caller needs a place in the lot, if there is one.
    Waiting {
        parked: bool,
    },
    Done(Result<Answer, Refusal>),
}

struct Flight {
    progress: watch::Sender<Progress>,
    callers: AtomicUsize,
}

/// The flights now in the air.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<ActorRef, Arc<Flight>>>);

#[cfg(test)]
impl Flights {
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// A caller's seat; dropping it leaves the flight.
pub(super) struct Seat {
    flight: Arc<Flight>,
    pub(super) progress: watch::Receiver<Progress>,
    /// This caller started the flight.
    pub(super) first: bool,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.flight.callers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a caller finds.
pub(super) enum Boarding {
    Seat(Seat),
    /// A flight landed since the caller looked into the cache.
    Landed(Entry),
}

/// Joins the actor's flight or starts one.
pub(super) fn board(inner: &Arc<Inner>, actor: &ActorRef, trace: Option<&str>) -> Boarding {
    let mut flights = inner.flights.0.lock();
    if let Some(flight) = flights.get(actor) {
        return Boarding::Seat(flight.seat(false));
    }
    // A flight fills the cache before it leaves the table, so under this lock one of the two shows its answer.
    if let Some(entry) = inner.cache.get(actor) {
        return Boarding::Landed(entry);
    }
    let flight = Arc::new(Flight { progress: watch::Sender::new(Progress::Asking), callers: AtomicUsize::new(0) });
    let seat = flight.seat(true);
    flights.insert(actor.clone(), flight.clone());
    drop(flights);
    let landing = Landing { inner: inner.clone(), actor: actor.clone(), flight };
    tokio::spawn(fly(landing, trace.map(str::to_owned)));
    Boarding::Seat(seat)
}

impl Flight {
    fn seat(self: &Arc<Self>, first: bool) -> Seat {
        self.callers.fetch_add(1, Ordering::AcqRel);
        Seat { flight: self.clone(), progress: self.progress.subscribe(), first }
    }
}

/// Takes the flight out of the table whatever happens to its task, so that nobody joins a dead one.
struct Landing {
    inner: Arc<Inner>,
    actor: ActorRef,
    flight: Arc<Flight>,
}

impl Landing {
    fn land(self, result: Result<Answer, Refusal>) {
        self.clear();
        self.flight.progress.send_replace(Progress::Done(result));
    }

    fn clear(&self) {
        let mut flights = self.inner.flights.0.lock();
        if flights.get(&self.actor).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            flights.remove(&self.actor);
        }
    }

    /// True if nobody is on board; then nobody can board any more either.
    fn abandoned(&self) -> bool {
        let mut flights = self.inner.flights.0.lock();
        let empty = self.flight.callers.load(Ordering::Acquire) == 0;
        if empty {
            flights.remove(&self.actor);
        }
        empty
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.clear();
        // Nothing to do after a landing; after a panic the callers must not wait for ever.
        self.flight.progress.send_if_modified(|progress| {
            let lost = !matches!(progress, Progress::Done(_));
            if lost {
                *progress = Progress::Done(Err(Refusal::Internal));
            }
            lost
        });
    }
}

async fn fly(landing: Landing, trace: Option<String>) {
    let mut patience = Patience::new(&landing.inner.parking, Instant::now());
    let mut waited = false;
    loop {
        let verdict = match attempt(&landing, trace.as_deref()).await {
            Ok(mut answer) => {
                answer.woken |= waited;
                return landing.land(Ok(answer));
            }
            Err(verdict) => verdict,
        };
        let (at, or) = match patience.after(verdict, Instant::now(), fastrand::f64()) {
            Next::Refuse(refusal) => return landing.land(Err(refusal)),
            Next::Wait { at, or, parked } => {
                landing.flight.progress.send_replace(Progress::Waiting { parked });
                (at, or)
            }
        };
        waited = true;
        tokio::time::sleep_until(at).await;
        if landing.abandoned() {
            return;
        }
        if patience.spent(Instant::now()) {
            return landing.land(Err(or));
        }
    }
}

async fn attempt(landing: &Landing, trace: Option<&str>) -> Result<Answer, Verdict> {
    let Landing { inner, actor, .. } = landing;
    let result = inner.control.resume(actor, trace).await;
    inner.telemetry.resume_call(result.as_ref().err().map_or(Code::Ok, Status::code));
    let response = match result {
        Ok(response) => response,
        Err(status) => {
            let verdict = answer::verdict(&status, actor);
            tracing::debug!(%actor, code = ?status.code(), message = status.message(), ?verdict, "ResumeActor failed");
            return Err(verdict);
        }
    };
    let woken = response.resumed;
    let assignment = answer::assignment(response, actor, inner.connect_port).map_err(|problem| {
        tracing::error!(%actor, problem, "the control plane's answer cannot be used");
        Verdict::Final(Refusal::Internal)
    })?;
    let assignment = Arc::new(assignment);
    let generation = inner.cache.put(assignment.clone());
    Ok(Answer { assignment, generation, woken })
}
