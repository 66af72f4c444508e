//! A call of one message each way, with nothing between it and HTTP/2: what every request of a router may cost.

use bytes::Bytes;
use h2::RecvStream;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use prost::Message;
use tonic::{Code, Status};

use crate::grpc::{PREFIX, extent, joined};

/// As tonic's clients have it.
const LONGEST: usize = 4 << 20;

/// A method of a service, and what is the same for all of its calls.
pub(super) struct Method {
    uri: Uri,
    headers: HeaderMap,
}

impl Method {
    /// `timeout`: as gRPC spells it.
    pub(super) fn new(authority: &Authority, path: &'static str, timeout: &'static str) -> Result<Self, http::Error> {
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(authority.clone())
            .path_and_query(PathAndQuery::from_static(path))
            .build()?;
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert("te", HeaderValue::from_static("trailers"));
        headers.insert("content-type", HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-timeout", HeaderValue::from_static(timeout));
        Ok(Self { uri, headers })
    }

    /// The head of a stream that lasts as long as its connection.
    pub(super) fn endless(&self) -> Request<()> {
        let mut head = self.head(None);
        head.headers_mut().remove("grpc-timeout");
        head
    }

    /// `trace`: a `traceparent`. One that is no header value is dropped: it must not cost the request.
    pub(super) fn head(&self, trace: Option<&str>) -> Request<()> {
        let mut head = Request::new(());
        *head.method_mut() = http::Method::POST;
        *head.uri_mut() = self.uri.clone();
        *head.headers_mut() = self.headers.clone();
        if let Some(Ok(value)) = trace.map(HeaderValue::from_str) {
            head.headers_mut().insert("traceparent", value);
        }
        head
    }
}

/// Reads an answer to its end: its message, or the status that it was given instead.
pub(super) async fn answer<M: Message + Default>(response: Response<RecvStream>) -> Result<M, Status> {
    let (head, mut body) = response.into_parts();
    if let Some(status) = Status::from_header_map(&head.headers) {
        return Err(none(status));
    }
    if head.status != StatusCode::OK {
        return Err(Status::new(code_of(head.status), format!("the control plane answered HTTP {}", head.status)));
    }
    let mut message = Bytes::new();
    while let Some(data) = body.data().await {
        let data = data.map_err(|error| broken(&error))?;
        // Fails only on a stream that has ended.
        let _ended = body.flow_control().release_capacity(data.len());
        message = joined(message, data);
        if message.len() > LONGEST {
            return Err(Status::out_of_range("the control plane's answer is too long"));
        }
    }
    let trailers = body.trailers().await.map_err(|error| broken(&error))?.unwrap_or_default();
    if trailers.get("grpc-status").is_none_or(|status| status != "0") {
        let status = Status::from_header_map(&trailers);
        return Err(status.map_or_else(|| Status::unavailable("the control plane's answer has no end"), none));
    }
    unframed(&message)
}

/// An answer that is only a status says no to something.
fn none(status: Status) -> Status {
    if status.code() == Code::Ok { Status::internal("the control plane's answer holds no message") } else { status }
}

fn unframed<M: Message + Default>(body: &[u8]) -> Result<M, Status> {
    let bad = |problem: &str| Status::internal(format!("the control plane's answer {problem}"));
    match extent(body).map_err(bad)? {
        Some(end) if end == body.len() => M::decode(&body[PREFIX..]).map_err(|error| bad(&error.to_string())),
        _ => Err(bad("is not one whole message")),
    }
}

/// What a broken stream means: the peer's own reset in gRPC's terms; anything else is the connection's end.
pub(super) fn broken(error: &h2::Error) -> Status {
    let code = match error.reason() {
        Some(h2::Reason::CANCEL) if error.is_reset() => Code::Cancelled,
        Some(h2::Reason::ENHANCE_YOUR_CALM) if error.is_reset() => Code::ResourceExhausted,
        Some(h2::Reason::INADEQUATE_SECURITY) if error.is_reset() => Code::PermissionDenied,
        Some(h2::Reason::REFUSED_STREAM) => Code::Unavailable,
        Some(_) if error.is_reset() => Code::Internal,
        _ => Code::Unavailable,
    };
    Status::new(code, format!("broke off: {error}"))
}

/// Of an answer without a gRPC status (gRPC's http-grpc-status-mapping).
fn code_of(status: StatusCode) -> Code {
    match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::framed;
    use crate::proto::{ObjectRef, ResumeActorRequest};

    fn message() -> ResumeActorRequest {
        ResumeActorRequest { actor: Some(ObjectRef { atespace: "team".into(), name: "agent".into() }) }
    }

    #[test]
    fn a_message_survives_its_frame_and_nothing_else_is_one() {
        let body = framed(&message());
        assert_eq!(unframed::<ResumeActorRequest>(&body).unwrap(), message());
        for cut in 0..body.len() {
            assert_eq!(unframed::<ResumeActorRequest>(&body[..cut]).unwrap_err().code(), Code::Internal, "{cut}");
        }
        let more = [&body[..], b"x"].concat();
        let compressed = [b"\x01", &body[1..]].concat();
        for bad in [more, compressed] {
            assert_eq!(unframed::<ResumeActorRequest>(&bad).unwrap_err().code(), Code::Internal);
        }
    }

    #[test]
    fn an_http_status_is_the_grpc_code_that_everyone_takes_it_for() {
        for (status, code) in [(503, Code::Unavailable), (404, Code::Unimplemented), (500, Code::Unknown)] {
            assert_eq!(code_of(StatusCode::from_u16(status).unwrap()), code);
        }
    }
}
