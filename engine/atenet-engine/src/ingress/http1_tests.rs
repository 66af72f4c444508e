//! HTTP/1.1 clients, end to end: sockets, TLS to a scripted worker, actors as functions.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::testing::{Answer, Pki, Router, SOON, Worker, actor, assignment, http_actor, read_head, reply, simple};
use crate::refusal::Refusal;

const GET: &str = "GET /x?y HTTP/1.1\r\nHost: app:81\r\nate-target-actor: team/one\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_get_reaches_the_actor_and_comes_back() {
    let (router, worker) = simple(http_actor).await;
    let answer = router.exchange(GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("GET /x?y HTTP/1.1\r\nHost: app:81\r\n\r\n"), "{answer}");
    let asked = worker.asked.lock()[0].clone();
    assert_eq!((asked.authority.as_str(), asked.actor.as_str()), ("127.0.0.1:80", "team/one"));
}

#[tokio::test]
async fn bodies_go_up_length_framed_and_chunked() {
    let (router, _worker) = simple(http_actor).await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nate-target-actor: a/b\r\nConnection: close\r\n";
    let answer = router.exchange(&format!("{head}Content-Length: 5\r\n\r\nhello")).await;
    assert!(answer.ends_with("content-length: 5\r\n\r\nhello"), "{answer}");
}

#[tokio::test]
async fn one_connection_carries_many_requests_and_one_tunnel_serves_them() {
    let (router, worker) = simple(http_actor).await;
    let mut client = router.client("plain").await;
    for n in 0..20 {
        let request = format!("GET /{n} HTTP/1.1\r\nHost: a\r\nate-target-actor: a/b\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let head = timeout(SOON, read_head(&mut client)).await.unwrap().unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let echo = read_head(&mut client).await.unwrap();
        assert!(echo.starts_with(&format!("GET /{n} ")), "{echo}");
    }
    assert_eq!(worker.connects(), 1);
}

#[tokio::test]
async fn a_malformed_target_is_a_404_and_no_call() {
    let (router, worker) = simple(http_actor).await;
    for line in [
        "",
        "ate-target-actor: demo\r\n",
        "ate-target-actor: a/b\r\nate-target-actor: a/b\r\n",
        "ate-target-actor: a/b\t\r\n",
    ] {
        let answer = router.exchange(&format!("GET / HTTP/1.1\r\nHost: a\r\n{line}Connection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{line:?}: {answer}");
        assert!(answer.contains("ate-reason: bad-target\r\n"), "{answer}");
    }
    assert_eq!((router.calls(), worker.connects()), (0, 0));
}

#[tokio::test]
async fn a_refusal_of_the_resolver_is_the_answer() {
    let router = Router::start(Pki::new(), |_, _| Err(Refusal::NoCapacity));
    let answer = router.exchange(GET).await;
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("retry-after: 1\r\n"), "{answer}");
}

#[tokio::test]
async fn a_stale_worker_is_forgotten_and_asked_again() {
    let pki = Pki::new();
    let behaviour = actor(http_actor);
    let worker = Worker::start(&pki, move |asked| match asked.before {
        0 | 1 => Answer::Stale,
        _ => Answer::Open(behaviour.clone()),
    })
    .await;
    let on = worker.clone();
    let router = Router::start(pki, move |name, _| Ok(assignment(name, &on, 1)));
    let answer = router.exchange(GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(*router.script.forgotten.lock(), [0, 1]);
    assert_eq!(worker.connects(), 3);
}

#[tokio::test]
async fn a_worker_that_stays_stale_ends_as_a_503_and_never_as_421() {
    let pki = Pki::new();
    let worker = Worker::start(&pki, |_| Answer::Stale).await;
    let on = worker.clone();
    let router = Router::configured(
        pki,
        Duration::ZERO,
        |config| config.parking.budget_ms = 600,
        move |name, _| Ok(assignment(name, &on, 1)),
    );
    let answer = router.exchange(GET).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("ate-reason: stale-assignment\r\n"), "{answer}");
    assert_eq!(worker.connects(), 3, "the same worker is not hammered while the resolver keeps naming it");
}

#[tokio::test]
async fn an_actors_own_421_passes_untouched() {
    let (router, _worker) = simple(|mut stream| async move {
        read_head(&mut stream).await;
        reply(&mut stream, "HTTP/1.1 421 No\r\nx-ate-assignment-stale: true\r\nContent-Length: 2\r\n\r\nhi")
            .await
            .unwrap();
        let _held = stream.read_u8().await;
    })
    .await;
    let answer = router.exchange(GET).await;
    assert!(
        answer.starts_with("HTTP/1.1 421 No\r\n") && !answer.contains("x-ate") && answer.ends_with("hi"),
        "{answer}"
    );
    assert!(router.script.forgotten.lock().is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_resets_the_actors_stream_at_once() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (router, _worker) = simple(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            tell.send("asked").unwrap();
            let end = stream.read_u8().await.unwrap_err();
            tell.send(if end.kind() == std::io::ErrorKind::UnexpectedEof { "ended" } else { "reset" }).unwrap();
        }
    })
    .await;
    let mut client = router.client("plain").await;
    client.write_all(GET.as_bytes()).await.unwrap();
    assert_eq!(timeout(SOON, told.recv()).await.unwrap(), Some("asked"));
    drop(client);
    assert_eq!(timeout(SOON, told.recv()).await.unwrap(), Some("reset"));
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_frees_the_resolver() {
    let pki = Pki::new();
    let router = Router::configured(pki, Duration::from_secs(600), |_| {}, |_, _| Err(Refusal::Internal));
    let mut client = router.client("plain").await;
    client.write_all(GET.as_bytes()).await.unwrap();
    let waiting = || router.script.waiting.load(std::sync::atomic::Ordering::SeqCst);
    let becomes = async |n| {
        while waiting() != n {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, becomes(1)).await.unwrap();
    drop(client);
    timeout(SOON, becomes(0)).await.unwrap();
}
