//! The service itself: one question, one answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tonic::Status;

use super::answer::{self, Noted};
use super::question::{Ask, Question};
use super::recent::{Decision, Recent};
use crate::actor_ref::ActorRef;
use crate::assignment::{Disposition, Resolved};
use crate::drain::Drain;
use crate::refusal::Refusal;
use crate::resolve::Resolver;
use crate::telemetry::{Outcome, Telemetry};
use crate::trace::Trace;

/// Answers Envoy's questions. Cheap to clone.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) resolver: Resolver,
    pub(super) telemetry: Telemetry,
    pub(super) recent: Arc<Recent>,
    pub(super) drain: Drain,
}

/// What was decided.
enum Answer {
    Routed(Resolved, u16),
    Opened(u16),
}

impl Service {
    /// The answer to one message of Envoy's, in its frame; `span`: the `traceparent` that came with it. Dropping the
    /// future is the client's leaving.
    pub(super) async fn process(&self, message: &[u8], span: Option<&str>) -> Result<Bytes, Status> {
        let question =
            Question::read(message).map_err(|error| Status::invalid_argument(format!("the message {error}")))?;
        let question = question.ok_or_else(|| Status::invalid_argument("no request headers"))?;
        let trace = self.telemetry.trace(span.or(question.trace));
        Ok(self.decide(&question, &trace).await)
    }

    async fn decide(&self, question: &Question<'_>, trace: &Trace) -> Bytes {
        let mut record = Record::new(self, question, trace);
        let answer = self.ask(question, &mut record).await;
        record.outcome = answer.as_ref().err().map_or(Outcome::Served, |refusal| Outcome::Refused(*refusal));
        let noted = record.noted();
        match (answer, &record.actor) {
            (Ok(Answer::Routed(resolved, port)), _) => answer::routed(&resolved, port, &noted),
            (Ok(Answer::Opened(port)), Some(actor)) => answer::opened(actor, port, &noted),
            (Ok(Answer::Opened(_)), None) => answer::refused(Refusal::Internal, question.grpc, &noted),
            (Err(refusal), _) => answer::refused(refusal, question.grpc, &noted),
        }
    }

    async fn ask(&self, question: &Question<'_>, record: &mut Record<'_>) -> Result<Answer, Refusal> {
        match question.ask()? {
            Ask::Open { actor, port } => {
                record.actor = Some(actor);
                Ok(Answer::Opened(port))
            }
            Ask::Route { actor, port } => {
                record.actor = Some(actor.clone());
                let resolved = self.resolver.resolve_in(&actor, record.trace).await?;
                record.worker = Some(resolved.assignment.worker);
                record.disposition = resolved.disposition;
                Ok(Answer::Routed(resolved, port))
            }
        }
    }
}

/// Notes a request when it drops, whether it was decided or its client left before.
struct Record<'a> {
    service: &'a Service,
    question: &'a Question<'a>,
    trace: &'a Trace,
    started: Instant,
    actor: Option<ActorRef>,
    worker: Option<SocketAddr>,
    disposition: Disposition,
    outcome: Outcome,
}

impl<'a> Record<'a> {
    fn new(service: &'a Service, question: &'a Question<'a>, trace: &'a Trace) -> Self {
        Self {
            service,
            question,
            trace,
            started: Instant::now(),
            actor: None,
            worker: None,
            disposition: Disposition::None,
            outcome: Outcome::ClientGone,
        }
    }

    fn noted(&self) -> Noted<'_> {
        Noted { actor: self.actor.as_ref(), disposition: self.disposition, took: self.started.elapsed() }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        self.service.telemetry.routed(self.outcome, self.disposition, took);
        if let Some(span) = self.trace.take_span() {
            self.service.telemetry.decided(span, self.actor.as_ref(), self.outcome, self.disposition);
        }
        let actor = self.actor.as_ref().map(|actor| actor.as_str().to_owned());
        let decision = Decision { actor, outcome: self.outcome.label(), worker: self.worker, took };
        let asked = (self.question.method, self.question.authority, self.question.path);
        self.service.recent.push(asked, decision);
    }
}
