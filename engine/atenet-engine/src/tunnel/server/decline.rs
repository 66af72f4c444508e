//! What atunnel answers when it opens no tunnel.

use http::{HeaderValue, Response, StatusCode};

/// Marks a 421 as atunnel's own word that the actor is not (or no longer) here.
pub const STALE_HEADER: &str = "x-ate-assignment-stale";

/// Why no tunnel was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Decline {
    NotConnect,
    /// No actor named, or one that is not active here; the two are not told apart on purpose.
    Stale,
    BadPort,
    /// The actor's port refused, or did not answer in time.
    ActorRefused,
    /// The worker itself is out of descriptors or memory.
    Exhausted,
    /// The head was not HTTP (HTTP/1.1 only).
    BadRequest,
    HeadTooLarge,
}

impl Decline {
    pub(super) const ALL: [Self; 7] = [
        Self::NotConnect,
        Self::Stale,
        Self::BadPort,
        Self::ActorRefused,
        Self::Exhausted,
        Self::BadRequest,
        Self::HeadTooLarge,
    ];

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::NotConnect => StatusCode::METHOD_NOT_ALLOWED,
            Self::Stale => StatusCode::MISDIRECTED_REQUEST,
            Self::BadPort | Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::ActorRefused => StatusCode::BAD_GATEWAY,
            Self::Exhausted => StatusCode::SERVICE_UNAVAILABLE,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    /// The name in logs and counters.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NotConnect => "not_connect",
            Self::Stale => "stale",
            Self::BadPort => "bad_port",
            Self::ActorRefused => "actor_refused",
            Self::Exhausted => "exhausted",
            Self::BadRequest => "bad_request",
            Self::HeadTooLarge => "head_too_large",
        }
    }

    /// One line of text.
    pub(super) const fn body(self) -> &'static str {
        match self {
            Self::NotConnect => "only CONNECT is served here\n",
            Self::Stale => "the actor is not active on this worker\n",
            Self::BadPort => "CONNECT needs an authority with a port from 1 to 65535\n",
            Self::ActorRefused => "the actor's port did not accept the connection\n",
            Self::Exhausted => "the worker is out of resources; try again later\n",
            Self::BadRequest => "malformed request\n",
            Self::HeadTooLarge => "request head too large\n",
        }
    }

    /// The head of the answer; the body follows by itself.
    pub(super) fn response(self) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(self.body().len()));
        match self {
            Self::Stale => drop(headers.insert(STALE_HEADER, HeaderValue::from_static("true"))),
            Self::NotConnect => drop(headers.insert(http::header::ALLOW, HeaderValue::from_static("CONNECT"))),
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stale_assignment_is_marked_stale() {
        for decline in Decline::ALL {
            let response = decline.response();
            assert_eq!(response.headers().contains_key(STALE_HEADER), decline == Decline::Stale, "{decline:?}");
            assert_eq!(response.status() == StatusCode::MISDIRECTED_REQUEST, decline == Decline::Stale, "{decline:?}");
        }
    }

    #[test]
    fn every_body_is_one_line_of_the_announced_length() {
        for decline in Decline::ALL {
            let body = decline.body();
            assert!(body.ends_with('\n') && body.lines().count() == 1, "{body:?}");
            assert_eq!(decline.response().headers()["content-length"], body.len().to_string());
        }
    }
}
