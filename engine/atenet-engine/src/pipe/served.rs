//! A client's HTTP/2 connection as its server drives it: the writes of all streams gather, and leave once a turn.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, Connection, SendResponse};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Corked, Flusher};

/// The next stream; none when the connection has ended.
pub(crate) type Accepted = Option<Result<(Request<RecvStream>, SendResponse<Bytes>), String>>;

/// The handshake with these settings.
pub(crate) async fn shaken<T>(
    settings: &Builder,
    io: T,
) -> Result<(Connection<Corked<T>, Bytes>, Flusher<T>), h2::Error>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let (io, mut flusher, _) = Corked::new(io);
    let mut handshake = pin!(settings.handshake::<_, Bytes>(io));
    let connection = poll_fn(|cx| {
        let done = handshake.as_mut().poll(cx);
        // A broken stream shows to the handshake as well.
        let _settings_out = flusher.poll_flush(cx);
        done
    })
    .await?;
    Ok((connection, flusher))
}

/// The next stream; meanwhile everything that one turn of all streams produced leaves in one write.
pub(crate) async fn accepted<T>(connection: &mut Connection<Corked<T>, Bytes>, flusher: &mut Flusher<T>) -> Accepted
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| {
        let accepted = connection.poll_accept(cx);
        let over = matches!(accepted, Poll::Ready(None | Some(Err(_))));
        let flushed = if over { flusher.poll_flush(cx) } else { flusher.poll_flush_late(cx) };
        match (accepted, flushed) {
            (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Some(Err(error.to_string()))),
            (accepted, _) => accepted.map(|next| next.map(|stream| stream.map_err(|error| error.to_string()))),
        }
    })
    .await
}
