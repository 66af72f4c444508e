//! A refusal as an answer (rows I-23, I-24 and E-22).

use std::borrow::Cow;

use bytes::Bytes;
use http::{Method, StatusCode};

use super::headers::push_length;
use super::party::Responder;
use crate::http1::{Framing, HeadError, ResponseHead};
use crate::refusal::{Dataplane, Refusal};

const PLANE: Dataplane = Dataplane::Agentgateway;

/// One row of an error table, as it is told.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The `ate-reason` token.
    pub(crate) reason: &'static str,
    /// One line, without the newline.
    pub(crate) body: Cow<'static, str>,
    pub(crate) grpc_status: u8,
    /// Seconds.
    pub(crate) retry_after: Option<u16>,
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self {
            status: refusal.status(PLANE),
            reason: refusal.reason(),
            body: refusal.body().into(),
            grpc_status: refusal.grpc_status(PLANE),
            retry_after: refusal.retry_after(),
        }
    }
}

/// Who asked, as far as the answer's form depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    /// A gRPC caller: a trailers-only answer.
    pub(crate) grpc: bool,
    /// What to try instead, for a 405.
    pub(crate) allow: &'static str,
}

/// What a head that could not be read is told.
pub(crate) fn refusal_of(error: HeadError) -> Refusal {
    match error {
        HeadError::TooLarge => Refusal::HeadTooLarge,
        _ => Refusal::BadRequest,
    }
}

/// Queues the whole answer; returns its status.
pub(crate) fn refuse<R: Responder>(responder: &mut R, answer: impl Into<Answer>, asked: Asked<'_>) -> StatusCode {
    let answer = &answer.into();
    let mut head = ResponseHead::default();
    if asked.grpc {
        grpc_head(&mut head, answer);
        responder.start(&mut head, Framing::Empty);
        responder.end(None);
        return head.status;
    }
    let body = Bytes::from(format!("{}\n", answer.body));
    http_head(&mut head, answer, asked.allow, body.len() as u64);
    if asked.method == Method::HEAD {
        responder.start(&mut head, Framing::Empty);
    } else {
        responder.start(&mut head, Framing::Length(body.len() as u64));
        responder.data(body);
    }
    responder.end(None);
    head.status
}

fn http_head(head: &mut ResponseHead, answer: &Answer, allow: &str, length: u64) {
    head.status = answer.status;
    let fields = &mut head.fields;
    fields.push(b"content-type", b"text/plain; charset=utf-8");
    push_length(fields, length);
    fields.push(b"ate-reason", answer.reason.as_bytes());
    if let Some(seconds) = answer.retry_after {
        fields.push(b"retry-after", itoa::Buffer::new().format(seconds).as_bytes());
    }
    if head.status == StatusCode::METHOD_NOT_ALLOWED {
        fields.push(b"allow", allow.as_bytes());
    }
}

fn grpc_head(head: &mut ResponseHead, answer: &Answer) {
    head.status = StatusCode::OK;
    let fields = &mut head.fields;
    fields.push(b"content-type", b"application/grpc");
    fields.push(b"grpc-status", itoa::Buffer::new().format(answer.grpc_status).as_bytes());
    fields.push(b"grpc-message", answer.body.as_bytes());
    fields.push(b"ate-reason", answer.reason.as_bytes());
    if let Some(seconds) = answer.retry_after {
        fields.push(b"retry-after", itoa::Buffer::new().format(seconds).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(head: &ResponseHead) -> String {
        head.fields
            .iter()
            .map(|(_, n, v)| format!("{}={}\n", String::from_utf8_lossy(n), String::from_utf8_lossy(v)))
            .collect()
    }

    #[test]
    fn every_unavailable_answer_says_when_to_come_back() {
        for refusal in [Refusal::NoCapacity, Refusal::ParkingFull, Refusal::WorkerUnreachable, Refusal::IdleTimeout] {
            let mut head = ResponseHead::default();
            http_head(&mut head, &refusal.into(), "", 1);
            assert!(text(&head).contains("retry-after="), "{refusal:?}");
            assert!(text(&head).contains(&format!("ate-reason={}\n", refusal.reason())));
        }
    }

    #[test]
    fn a_grpc_caller_gets_its_own_kind_of_status() {
        let mut head = ResponseHead::default();
        grpc_head(&mut head, &Refusal::ActorNotFound.into());
        assert_eq!(head.status, StatusCode::OK);
        assert!(text(&head).contains("grpc-status=5\n"));
    }

    #[test]
    fn a_wrong_method_is_told_the_right_one() {
        let mut head = ResponseHead::default();
        http_head(&mut head, &Refusal::MethodNotAllowed.into(), "CONNECT", 1);
        assert!(text(&head).contains("allow=CONNECT\n"));
    }
}
