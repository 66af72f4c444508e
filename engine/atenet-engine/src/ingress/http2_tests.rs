//! HTTP/2 clients: requests, interim answers, trailers, resets, gRPC and WebSockets.

use std::sync::Arc;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::testing::{Router, SOON, Stream, http_actor, read_head, reply, simple};

const ACTOR: &str = "ate-target-actor";

/// A client on the plaintext listener, by prior knowledge.
async fn plain(router: &Router) -> SendRequest<Bytes> {
    let (client, driver) = h2::client::handshake(router.client("plain").await).await.unwrap();
    tokio::spawn(driver);
    client.ready().await.unwrap()
}

async fn body(stream: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut all = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len()).unwrap();
        all.extend_from_slice(&data);
    }
    Ok(all)
}

async fn get(client: &mut SendRequest<Bytes>, request: Request<()>) -> Result<Response<RecvStream>, h2::Error> {
    let (response, _) = client.send_request(request, true).unwrap();
    timeout(SOON, response).await.unwrap()
}

fn to(path: &str) -> http::request::Builder {
    Request::get(format!("http://app:81{path}")).header(ACTOR, "a/b")
}

#[tokio::test]
async fn a_request_over_tls_reaches_an_http1_actor() {
    let (router, _worker) = simple(http_actor).await;
    let stream = router.pki.connect(router.client("secure").await, &[b"h2"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut client, driver) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(driver);
    let response = get(&mut client, to("/x").body(()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let echo = String::from_utf8(body(&mut response.into_body()).await.unwrap()).unwrap();
    assert_eq!(echo, "GET /x HTTP/1.1\r\nhost: app:81\r\n\r\n");
}

#[tokio::test]
async fn a_hundred_requests_share_one_connection_to_the_worker() {
    let (router, worker) = simple(http_actor).await;
    let client = plain(&router).await;
    let requests = (0..100).map(|n| {
        let mut client = client.clone();
        async move {
            let response = get(&mut client, to(&format!("/{n}")).body(()).unwrap()).await.unwrap();
            let echo = body(&mut response.into_body()).await.unwrap();
            assert!(echo.starts_with(format!("GET /{n} ").as_bytes()));
        }
    });
    futures_util::future::join_all(requests).await;
    assert_eq!(worker.connections.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_could_become_a_second_request_is_refused() {
    let (router, worker) = simple(http_actor).await;
    let client = plain(&router).await;
    for (name, value) in [("host", "other"), ("content-length", "5")] {
        let request = to("/").header(name, value).body(()).unwrap();
        match get(&mut client.clone(), request).await {
            Ok(response) => assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{name}"),
            Err(error) => assert!(error.is_reset() || error.is_library(), "{name}: {error}"),
        }
    }
    assert_eq!(worker.connects(), 0);
}

#[tokio::test]
async fn a_length_that_lies_is_reset_and_the_actor_sees_no_whole_request() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (router, _worker) = simple(move |mut stream: Stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            let mut all = Vec::new();
            let end = stream.read_to_end(&mut all).await;
            tell.send((all.len(), end.is_err())).unwrap();
        }
    })
    .await;
    let mut client = plain(&router).await;
    let request = Request::post("http://a/").header(ACTOR, "a/b").header("content-length", "5").body(()).unwrap();
    let (response, mut send) = client.send_request(request, false).unwrap();
    send.send_data(Bytes::from_static(b"hel"), false).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    send.send_data(Bytes::from_static(b"lo and more"), true).unwrap();
    assert!(timeout(SOON, response).await.unwrap().is_err());
    let (seen, broken) = timeout(SOON, told.recv()).await.unwrap().unwrap();
    assert!(seen <= 5 && broken, "{seen} bytes, broken: {broken}");
}

#[tokio::test]
async fn interim_answers_and_trailers_come_through() {
    let (router, _worker) = simple(|mut stream: Stream| async move {
        read_head(&mut stream).await;
        let answer = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                      2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n";
        reply(&mut stream, answer).await.unwrap();
        let _held = stream.read_u8().await;
    })
    .await;
    let mut client = plain(&router).await;
    let (mut response, _) = client.send_request(to("/").body(()).unwrap(), true).unwrap();
    let hints = std::future::poll_fn(|cx| response.poll_informational(cx)).await.unwrap().unwrap();
    assert_eq!((hints.status().as_u16(), hints.headers()["link"].as_bytes()), (103, &b"</a.css>"[..]));
    let mut stream = response.await.unwrap().into_body();
    assert_eq!(body(&mut stream).await.unwrap(), b"hi");
    assert_eq!(stream.trailers().await.unwrap().unwrap()["x-sum"], "7");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_reset_and_not_ended() {
    let (go, gone) = tokio::sync::watch::channel(false);
    let (router, _worker) = simple(move |mut stream: Stream| {
        let mut gone = gone.clone();
        async move {
            read_head(&mut stream).await;
            reply(&mut stream, "HTTP/1.1 200 OK\r\n\r\nhalf").await.unwrap();
            gone.wait_for(|gone| *gone).await.unwrap();
            // Dropped: the tunnel is reset.
        }
    })
    .await;
    let mut client = plain(&router).await;
    let response = get(&mut client, to("/").body(()).unwrap()).await.unwrap();
    go.send(true).unwrap();
    assert!(body(&mut response.into_body()).await.unwrap_err().is_reset());
}

#[tokio::test]
async fn a_client_reset_reaches_the_actor() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (router, _worker) = simple(move |mut stream: Stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            tell.send(false).unwrap();
            tell.send(stream.read_u8().await.is_err()).unwrap();
        }
    })
    .await;
    let mut client = plain(&router).await;
    let (response, mut send) = client.send_request(to("/").body(()).unwrap(), false).unwrap();
    assert_eq!(told.recv().await, Some(false));
    send.send_reset(Reason::CANCEL);
    drop(response);
    assert_eq!(timeout(SOON, told.recv()).await.unwrap(), Some(true));
}

#[tokio::test]
async fn a_plain_connect_is_not_for_this_listener() {
    let (router, _worker) = simple(http_actor).await;
    let request = Request::builder().method("CONNECT").uri("app:81").header(ACTOR, "a/b").body(()).unwrap();
    let response = get(&mut plain(&router).await, request).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["ate-reason"]),
        (405, &"method-not-allowed".parse().unwrap())
    );
}

/// A gRPC server: echoes each message, then trailers.
async fn grpc_actor(stream: Stream) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            assert_eq!(request.headers()["te"], "trailers");
            assert!(request.headers().get(ACTOR).is_none());
            let response = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut send = respond.send_response(response, false).unwrap();
            let mut stream = request.into_body();
            while let Some(Ok(data)) = stream.data().await {
                stream.flow_control().release_capacity(data.len()).unwrap();
                send.send_data(data, false).unwrap();
            }
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            send.send_trailers(trailers).unwrap();
        });
    }
}

fn call() -> Request<()> {
    let post = Request::post("http://app/pkg.Service/Method").header(ACTOR, "a/b").header("te", "trailers");
    post.header("content-type", "application/grpc+proto").body(()).unwrap()
}

#[tokio::test]
async fn a_grpc_stream_is_bidirectional_and_keeps_its_trailers() {
    let (router, worker) = simple(grpc_actor).await;
    let client = plain(&router).await;
    for _ in 0..3 {
        let (response, mut send) = client.clone().send_request(call(), false).unwrap();
        let mut stream = timeout(SOON, response).await.unwrap().unwrap().into_body();
        for message in ["one", "two"] {
            send.send_data(Bytes::from_static(message.as_bytes()), false).unwrap();
            assert_eq!(timeout(SOON, stream.data()).await.unwrap().unwrap().unwrap(), message);
        }
        send.send_data(Bytes::new(), true).unwrap();
        assert!(stream.data().await.is_none());
        assert_eq!(stream.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    }
    assert_eq!(worker.connects(), 1, "calls share the connection of their activation");
}

#[tokio::test]
async fn grpc_to_an_actor_without_http2_fails_as_unavailable() {
    let (router, _worker) = simple(|mut stream: Stream| async move {
        let head = read_head(&mut stream).await.unwrap();
        assert!(head.starts_with("PRI * HTTP/2.0"), "no gRPC call may arrive as anything less: {head}");
        reply(&mut stream, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await.unwrap();
        let _closed = stream.shutdown().await;
    })
    .await;
    let response = get(&mut plain(&router).await, call()).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "14");
    assert_eq!(response.headers()["ate-reason"], "protocol-unsupported");
    assert!(response.body().is_end_stream());
}

#[tokio::test]
async fn a_websocket_over_http2_is_bridged_to_an_upgrade() {
    let (router, _worker) = simple(|mut stream: Stream| async move {
        let head = read_head(&mut stream).await.unwrap();
        assert!(head.starts_with("GET /chat HTTP/1.1\r\n") && head.contains("upgrade: websocket\r\n"), "{head}");
        let key = head.lines().find_map(|l| l.strip_prefix("sec-websocket-key: ")).unwrap();
        let accept = super::websocket::tests::accept_for(key);
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\
             Sec-WebSocket-Protocol: chat\r\n\r\nhello"
        );
        reply(&mut stream, &answer).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        reply(&mut stream, &format!(" {}", String::from_utf8(all).unwrap())).await.unwrap();
        stream.shutdown().await.unwrap();
    })
    .await;
    let mut client = plain(&router).await;
    // An answer of any kind says that the settings have come.
    get(&mut client, Request::get("http://app/").body(()).unwrap()).await.unwrap();
    assert!(client.is_extended_connect_protocol_enabled());
    let request = Request::builder().method("CONNECT").uri("http://app/chat").header(ACTOR, "a/b");
    let request = request.extension(Protocol::from_static("websocket")).body(()).unwrap();
    let (response, mut send) = client.clone().send_request(request, false).unwrap();
    let response = timeout(SOON, response).await.unwrap().unwrap();
    assert_eq!(
        (response.status(), &response.headers()["sec-websocket-protocol"]),
        (StatusCode::OK, &"chat".parse().unwrap())
    );
    assert!(response.headers().get("sec-websocket-accept").is_none());
    send.send_data(Bytes::from_static(b"there"), true).unwrap();
    assert_eq!(body(&mut response.into_body()).await.unwrap(), b"hello there");
}

#[tokio::test]
async fn a_large_body_flows_both_ways_within_the_windows() {
    let (router, _worker) = simple(|mut stream: Stream| async move {
        let head = read_head(&mut stream).await.unwrap();
        assert!(head.contains("content-length: 8388608"), "{head}");
        reply(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n").await.unwrap();
        let mut buf = vec![0; 32 * 1024];
        let mut left = 8 << 20;
        while left > 0 {
            let n = stream.read(&mut buf).await.unwrap();
            stream.write_all(&buf[..n]).await.unwrap();
            left -= n;
        }
        stream.flush().await.unwrap();
        let _held = stream.read_u8().await;
    })
    .await;
    let client = plain(&router).await;
    let request = Request::post("http://a/").header(ACTOR, "a/b").header("content-length", 8 << 20).body(()).unwrap();
    let (response, send) = client.clone().send_request(request, false).unwrap();
    let data: Arc<Vec<u8>> = Arc::new((0..8 << 20).map(|n: usize| (n % 251) as u8).collect());
    let upload = tokio::spawn(super::testing::send_all(send, Bytes::from((*data).clone())));
    let answer = body(&mut timeout(SOON, response).await.unwrap().unwrap().into_body()).await.unwrap();
    upload.await.unwrap();
    assert!(answer == *data);
}
