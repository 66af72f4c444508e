//! From an actor to its assignment: cache, flight, parking, control plane.

mod answer;
mod cache;
mod flight;
mod parking;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::cache::{Cache, Entry};
use self::flight::{Boarding, Flights, Progress, Seat};
use self::parking::{Lot, Parked};
use crate::actor_ref::ActorRef;
use crate::assignment::{Assignment, Disposition, Resolved};
use crate::config::{CacheConfig, ParkingConfig, RouterConfig, millis};
use crate::control::ControlPlane;
use crate::refusal::Refusal;
use crate::telemetry::Telemetry;

/// After a worker denied an actor: the first pause, its growth, and how long the same answer is asked again.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);
const AGAIN_FACTOR: f64 = 1.5;
const AGAIN_LIMIT: Duration = Duration::from_secs(1);

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
        Self::with_parts(&config.cache, &config.parking, config.worker.connect_port, control, telemetry)
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

    /// Requests that wait now, and how many may.
    #[must_use]
    pub fn parked(&self) -> (usize, usize) {
        (self.inner.lot.taken(), self.inner.parking.max)
    }

    /// Where the actor is. `trace`: the request's W3C `traceparent`, if any.
    ///
    /// Dropping the future frees this caller's parking place and harms nobody else.
    pub async fn resolve(&self, actor: &ActorRef, trace: Option<&str>) -> Result<Resolved, Refusal> {
        if let Some(entry) = self.inner.cache.get(actor) {
            self.inner.telemetry.cache_hit();
            return Ok(cached(entry));
        }
        self.inner.telemetry.cache_miss();
        match flight::board(&self.inner, actor, trace) {
            Boarding::Landed(entry) => Ok(cached(entry)),
            Boarding::Seat(seat) => self.ride(seat).await,
        }
    }

    /// Where the actor is now that the worker of `refused` denied it or could not be reached.
    ///
    /// Forgets that answer and asks again, after a pause, until the control plane names something else. It may repeat
    /// itself for a while; after a second at most the same assignment is given back, to be tried once more.
    pub async fn resolve_again(
        &self,
        actor: &ActorRef,
        refused: &Resolved,
        trace: Option<&str>,
    ) -> Result<Resolved, Refusal> {
        let ends = Instant::now() + AGAIN_LIMIT;
        let mut pause = AGAIN_PAUSE;
        let mut generation = refused.generation;
        self.inner.telemetry.stale_retry();
        loop {
            self.forget(actor, generation);
            tokio::time::sleep(pause).await;
            let found = self.resolve(actor, trace).await?;
            pause = pause.mul_f64(AGAIN_FACTOR);
            if found.assignment != refused.assignment || Instant::now() + pause > ends {
                return Ok(found);
            }
            generation = found.generation;
        }
    }

    /// Drops the actor's cache entry if it is still that generation.
    pub fn forget(&self, actor: &ActorRef, generation: u64) {
        self.inner.cache.forget(actor, generation);
    }

    async fn ride(&self, mut seat: Seat) -> Result<Resolved, Refusal> {
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
                Progress::Done(result) => {
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
