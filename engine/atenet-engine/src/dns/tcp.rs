//! Questions in streams, each behind its length.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::question::LONGEST;
use super::relay::Step;
use super::{Service, answer};

/// Conversations of one actor at a time.
const MOST: usize = 64;
/// For the next question to come, whole; and for an answer to be taken.
const SILENCE: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until the drain begins.
pub(super) async fn serve(listener: TcpListener, service: Service) {
    let _serving = service.drain.guard();
    let places = Arc::new(Semaphore::new(MOST));
    let ended = service.drain.draining();
    tokio::pin!(ended);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut ended => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Beyond the limit a conversation ends at once.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let service = service.clone();
        tokio::spawn(async move {
            let _in_flight = service.drain.guard();
            tokio::select! {
                () = service.drain.draining() => {}
                ended = converse(stream, &service) => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a conversation with the relay broke");
                    }
                }
            }
            drop(place);
        });
    }
}

/// Question by question; returns when the client is silent, says nonsense or ends.
async fn converse(mut stream: TcpStream, service: &Service) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let Ok(question) = timeout(SILENCE, next(&mut stream)).await else { return Ok(()) };
        let Some(bytes) = question? else { return Ok(()) };
        let message = match service.relay.step(&bytes) {
            Step::Nothing(outcome) => {
                service.count(outcome);
                return Ok(());
            }
            Step::Answer(message, outcome) => {
                service.count(outcome);
                *message
            }
            Step::Forward(question) => service.forwarded(&question).await,
        };
        match timeout(SILENCE, send(&mut stream, &message)).await {
            Ok(sent) => sent?,
            Err(_) => return Ok(()),
        }
    }
}

/// None at the stream's end, and for a question that is longer than any.
async fn next(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let length = match stream.read_u16().await {
        Ok(length) => usize::from(length),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    if length > LONGEST {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(Some(bytes))
}

async fn send(stream: &mut TcpStream, message: &Message) -> io::Result<()> {
    let bytes = answer::written(message, u16::MAX.into()).ok_or_else(|| io::Error::other("no such answer"))?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await
}
