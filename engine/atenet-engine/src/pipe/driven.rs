//! The turns of a connection whose writes gather: each poll of it, then one write for all that the poll produced.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::AsyncWrite;

use super::Flusher;

/// Runs a connection on a [`super::Corked`] stream to its end. An error is the stream's own.
pub(crate) async fn driven<F, T>(mut connection: Pin<&mut F>, flusher: &mut Flusher<T>) -> io::Result<F::Output>
where
    F: Future,
    T: AsyncWrite + Unpin,
{
    poll_fn(|cx| {
        let done = connection.as_mut().poll(cx);
        let flushed = if done.is_ready() { flusher.poll_flush(cx) } else { flusher.poll_flush_late(cx) };
        match (done, flushed) {
            (Poll::Ready(output), _) => Poll::Ready(Ok(output)),
            (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            (Poll::Pending, _) => Poll::Pending,
        }
    })
    .await
}

/// The last words of a connection that is about to be dropped, as far as the socket takes them now.
pub(crate) async fn last_words<T: AsyncWrite + Unpin>(flusher: &mut Flusher<T>) {
    // An error means that nobody listens any more.
    let _as_far_as_it_goes = poll_fn(|cx| Poll::Ready(flusher.poll_flush(cx))).await;
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::pipe::Corked;

    #[tokio::test]
    async fn what_a_connection_wrote_leaves_with_its_turn_and_with_its_end() {
        let (near, mut far) = tokio::io::duplex(1 << 10);
        let (mut corked, mut flusher, _) = Corked::new(near);
        let (go_on, told) = tokio::sync::oneshot::channel::<()>();
        let talking = tokio::spawn(async move {
            let connection = async move {
                corked.write_all(b"turn").await.unwrap();
                told.await.unwrap();
                corked.write_all(b"end").await.unwrap();
            };
            driven(pin!(connection), &mut flusher).await
        });
        let mut got = [0; 8];
        let n = tokio::time::timeout(Duration::from_secs(5), far.read(&mut got)).await.unwrap().unwrap();
        assert_eq!(&got[..n], b"turn");
        go_on.send(()).unwrap();
        talking.await.unwrap().unwrap();
        let n = far.read(&mut got).await.unwrap();
        assert_eq!(&got[..n], b"end");
    }

    #[tokio::test]
    async fn a_broken_stream_ends_a_connection_that_only_writes() {
        let (near, far) = tokio::io::duplex(8);
        let (mut corked, mut flusher, _) = Corked::new(near);
        drop(far);
        let connection = async move {
            corked.write_all(b"nobody hears this").await.unwrap();
            std::future::pending::<()>().await;
        };
        assert!(driven(pin!(connection), &mut flusher).await.is_err());
    }
}
