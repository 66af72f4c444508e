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
    let router = Router::start(pki, move |name, _| Ok(assignment(name, &on, 1)));
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

#[tokio::test]
async fn a_worker_that_never_answers_the_connect_is_given_up() {
    let pki = Pki::new();
    let worker = Worker::start(&pki, |_| Answer::Silent).await;
    let on = worker.clone();
    let soon = |config: &mut crate::config::RouterConfig| config.worker.as_mut().unwrap().handshake_timeout_ms = 200;
    let router = Router::configured(pki, Duration::ZERO, soon, move |name, _| Ok(assignment(name, &on, 1)));
    let answer = router.exchange(GET).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("ate-reason: worker-unreachable\r\n"), "{answer}");
}

#[tokio::test]
async fn a_worker_that_goes_away_is_dialled_anew_unseen_by_the_client() {
    let pki = Pki::new();
    let behaviour = actor(http_actor);
    let worker = Worker::start(&pki, move |asked| match asked.before {
        0 => Answer::GoAway,
        _ => Answer::Open(behaviour.clone()),
    })
    .await;
    let on = worker.clone();
    let router = Router::start(pki, move |name, _| Ok(assignment(name, &on, 1)));
    let connections = || worker.connections.load(std::sync::atomic::Ordering::SeqCst);
    assert!(router.exchange(GET).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(connections(), 2, "the CONNECT moved to a new connection");
    worker.go_away();
    // The goodbye is on its way: whether it overtakes the request or not, the client sees an answer.
    for _ in 0..3 {
        assert!(router.exchange(GET).await.starts_with("HTTP/1.1 200 "));
    }
    let again = async {
        while connections() == 2 {
            assert!(router.exchange(GET).await.starts_with("HTTP/1.1 200 "));
        }
    };
    timeout(SOON, again).await.unwrap();
}

#[tokio::test]
async fn an_answer_that_begins_in_the_drain_is_the_connections_last() {
    let (go_on, held) = tokio::sync::watch::channel(false);
    let (router, _worker) = simple(move |mut stream| {
        let mut held = held.clone();
        async move {
            read_head(&mut stream).await;
            held.wait_for(|open| *open).await.unwrap();
            reply(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
            let _held = stream.read_u8().await;
        }
    })
    .await;
    let mut client = router.client("plain").await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nate-target-actor: a/b\r\n\r\n").await.unwrap();
    let asked = async {
        while router.calls() == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, asked).await.unwrap();
    router.control.begin();
    go_on.send(true).unwrap();
    let mut answer = String::new();
    timeout(SOON, client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.contains("connection: close\r\n") && answer.ends_with("hi"), "{answer}");
    timeout(SOON, router.control.empty()).await.unwrap();
}
