//! The connection as the generated clients want one: whole requests out, bodies of answers in.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use h2::RecvStream;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tonic::Status;

use super::call::broken;
use super::connection::Connection;

impl tower::Service<Request<tonic::body::Body>> for Connection {
    type Response = Response<Answer>;
    type Error = Status;
    type Future = BoxFuture<'static, Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    /// Every method that is asked for has one message as its request.
    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let connection = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let head = connection.absolute(head)?;
            connection.send(|| head.clone(), body).await.map(|response| response.map(Answer))
        })
    }
}

/// The body of an answer as it comes.
pub(crate) struct Answer(RecvStream);

impl Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let stream = &mut self.get_mut().0;
        if let Some(data) = ready!(stream.poll_data(cx)) {
            return Poll::Ready(Some(data.map_err(|error| broken(&error)).map(|data| {
                // Fails only on a stream that has ended.
                let _ended = stream.flow_control().release_capacity(data.len());
                Frame::data(data)
            })));
        }
        let trailers = ready!(stream.poll_trailers(cx)).transpose();
        Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers).map_err(|error| broken(&error))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}
