//! A connection of Envoy's, straight on HTTP/2: one stream a request, with a question, its answer and gRPC's end.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::time::timeout;
use tonic::Status;

use super::server::{CONNECTION_WINDOW, STREAMS, Stream};
use super::service::Service;
use crate::drain::Drain;
use crate::grpc::{PREFIX, extent, joined};
use crate::pipe::{accepted, last_words, shaken};

const METHOD: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
/// A question holds the head of one request, which Envoy itself bounds.
const LONGEST: usize = 4 << 20;
/// Clients that give up at once are ordinary here.
const RESETS: usize = 4096;
const HANDSHAKE: Duration = Duration::from_secs(20);

/// Serves one connection.
pub(super) async fn serve(stream: Stream, service: Service, drain: Drain) {
    let (mut connection, mut flusher) = match timeout(HANDSHAKE, shaken(&settings(), stream)).await {
        Ok(Ok(made)) => made,
        Ok(Err(error)) => return tracing::debug!(%error, "HTTP/2 handshake failed"),
        Err(_elapsed) => return tracing::debug!("HTTP/2 handshake took too long"),
    };
    let (draining, forced) = (drain.draining(), drain.forced());
    tokio::pin!(draining, forced);
    let mut told = false;
    loop {
        tokio::select! {
            biased;
            next = accepted(&mut connection, &mut flusher) => match next {
                Some(Ok((request, respond))) => drop(tokio::spawn(answer(request, respond, service.clone()))),
                Some(Err(error)) => return tracing::debug!(%error, "a connection of Envoy ended"),
                None => return,
            },
            () = &mut draining, if !told => {
                told = true;
                connection.graceful_shutdown();
            }
            () = &mut forced => return last_words(&mut flusher).await,
        }
    }
}

fn settings() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(RESETS);
    builder
}

/// Answers one stream. When the client leaves, Envoy resets it, and whatever waits for it ends, parking place included.
async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, service: Service) {
    let _in_flight = service.drain.guard();
    let answered = tokio::select! {
        biased;
        _reset = poll_fn(|cx| respond.poll_reset(cx)) => return,
        answered = decide(request, &service) => answered,
    };
    let sent = match answered {
        Ok(message) => say(&mut respond, message),
        Err(status) => refuse(&mut respond, &status),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "nobody waits for this answer any more");
    }
}

async fn decide(request: Request<RecvStream>, service: &Service) -> Result<Bytes, Status> {
    let path = request.uri().path();
    if path != METHOD {
        return Err(Status::unimplemented(format!("{path} is not served here")));
    }
    // Envoy's own span, if it traces.
    let span = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut body = request.into_body();
    let question = read(&mut body).await?;
    service.process(&question, span.as_deref()).await
}

/// The first message: there is one a stream.
async fn read(body: &mut RecvStream) -> Result<Bytes, Status> {
    let bad = |problem: &str| Status::invalid_argument(format!("the message {problem}"));
    let mut bytes = Bytes::new();
    loop {
        if let Some(end) = extent(&bytes).map_err(bad)? {
            if end > LONGEST {
                return Err(bad("is too long"));
            }
            if end <= bytes.len() {
                return Ok(bytes.slice(PREFIX..end));
            }
        }
        let data = body.data().await.ok_or_else(|| Status::invalid_argument("no message"))?;
        let data = data.map_err(|error| Status::cancelled(error.to_string()))?;
        // Fails only on a stream that has ended.
        let _ended = body.flow_control().release_capacity(data.len());
        bytes = joined(bytes, data);
    }
}

fn say(respond: &mut SendResponse<Bytes>, message: Bytes) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(head(), false)?;
    stream.send_data(message, false)?;
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    stream.send_trailers(trailers)
}

/// A status and nothing else.
fn refuse(respond: &mut SendResponse<Bytes>, status: &Status) -> Result<(), h2::Error> {
    let mut response = head();
    if status.add_header(response.headers_mut()).is_err() {
        response.headers_mut().insert("grpc-status", HeaderValue::from_static("13"));
    }
    respond.send_response(response, true).map(drop)
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}
