//! From an actor to its assignment: cache, flight, parking, control plane.

mod answer;
mod cache;
mod flight;
mod news;
mod parking;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tonic::Code;

use self::cache::{Cache, Entry};
use self::flight::{Boarding, Flights, Progress, Seat};
use self::parking::{Lot, Parked};
use crate::actor_ref::ActorRef;
use crate::assignment::{Assignment, Disposition, Resolved};
use crate::config::{CacheConfig, ParkingConfig, RouterConfig, millis};
use crate::control::ControlPlane;
use crate::refusal::Refusal;
use crate::telemetry::Telemetry;
use crate::trace::Trace;

/// Finds out where an actor is, waking it if it sleeps. One for the process. Cheap to clone.
#[derive(Clone)]
pub struct Resolver {
    inner: Arc<Inner>,
}

struct Inner {
    cache: Cache,
    flights: Flights,
    lot: Lot,
    parking: ParkingConfig,
    connect_port: u16,
    control: Arc<dyn ControlPlane>,
    telemetry: Telemetry,
}

/// What a flight brought home.
#[derive(Clone)]
struct Answer {
    assignment: Arc<Assignment>,
    generation: u64,
    /// The resume workflow ran, or the flight waited for room.
    woken: bool,
}

impl Resolver {
    #[must_use]
    pub fn new(config: &RouterConfig, control: Arc<dyn ControlPlane>, telemetry: Telemetry) -> Self {
        // A configuration without workers has no listeners, and asks for nobody.
        let port = config.worker.as_ref().map_or(0, |worker| worker.connect_port);
        Self::with_parts(&config.cache, &config.parking, port, control, telemetry)
    }

    /// From the parts of a configuration that it needs.
    #[must_use]
    pub fn with_parts(
        cache: &CacheConfig,
        parking: &ParkingConfig,
        connect_port: u16,
        control: Arc<dyn ControlPlane>,
        telemetry: Telemetry,
    ) -> Self {
        let inner = Inner {
            cache: Cache::new(millis(cache.ttl_ms), cache.entries),
            flights: Flights::default(),
            lot: Lot::new(parking.max, telemetry.clone()),
            parking: parking.clone(),
            connect_port,
            control,
            telemetry,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes in what the control plane tells by itself, for as long as a clone of this lives. To be called on a runtime.
    pub fn follow_news(&self) {
        tokio::spawn(news::follow(Arc::downgrade(&self.inner)));
    }

    /// Requests that wait now, and how many may.
    #[must_use]
    pub fn parked(&self) -> (usize, usize) {
        (self.inner.lot.taken(), self.inner.parking.max)
    }

    /// Where the actor is, in the trace of a request.
    ///
    /// Dropping the future frees this caller's parking place and harms nobody else.
    pub async fn resolve_in(&self, actor: &ActorRef, trace: &Trace) -> Result<Resolved, Refusal> {
        if let Some(entry) = self.inner.cache.get(actor) {
            self.inner.telemetry.cache_hit();
            return Ok(cached(entry));
        }
        self.inner.telemetry.cache_miss();
        // Where nothing is remembered most look-ups find their actor running, and need no flight. A trace follows a call.
        if self.inner.cache.keeps_nothing()
            && trace.header().is_none()
            && let Some(resolved) = self.inner.located(actor).await
        {
            return Ok(resolved);
        }
        match flight::board(&self.inner, actor, trace.header()) {
            Boarding::Landed(entry) => Ok(cached(entry)),
            // Boxed: a request that finds its actor in the cache needs none of it.
            Boarding::Seat(seat) => Box::pin(self.ride(seat, trace)).await,
        }
    }

    /// Drops the actor's cache entry if it is still that generation: its worker denied the actor or is gone.
    pub fn forget(&self, actor: &ActorRef, generation: u64) {
        self.inner.telemetry.stale_retry();
        self.inner.cache.forget(actor, generation);
    }

    async fn ride(&self, mut seat: Seat, trace: &Trace) -> Result<Resolved, Refusal> {
        let mut place: Option<Parked> = None;
        loop {
            let progress = seat.progress.borrow_and_update().clone();
            match progress {
                Progress::Asking => {}
                Progress::Waiting { parked } => {
                    if parked && place.is_none() {
                        place = Some(self.inner.lot.park().ok_or(Refusal::ParkingFull)?);
                    }
                }
                Progress::Done { result, span } => {
                    if let Some(span) = span.filter(|_| !seat.first) {
                        trace.link(span);
                    }
                    if let Some(place) = place {
                        place.leave(&result);
                    }
                    return result.map(|answer| landed(answer, seat.first));
                }
            }
            if seat.progress.changed().await.is_err() {
                return Err(Refusal::Internal);
            }
        }
    }
}

impl Inner {
    /// The actor where it runs now.
    async fn located(&self, actor: &ActorRef) -> Option<Resolved> {
        let response = self.control.locate(actor).await?;
        self.telemetry.resume_call(Code::Ok);
        // What cannot be used is looked at again, and told of, by an attempt.
        let assignment = Arc::new(answer::assignment(response, actor, self.connect_port).ok()?);
        let generation = self.cache.put(assignment.clone());
        Some(Resolved { assignment, disposition: Disposition::None, cached: false, generation })
    }
}

fn cached(Entry { assignment, generation, .. }: Entry) -> Resolved {
    Resolved { assignment, disposition: Disposition::None, cached: true, generation }
}

fn landed(answer: Answer, first: bool) -> Resolved {
    let disposition = match (answer.woken, first) {
        (false, _) => Disposition::None,
        (true, true) => Disposition::Triggered,
        (true, false) => Disposition::Joined,
    };
    Resolved { assignment: answer.assignment, disposition, cached: false, generation: answer.generation }
}
