//! One look-up in the air per actor, which belongs to nobody.
//!
//! A flight is a task of its own: callers come and go, it goes on. It ends when it has an answer, when its patience
//! does, or, between two attempts, when nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tonic::{Code, Status};

use super::answer::{self, Verdict};
use super::cache::Entry;
use super::parking::{Next, Patience};
use super::{Answer, Inner};
use crate::actor_ref::{ActorRef, ByActor};
use crate::assignment::Assignment;
use crate::refusal::Refusal;
use crate::trace::{Span, SpanContext};

/// What the callers of a flight see.
#[derive(Clone)]
pub(super) enum Progress {
    /// The first attempt is in the air.
    Asking,
    /// An answer was retryable: from here on each caller needs a place in the lot, if there is one.
    Waiting { parked: bool },
    /// `span`: the look-up's own, if it is recorded.
    Done { result: Result<Answer, Refusal>, span: Option<SpanContext> },
}

struct Flight {
    progress: watch::Sender<Progress>,
    callers: AtomicUsize,
    /// News that make another attempt worth while, also one that is in the air when they come.
    wake: Notify,
    /// The incarnation and version below which assignments are known to be over.
    ended: Mutex<Option<(String, i64)>>,
}

/// The flights now in the air.
#[derive(Default)]
pub(super) struct Flights(Mutex<ByActor<Arc<Flight>>>);

impl Flights {
    /// Some flights ask again at once: one slot does not serve a thousand. Those that wait come first; one whose attempt
    /// is in the air may have been answered before there was room.
    pub(super) fn wake_some(&self, limit: usize) {
        let flights = self.0.lock();
        let waiting = flights.values().filter(|flight| flight.waits());
        let asking = flights.values().filter(|flight| !flight.waits());
        for flight in waiting.chain(asking).take(limit) {
            flight.wake.notify_one();
        }
    }

    /// All of them do.
    pub(super) fn wake_all(&self) {
        for flight in self.0.lock().values() {
            flight.wake.notify_one();
        }
    }

    /// The actor's does; an answer of a lower version that comes in late does not count.
    pub(super) fn ended(&self, actor: &ActorRef, uid: &str, version: i64) {
        if let Some(flight) = self.0.lock().get(actor) {
            *flight.ended.lock() = Some((uid.to_owned(), version));
            flight.wake.notify_one();
        }
    }
}

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
    let flight = Arc::new(Flight {
        progress: watch::Sender::new(Progress::Asking),
        callers: AtomicUsize::new(0),
        wake: Notify::new(),
        ended: Mutex::default(),
    });
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

    fn waits(&self) -> bool {
        matches!(*self.progress.borrow(), Progress::Waiting { .. })
    }

    /// Whether the answer was true once and is known not to be any more.
    fn outlived(&self, assignment: &Assignment) -> bool {
        let ended = self.ended.lock();
        ended.as_ref().is_some_and(|(uid, version)| *assignment.actor_uid == **uid && assignment.version < *version)
    }
}

/// Takes the flight out of the table whatever happens to its task, so that nobody joins a dead one.
struct Landing {
    inner: Arc<Inner>,
    actor: ActorRef,
    flight: Arc<Flight>,
}

impl Landing {
    fn land(self, result: Result<Answer, Refusal>, span: Option<SpanContext>) {
        self.clear();
        self.flight.progress.send_replace(Progress::Done { result, span });
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
            let lost = !matches!(progress, Progress::Done { .. });
            if lost {
                *progress = Progress::Done { result: Err(Refusal::Internal), span: None };
            }
            lost
        });
    }
}

async fn fly(landing: Landing, trace: Option<String>) {
    let span = landing.inner.telemetry.call_span(trace.as_deref());
    let header = span.as_ref().map(|span| span.context().header()).or(trace);
    let mut attempts = 0;
    let result = ask(&landing, header.as_deref(), &mut attempts).await;
    let context = span.as_ref().map(Span::context);
    if let Some(span) = span {
        landing.inner.telemetry.send(described(span, &landing.actor, attempts, result.as_ref()));
    }
    if let Some(result) = result {
        landing.land(result, context);
    }
}

/// What the look-up's span says.
fn described(mut span: Span, actor: &ActorRef, attempts: u32, result: Option<&Result<Answer, Refusal>>) -> Span {
    span.name("ateapi.Control/ResumeActor");
    for (key, value) in [("rpc.system", "grpc"), ("rpc.service", "ateapi.Control"), ("rpc.method", "ResumeActor")] {
        span.text(key, value);
    }
    span.text("ate.atespace", actor.atespace());
    span.text("ate.actor", actor.name());
    span.number("ate.resume.attempts", attempts.into());
    let outcome = match result {
        Some(Ok(_)) => "ok",
        Some(Err(refusal)) => refusal.reason(),
        None => "abandoned",
    };
    span.text("ate.router.outcome", outcome);
    if !matches!(result, Some(Ok(_))) {
        span.failed(outcome);
    }
    span
}

/// Attempts until there is a result. `None`: nobody waits for one any more.
async fn ask(landing: &Landing, trace: Option<&str>, attempts: &mut u32) -> Option<Result<Answer, Refusal>> {
    let patience = Patience::new(&landing.inner.parking, Instant::now());
    *attempts = 1;
    match attempt(landing, trace).await {
        Ok(answer) => Some(Ok(answer)),
        // Boxed: a flight that lands at once needs none of it.
        Err(verdict) => Box::pin(ask_again(landing, trace, attempts, (patience, verdict))).await,
    }
}

/// The same after a first attempt that came to this verdict.
async fn ask_again(
    landing: &Landing,
    trace: Option<&str>,
    attempts: &mut u32,
    (mut patience, mut verdict): (Patience, Verdict),
) -> Option<Result<Answer, Refusal>> {
    // When the next attempt is due, if news brought the last one forward.
    let mut due: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let next = match due.filter(|due| *due > now) {
            Some(due) => patience.before(verdict, now, due),
            None => patience.after(verdict, now, fastrand::f64()),
        };
        let (at, or) = match next {
            Next::Refuse(refusal) => return Some(Err(refusal)),
            Next::Wait { at, or, parked } => {
                landing.flight.progress.send_replace(Progress::Waiting { parked });
                (at, or)
            }
        };
        tokio::select! {
            () = tokio::time::sleep_until(at) => due = None,
            () = landing.flight.wake.notified() => due = Some(at),
        }
        if landing.abandoned() {
            return None;
        }
        if patience.spent(Instant::now()) {
            return Some(Err(or));
        }
        *attempts += 1;
        verdict = match attempt(landing, trace).await {
            Ok(answer) => return Some(Ok(Answer { woken: true, ..answer })),
            Err(verdict) => verdict,
        };
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
    if landing.flight.outlived(&assignment) {
        return Err(Verdict::Contended(Refusal::ActorUnavailable));
    }
    let assignment = Arc::new(assignment);
    let generation = inner.cache.put(assignment.clone());
    Ok(Answer { assignment, generation, woken })
}
