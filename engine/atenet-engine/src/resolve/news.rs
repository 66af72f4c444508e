//! Takes in what the control plane tells by itself: parked requests ask again at once, and assignments that ended leave
//! the cache before the next request would use them.
//!
//! All of it is help, nothing depends on it: without news an entry still expires, a worker still answers 421, and a
//! parked request still asks again.

use std::sync::Weak;
use std::time::Duration;

use futures_util::StreamExt;
use tonic::Code;

use super::Inner;
use crate::control::{News, NewsStream};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// Flights that one freed slot wakes; their actors need not fit it.
const WOKEN: usize = 16;

/// Follows the news for as long as the resolver lives.
pub(super) async fn follow(inner: Weak<Inner>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(control) = inner.upgrade().map(|inner| inner.control.clone()) else { return };
        match control.news().await {
            Ok(stream) => {
                if take_in(&inner, stream).await {
                    pause = FIRST_PAUSE;
                }
            }
            Err(status) if tells_nothing(status.code()) => {
                tracing::debug!(code = ?status.code(), "the control plane tells nothing by itself");
                // It is not asked again before another one may be answering.
                control.replaced().await;
                continue;
            }
            Err(status) => tracing::debug!(code = ?status.code(), "no news from the control plane"),
        }
        tokio::time::sleep(pause.mul_f64(1.0 + 0.1 * fastrand::f64())).await;
        pause = LAST_PAUSE.min(pause * 2);
    }
}

/// True if anything was told.
async fn take_in(inner: &Weak<Inner>, mut stream: NewsStream) -> bool {
    let mut told = false;
    while let Some(Ok(news)) = stream.next().await {
        let Some(inner) = inner.upgrade() else { return told };
        inner.hear(&news);
        told = true;
    }
    told
}

/// One that lacks the service, or does not let this router have it.
fn tells_nothing(code: Code) -> bool {
    matches!(code, Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated)
}

impl Inner {
    pub(super) fn hear(&self, news: &News) {
        match news {
            News::Synced => {
                self.cache.clear();
                self.flights.wake_all();
            }
            News::CapacityFreed => self.flights.wake_some(WOKEN),
            News::AssignmentEnded { actor, uid, version } => {
                self.cache.end(actor, uid, *version);
                self.flights.ended(actor, uid, *version);
            }
        }
    }
}

#[cfg(test)]
mod tests;
