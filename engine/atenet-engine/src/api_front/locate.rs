//! A router's stream of look-ups: for each actor that it asks about, what the store says then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http_body::Body;
use hyper::body::Incoming;

use super::Shared;
use super::forward::GONE;
use super::warm::{LONGEST, actor_in};
use crate::config::WarmMethod;
use crate::drain::Drain;
use crate::grpc::{PREFIX, extent, joined};

const INVALID: HeaderValue = HeaderValue::from_static("3");
const OK: HeaderValue = HeaderValue::from_static("0");
/// Answers go out when they are so long, whatever else was asked.
const PROMPT: usize = 64 << 10;
/// An answer without an actor.
const NOWHERE: &[u8] = &[0; PREFIX];

/// Questions in, answers out, in order.
pub(super) struct Located {
    questions: Incoming,
    unread: Bytes,
    shared: Arc<Shared>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// What comes next.
pub(super) enum Next {
    Answers(Bytes),
    /// With this status.
    End(HeaderValue),
}

impl Located {
    pub(super) fn new(questions: Incoming, shared: Arc<Shared>, drain: Drain) -> Self {
        let draining = Box::pin(async move { drain.draining().await });
        Self { questions, unread: Bytes::new(), shared, draining }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            match self.answers() {
                Ok(answers) if answers.is_empty() => {}
                Ok(answers) => return Poll::Ready(Next::Answers(answers)),
                Err(problem) => {
                    tracing::debug!(problem, "a question about an actor cannot be read");
                    return Poll::Ready(Next::End(INVALID));
                }
            }
            if self.draining.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Next::End(GONE));
            }
            match ready!(Pin::new(&mut self.questions).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.unread = joined(std::mem::take(&mut self.unread), data);
                }
                Some(Err(_)) => return Poll::Ready(Next::End(GONE)),
                None if self.unread.is_empty() => return Poll::Ready(Next::End(OK)),
                None => return Poll::Ready(Next::End(INVALID)),
            }
        }
    }

    /// To the whole questions that were read, as far as they go out at once.
    fn answers(&mut self) -> Result<Bytes, &'static str> {
        let mut answers = BytesMut::new();
        while answers.len() < PROMPT {
            match extent(&self.unread)? {
                Some(end) if end > LONGEST => return Err("is too long"),
                Some(end) if end <= self.unread.len() => {
                    let question = self.unread.split_to(end);
                    let actor = actor_in(WarmMethod::Locate, question.slice(PREFIX..));
                    let found = actor.and_then(|actor| self.shared.actors.answer(WarmMethod::Locate, &actor));
                    if found.is_some() {
                        self.shared.answered.of(WarmMethod::Locate).fetch_add(1, Ordering::Relaxed);
                    }
                    answers.extend_from_slice(found.as_deref().unwrap_or(NOWHERE));
                }
                _ => break,
            }
        }
        Ok(answers.freeze())
    }
}
