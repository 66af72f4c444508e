//! Small HTTP/1.1 ends for the scripted actors.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::Stream;

/// Reads to the end of one head; what follows stays unread.
pub(in crate::ingress) async fn read_head<T: AsyncRead + Unpin>(stream: &mut T) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.ok()?;
        head.push(byte);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Answers every request of a connection with what it received, as a length-framed body.
pub(in crate::ingress) async fn http_actor(mut stream: Stream) {
    while let Some(head) = read_head(&mut stream).await {
        let length =
            head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        let mut body = vec![0; length.map_or(0, |l| l.parse().unwrap())];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        let echo = format!("{head}{}", String::from_utf8_lossy(&body));
        if reply(&mut stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{echo}", echo.len()))
            .await
            .is_err()
        {
            return;
        }
    }
    let _closed = stream.shutdown().await;
}

pub(in crate::ingress) async fn reply(stream: &mut Stream, text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}

/// Sends a whole body on an HTTP/2 stream, as its window allows.
pub(in crate::ingress) async fn send_all(mut send: h2::SendStream<bytes::Bytes>, mut data: bytes::Bytes) {
    while !data.is_empty() {
        send.reserve_capacity(data.len());
        let room = std::future::poll_fn(|cx| send.poll_capacity(cx)).await.unwrap().unwrap();
        send.send_data(data.split_to(room.min(data.len())), false).unwrap();
    }
    send.send_data(bytes::Bytes::new(), true).unwrap();
}
