//! Calls that are the control plane's: carried to its own server, frame by frame, over a Unix socket.

use std::path::PathBuf;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, request};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use super::body::{Reply, Resumed};

/// Unavailable: nothing is lost, the call may be made again.
pub(super) const GONE: HeaderValue = HeaderValue::from_static("14");
const MESSAGE: HeaderValue = HeaderValue::from_static("the control plane is not there; retry");
/// What begins like this is between the front and the control plane, and never a caller's to send.
const INTERNAL: &str = "x-atenet-";
/// The socket must never be what slows a large message.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 24;

#[derive(Debug, Error)]
enum ForwardError {
    #[error("cannot connect to {0}: {1}")]
    Connect(PathBuf, std::io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

/// One caller's connection to the control plane, made at its first call: a stream that stalls holds up nobody else's.
pub(super) struct Upstream {
    socket: PathBuf,
    peer: Vec<(HeaderName, HeaderValue)>,
    sender: Mutex<Option<SendRequest<Resumed>>>,
}

impl Upstream {
    /// `peer`: what the control plane is told of the caller.
    pub(super) fn new(socket: PathBuf, peer: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { socket, peer, sender: Mutex::default() }
    }

    /// The control plane's answer, or the status for its absence.
    pub(super) async fn carry(&self, head: request::Parts, body: Resumed) -> Response<Reply> {
        let mut request = Request::from_parts(head, body);
        *request.uri_mut() = target(request.uri());
        hygiene(request.headers_mut(), &self.peer);
        match self.send(request).await {
            Ok(response) => response.map(Reply::Passed),
            Err(error) => {
                tracing::warn!(%error, "the control plane does not answer");
                unavailable()
            }
        }
    }

    async fn send(&self, request: Request<Resumed>) -> Result<Response<hyper::body::Incoming>, ForwardError> {
        let mut sender = self.sender().await?;
        let mut failed = match sender.try_send_request(request).await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        // It comes back only if nothing of it was sent.
        let Some(request) = failed.take_message() else { return Err(failed.into_error().into()) };
        let mut sender = self.sender().await?;
        sender.try_send_request(request).await.map_err(|failed| failed.into_error().into())
    }

    async fn sender(&self) -> Result<SendRequest<Resumed>, ForwardError> {
        let mut kept = self.sender.lock().await;
        if let Some(sender) = kept.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| ForwardError::Connect(self.socket.clone(), error))?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(stream))
            .await?;
        // Ends when the last sender is dropped, with the caller's connection.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the control plane ended");
            }
        });
        *kept = Some(sender.clone());
        Ok(sender)
    }
}

/// The same target over plain HTTP/2.
fn target(uri: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority.get_or_insert_with(|| Authority::from_static("ateapi"));
    parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
    Uri::from_parts(parts).unwrap_or_default()
}

fn hygiene(headers: &mut HeaderMap, peer: &[(HeaderName, HeaderValue)]) {
    let internal: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(INTERNAL)).cloned().collect();
    for name in internal {
        headers.remove(name);
    }
    for (name, value) in peer {
        headers.append(name, value.clone());
    }
}

fn unavailable() -> Response<Reply> {
    let mut response = Response::new(Reply::Over);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", GONE);
    headers.insert("grpc-message", MESSAGE);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_cannot_say_who_it_is() {
        let mut headers = HeaderMap::new();
        headers.append("x-atenet-peer-uri", HeaderValue::from_static("spiffe://forged"));
        headers.append("x-atenet-peer-uri", HeaderValue::from_static("spiffe://twice"));
        headers.append("x-atenet-other", HeaderValue::from_static("x"));
        headers.append("x-theirs", HeaderValue::from_static("y"));
        let proven = HeaderValue::from_static("spiffe://proven");
        let name = HeaderName::from_static("x-atenet-peer-uri");
        hygiene(&mut headers, &[(name.clone(), proven.clone())]);
        assert_eq!(headers.get_all(&name).iter().collect::<Vec<_>>(), [&proven]);
        assert_eq!(headers.len(), 2);
        hygiene(&mut headers, &[]);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["x-theirs"]);
    }

    #[test]
    fn the_target_is_kept() {
        let uri = target(&Uri::from_static("https://api.ate-system.svc/a.B/C"));
        assert_eq!(uri, "http://api.ate-system.svc/a.B/C");
        assert_eq!(target(&Uri::from_static("/a.B/C")), "http://ateapi/a.B/C");
    }
}
