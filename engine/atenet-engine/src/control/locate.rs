//! Where running actors are, asked on one stream for all requests of a router: `ateapi.RouterSupport/Locate`.
//!
//! Each look-up is a question of its own, and its answer what the control plane's store says then; only the stream is
//! shared, which spares each look-up one of its own. Whoever gets no answer here asks `ResumeActor`.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::client::ResponseFuture;
use http::Response;
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::oneshot;

use super::call::Method;
use super::connection::{Connection, Opened};
use crate::actor_ref::ActorRef;
use crate::grpc::{PREFIX, extent, framed, joined};
use crate::pipe::{H2Sink, H2Source, Outbox, Sink, Source};
use crate::proto::{LocateRequest, LocateResponse, ObjectRef, ResumeActorResponse};

pub(super) const PATH: &str = "/ateapi.RouterSupport/Locate";
/// Questions that wait for an answer; more are asked otherwise.
const LIMIT: usize = 1 << 16;
/// As tonic's clients have it.
const LONGEST: usize = 4 << 20;

type Answer = oneshot::Sender<ResumeActorResponse>;

/// The stream, opened with the first question on a connection.
#[derive(Default)]
pub(super) struct Locator(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Closed,
    Open(Arc<Line>),
    /// The peer of that connection does not answer such questions.
    Lacking(u64),
}

impl Locator {
    /// The actor as `ResumeActor` would answer; none if it does not run, or if that is not to be learned here.
    pub(super) async fn ask(
        self: &Arc<Self>,
        connection: &Connection,
        method: &Method,
        actor: &ActorRef,
    ) -> Option<ResumeActorResponse> {
        let answer = self.line(connection, method)?.put(actor)?;
        answer.await.ok().filter(|answer| answer.actor.is_some())
    }

    fn line(self: &Arc<Self>, connection: &Connection, method: &Method) -> Option<Arc<Line>> {
        let mut state = self.0.lock();
        match &*state {
            State::Open(line) => return Some(line.clone()),
            State::Lacking(of) if *of == connection.number() => return None,
            State::Lacking(_) | State::Closed => {}
        }
        let number = connection.number();
        let opening = connection.begin(method.endless())?;
        let line = Arc::<Line>::default();
        *state = State::Open(line.clone());
        drop(state);
        let ending = Ending { locator: Arc::downgrade(self), line: line.clone(), state: State::Closed };
        tokio::spawn(ending.after(opening, number));
        Some(line)
    }
}

impl Drop for Locator {
    fn drop(&mut self) {
        if let State::Open(line) = self.0.get_mut() {
            line.close();
        }
    }
}

/// Leaves nobody waiting, whatever became of the stream's task.
struct Ending {
    locator: Weak<Locator>,
    line: Arc<Line>,
    state: State,
}

impl Ending {
    async fn after(mut self, opening: impl Future<Output = Result<Opened, h2::Error>>, number: u64) {
        let refused = match opening.await {
            Ok(stream) => matches!(self.line.drive(stream).await, End::Refused),
            Err(_) => false,
        };
        if refused {
            self.state = State::Lacking(number);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(locator) = self.locator.upgrade() {
            *locator.0.lock() = std::mem::take(&mut self.state);
        }
        self.line.close();
    }
}

/// One stream's questions.
#[derive(Default)]
struct Line(Mutex<Questions>);

#[derive(Default)]
struct Questions {
    unsent: BytesMut,
    /// Answers come in the order of the questions.
    waiting: VecDeque<Answer>,
    driver: Option<Waker>,
    over: bool,
}

impl Line {
    fn put(&self, actor: &ActorRef) -> Option<oneshot::Receiver<ResumeActorResponse>> {
        let actor = ObjectRef { atespace: actor.atespace().to_owned(), name: actor.name().to_owned() };
        let question = framed(&LocateRequest { actor: Some(actor) });
        let (sender, receiver) = oneshot::channel();
        let mut questions = self.0.lock();
        if questions.over || questions.waiting.len() >= LIMIT {
            return None;
        }
        questions.unsent.extend_from_slice(&question);
        questions.waiting.push_back(sender);
        if let Some(driver) = questions.driver.take() {
            driver.wake();
        }
        Some(receiver)
    }

    /// Whoever waits asks elsewhere.
    fn close(&self) {
        let mut questions = self.0.lock();
        questions.over = true;
        questions.waiting.clear();
        if let Some(driver) = questions.driver.take() {
            driver.wake();
        }
    }

    /// Until the stream ends.
    async fn drive(&self, (response, stream): Opened) -> End {
        let mut talk = Talk { response: Some(response), source: None, sink: H2Sink::new(stream), read: Bytes::new() };
        let mut out = Outbox::default();
        poll_fn(|cx| {
            let unsent = {
                let mut questions = self.0.lock();
                if questions.over {
                    return Poll::Ready(End::Over);
                }
                questions.driver = Some(cx.waker().clone());
                questions.unsent.split().freeze()
            };
            out.push(unsent);
            let sent = talk.sink.poll_send(cx, &mut out).map_err(|error| over(&error));
            if let Poll::Ready(Err(end)) = sent {
                return Poll::Ready(end);
            }
            talk.poll_answers(cx, &self.0)
        })
        .await
    }
}

enum End {
    Refused,
    Over,
}

fn over(why: &dyn std::fmt::Display) -> End {
    tracing::debug!(%why, "the stream of look-ups ended");
    End::Over
}

/// The stream as it is used here.
struct Talk {
    response: Option<ResponseFuture>,
    source: Option<H2Source>,
    sink: H2Sink,
    /// The beginning of an answer.
    read: Bytes,
}

impl Talk {
    /// Hands out what has come; ready at the end.
    fn poll_answers(&mut self, cx: &mut Context<'_>, questions: &Mutex<Questions>) -> Poll<End> {
        if let Some(response) = &mut self.response {
            match ready!(Pin::new(response).poll(cx)) {
                Ok(response) if accepted(&response) => self.source = Some(H2Source::new(response.into_body())),
                Ok(_) => return Poll::Ready(End::Refused),
                Err(error) => return Poll::Ready(over(&error)),
            }
            self.response = None;
        }
        let Some(source) = &mut self.source else { return Poll::Pending };
        loop {
            let chunk = match ready!(source.poll_chunk(cx)) {
                Ok(chunk) if chunk.is_empty() => return Poll::Ready(over(&"the control plane ended it")),
                Ok(chunk) => chunk,
                Err(error) => return Poll::Ready(over(&error)),
            };
            self.read = joined(std::mem::take(&mut self.read), chunk);
            if let Err(problem) = answers(&mut self.read, &mut questions.lock().waiting) {
                return Poll::Ready(over(&problem));
            }
        }
    }
}

/// A refusal is a head with a status.
fn accepted(response: &Response<RecvStream>) -> bool {
    response.status() == http::StatusCode::OK && !response.headers().contains_key("grpc-status")
}

/// Gives each whole answer to who waits for it.
fn answers(read: &mut Bytes, waiting: &mut VecDeque<Answer>) -> Result<(), String> {
    while let Some(end) = extent(read)? {
        if end > LONGEST {
            return Err("is too long".into());
        }
        if end > read.len() {
            break;
        }
        let message = read.split_to(end).slice(PREFIX..);
        let located = LocateResponse::decode(message).map_err(|error| error.to_string())?;
        let asked = waiting.pop_front().ok_or("answers what nobody asked")?;
        // Its caller may have left.
        let _gone = asked.send(ResumeActorResponse { actor: located.actor, resumed: false });
    }
    Ok(())
}
