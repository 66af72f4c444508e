//! Answers every gRPC call with the same message, whatever it is asked: the least that a decision can cost.
//!
//! The peer of a measure (benchmarks/measures/p11.py): `constant_answer ADDRESS HEX`.

use std::error::Error;

use bytes::{BufMut, Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Response};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(address), Some(hex)) = (words.next(), words.next()) else {
        return Err("usage: constant_answer ADDRESS HEX".into());
    };
    let answer = framed(&hex)?;
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream, answer.clone()));
    }
}

/// A gRPC message: not compressed, its length, itself.
fn framed(hex: &str) -> Result<Bytes, Box<dyn Error>> {
    let digits = hex.as_bytes().chunks(2);
    let message = digits.map(|two| Ok(u8::from_str_radix(std::str::from_utf8(two)?, 16)?));
    let message = message.collect::<Result<Vec<u8>, Box<dyn Error>>>()?;
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len())?);
    frame.put_slice(&message);
    Ok(frame.freeze())
}

async fn serve(stream: TcpStream, answer: Bytes) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(request) = connection.accept().await {
        let (request, respond) = request?;
        tokio::spawn(reply(request.into_body(), respond, answer.clone()));
    }
    Ok(())
}

/// Once the question is there, as any service would.
async fn reply(mut question: RecvStream, mut respond: SendResponse<Bytes>, answer: Bytes) -> Result<(), h2::Error> {
    if let Some(data) = question.data().await {
        let length = data?.len();
        question.flow_control().release_capacity(length)?;
    }
    let mut head = Response::new(());
    head.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    let mut stream = respond.send_response(head, false)?;
    stream.send_data(answer, false)?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    stream.send_trailers(trailers)
}
