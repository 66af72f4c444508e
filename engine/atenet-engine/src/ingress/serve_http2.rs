//! A client's HTTP/2 connection: each stream a request of its own.

use tokio::io::{AsyncRead, AsyncWrite};

use super::gateway::Front;

pub(super) async fn serve<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(_front: Front, _io: T) {}
