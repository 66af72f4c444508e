//! `atenet-load '<json>'`: callers that each ask `ResumeActor` again as soon as they have the last answer.
//!
//! Prints one JSON object: calls, seconds, latencies in milliseconds. Any answer but OK ends it with an error.
#![allow(clippy::print_stdout)] // the result is data

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use atenet_engine::proto::{ObjectRef, ResumeActorRequest};
use atenet_engine::tls::{ClientTls, CredentialFiles, PeerName};
use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;
use prost::Message;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

const WINDOW: u32 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    address: String,
    server_name: String,
    credential: PathBuf,
    roots: PathBuf,
    callers: usize,
    /// Callers share connections if there are fewer.
    connections: usize,
    warm_up_seconds: f64,
    seconds: f64,
    /// Actors `a0`, `a1`, … of this atespace, picked at random.
    atespace: String,
    actors: usize,
}

fn main() -> Result<(), Failure> {
    let text = std::env::args().nth(1).ok_or("give one JSON object")?;
    let plan: Plan = serde_json::from_str(&text)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}", runtime.block_on(run(Arc::new(plan)))?);
    Ok(())
}

async fn run(plan: Arc<Plan>) -> Result<serde_json::Value, Failure> {
    let mut connections = Vec::new();
    for _ in 0..plan.connections.clamp(1, plan.callers) {
        connections.push(connect(&plan).await?);
    }
    let (measuring, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut callers = JoinSet::new();
    for number in 0..plan.callers {
        let sender = connections[number % connections.len()].clone();
        callers.spawn(call(plan.clone(), sender, measuring.clone(), over.clone()));
    }
    tokio::time::sleep(Duration::from_secs_f64(plan.warm_up_seconds)).await;
    measuring.store(true, Ordering::Relaxed);
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs_f64(plan.seconds)).await;
    over.store(true, Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    let mut latencies = Vec::new();
    while let Some(done) = callers.join_next().await {
        latencies.extend(done??);
    }
    latencies.sort_unstable();
    let at = |share: f64| {
        let index = (latencies.len().saturating_sub(1)) as f64 * share;
        latencies.get(index as usize).map_or(0.0, |nanos| *nanos as f64 / 1e6)
    };
    Ok(serde_json::json!({
        "calls": latencies.len(), "seconds": seconds, "calls_per_second": latencies.len() as f64 / seconds,
        "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0),
    }))
}

async fn connect(plan: &Plan) -> Result<SendRequest<Bytes>, Failure> {
    let credentials = CredentialFiles { cert: plan.credential.clone(), key: plan.credential.clone() };
    let tls = ClientTls::new(Some(credentials), plan.roots.clone(), &[b"h2"])?;
    let stream = TcpStream::connect(&plan.address).await?;
    stream.set_nodelay(true)?;
    let stream = tls.connect(stream, PeerName::Dns(plan.server_name.clone())).await?;
    let (sender, connection) = h2::client::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(stream)
        .await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Latencies in nanoseconds of the calls that were made while it was measured.
async fn call(
    plan: Arc<Plan>,
    sender: SendRequest<Bytes>,
    measuring: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
) -> Result<Vec<u64>, Failure> {
    let mut latencies = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let counts = measuring.load(Ordering::Relaxed);
        let began = Instant::now();
        resume(&plan, sender.clone()).await?;
        if counts && !over.load(Ordering::Relaxed) {
            latencies.push(u64::try_from(began.elapsed().as_nanos())?);
        }
    }
    Ok(latencies)
}

async fn resume(plan: &Plan, sender: SendRequest<Bytes>) -> Result<(), Failure> {
    let request = Request::post(format!("https://{}/ateapi.Control/ResumeActor", plan.server_name))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "30S")
        .header("user-agent", "atenet-load")
        .body(())?;
    let (response, mut stream) = sender.ready().await?.send_request(request, false)?;
    stream.send_data(message(plan), true)?;
    let mut body = response.await?.into_body();
    let mut received = 0;
    while let Some(data) = body.data().await {
        let data = data?;
        received += data.len();
        body.flow_control().release_capacity(data.len())?;
    }
    let trailers = body.trailers().await?.ok_or("no trailers")?;
    let status = trailers.get("grpc-status").ok_or("no status")?;
    if status != "0" || received <= 5 {
        return Err(format!("answered {status:?} with {received} bytes").into());
    }
    Ok(())
}

fn message(plan: &Plan) -> Bytes {
    let name = format!("a{}", fastrand::usize(..plan.actors));
    let request = ResumeActorRequest { actor: Some(ObjectRef { atespace: plan.atespace.clone(), name }) };
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(request.encoded_len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(&request.encode_to_vec());
    framed.freeze()
}
