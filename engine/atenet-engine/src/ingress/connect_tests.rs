//! CONNECT listeners: HTTP inside, and everything else.

use bytes::Bytes;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::testing::{
    Answer, Pki, Router, SOON, Stream, Worker, actor, assignment, http_actor, read_head, reply, simple,
};

const CONNECT: &str = "CONNECT anything:8080 HTTP/1.1\r\nHost: anything:8080\r\nate-target-actor: a/b\r\n\r\n";

async fn opened(router: &Router) -> TcpStream {
    let mut client = router.client("connect").await;
    client.write_all(CONNECT.as_bytes()).await.unwrap();
    assert_eq!(timeout(SOON, read_head(&mut client)).await.unwrap().unwrap(), "HTTP/1.1 200 OK\r\n\r\n");
    client
}

async fn ask(client: &mut TcpStream, request: &str) -> (String, String) {
    client.write_all(request.as_bytes()).await.unwrap();
    let head = timeout(SOON, read_head(client)).await.unwrap().unwrap();
    (head, read_head(client).await.unwrap())
}

#[tokio::test]
async fn requests_inside_reach_the_named_port_and_are_looked_up_one_by_one() {
    let (router, worker) = simple(http_actor).await;
    let mut client = opened(&router).await;
    for n in 0..3 {
        let request = format!("GET /{n} HTTP/1.1\r\nHost: app\r\nate-target-actor: other/actor\r\n\r\n");
        let (head, echo) = ask(&mut client, &request).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(echo, format!("GET /{n} HTTP/1.1\r\nHost: app\r\n\r\n"));
    }
    assert_eq!(router.calls(), 3);
    let asked = worker.asked.lock().clone();
    assert_eq!((asked.len(), asked[0].authority.as_str(), asked[0].actor.as_str()), (1, "127.0.0.1:8080", "a/b"));
}

#[tokio::test]
async fn a_tunnel_follows_an_actor_that_moves() {
    let pki = Pki::new();
    let place = |name: &'static str| {
        actor(move |mut stream: Stream| async move {
            while read_head(&mut stream).await.is_some() {
                reply(&mut stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Place: {name}\r\n\r\n\r\n\r\n"))
                    .await
                    .unwrap();
            }
        })
    };
    let (here, there) = (place("here"), place("there"));
    let one = Worker::start(&pki, move |_| Answer::Open(here.clone())).await;
    let two = Worker::start(&pki, move |_| Answer::Open(there.clone())).await;
    let router = Router::start(pki, move |name, call| {
        Ok(if call == 0 { assignment(name, &one, 1) } else { assignment(name, &two, 2) })
    });
    let mut client = opened(&router).await;
    for place in ["here", "there"] {
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let head = timeout(SOON, read_head(&mut client)).await.unwrap().unwrap();
        assert!(head.contains(&format!("X-Place: {place}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn wrong_methods_and_ports_are_refused() {
    let (router, worker) = simple(http_actor).await;
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nate-target-actor: a/b\r\n\r\n", "405 "),
        ("CONNECT a HTTP/1.1\r\nHost: a\r\nate-target-actor: a/b\r\n\r\n", "400 "),
        ("CONNECT a:0 HTTP/1.1\r\nHost: a\r\nate-target-actor: a/b\r\n\r\n", "400 "),
        ("CONNECT a:99999 HTTP/1.1\r\nHost: a\r\nate-target-actor: a/b\r\n\r\n", "400 "),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "404 "),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nate-target-actor: a/b\r\n\r\nabc", "400 "),
    ] {
        let mut client = router.client("connect").await;
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(SOON, client.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {answer}");
        assert!(answer.contains("ate-reason: "), "{answer}");
    }
    assert_eq!((router.calls(), worker.connects()), (0, 0));
}

#[tokio::test]
async fn http2_works_outside_and_inside() {
    let (router, worker) = simple(http_actor).await;
    let stream = router.pki.connect(router.client("connect-secure").await, &[b"h2"]).await;
    let (mut outer, driver) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(driver);
    let connect =
        Request::builder().method("CONNECT").uri("x:9000").header("ate-target-actor", "a/b").body(()).unwrap();
    let (response, send) = outer.send_request(connect, false).unwrap();
    let response = timeout(SOON, response).await.unwrap().unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let tunnel =
        crate::pipe::H2Duplex::new(crate::pipe::H2Source::new(response.into_body()), crate::pipe::H2Sink::new(send));
    let (mut inner, driver) = h2::client::handshake(tunnel).await.unwrap();
    tokio::spawn(driver);
    let request = Request::get("http://app/inside").body(()).unwrap();
    let (response, _) = inner.send_request(request, true).unwrap();
    let mut body = timeout(SOON, response).await.unwrap().unwrap().into_body();
    let echo: Bytes = body.data().await.unwrap().unwrap();
    assert!(echo.starts_with(b"GET /inside HTTP/1.1\r\nhost: app\r\n"), "{echo:?}");
    assert_eq!(worker.asked.lock()[0].authority, "127.0.0.1:9000");
    let get = Request::get("http://x:9000/").header("ate-target-actor", "a/b").body(()).unwrap();
    let (response, _) = outer.send_request(get, true).unwrap();
    assert_eq!(timeout(SOON, response).await.unwrap().unwrap().status().as_u16(), 405);
}

/// Upper-cases what it is sent; ends when the client does.
async fn shouting(mut stream: Stream) {
    let mut buf = [0; 1024];
    loop {
        match stream.read(&mut buf).await {
            Ok(0) => break,
            Ok(n) => {
                stream.write_all(&buf[..n].to_ascii_uppercase()).await.unwrap();
                stream.flush().await.unwrap();
            }
            Err(_) => return,
        }
    }
    stream.shutdown().await.unwrap();
}

#[tokio::test]
async fn bytes_that_are_not_http_are_relayed_with_half_closes() {
    let (router, worker) = simple(shouting).await;
    let mut client = opened(&router).await;
    client.write_all(b"\x16not http").await.unwrap();
    let mut got = [0; 9];
    timeout(SOON, client.read_exact(&mut got)).await.unwrap().unwrap();
    assert_eq!(&got, b"\x16NOT HTTP");
    client.write_all(b"last").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = Vec::new();
    timeout(SOON, client.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, b"LAST");
    assert_eq!((router.calls(), worker.connects()), (1, 1));
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard() {
    let (router, _worker) = simple(|mut stream: Stream| async move {
        reply(&mut stream, "220 ready\r\n").await.unwrap();
        shouting(stream).await;
    })
    .await;
    let mut client = opened(&router).await;
    let mut got = [0; 11];
    timeout(SOON, client.read_exact(&mut got)).await.unwrap().unwrap();
    assert_eq!(&got, b"220 ready\r\n");
    client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut got = [0; 16];
    timeout(SOON, client.read_exact(&mut got)).await.unwrap().unwrap();
    assert_eq!(&got, b"GET / HTTP/1.1\r\n", "once the server has spoken, the bytes are its own");
}

#[tokio::test]
async fn a_client_that_was_slow_to_speak_http_is_carried_all_the_same() {
    let (router, _worker) = simple(http_actor).await;
    let mut client = opened(&router).await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    for _ in 0..2 {
        let (head, echo) = ask(&mut client, "GET / HTTP/1.1\r\nHost: app\r\nX-Ate-Forged: 1\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(!echo.contains("X-Ate"), "{echo}");
    }
}

#[tokio::test]
async fn a_broken_actor_breaks_the_relayed_client() {
    let (router, _worker) = simple(|mut stream: Stream| async move {
        let _first = stream.read_u8().await;
    })
    .await;
    let mut client = opened(&router).await;
    client.write_all(b"\x16").await.unwrap();
    let mut rest = Vec::new();
    let end = timeout(SOON, client.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}
