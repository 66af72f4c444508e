//! One JSON line a request. Serving only appends to a buffer; a thread of its own formats and writes.

use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use parking_lot::{Condvar, Mutex};
use serde::Serialize;

use super::RequestRecord;
use super::metrics::resume_label;
use crate::timestamp::Rfc3339;

/// Lines that may wait for the writer; beyond it they are dropped and counted.
const CAPACITY: usize = 65_536;
/// The writer takes a pause's worth of lines at once: one wake-up and one write for many requests.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct AccessLog {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: Vec<(SystemTime, RequestRecord)>,
    closed: bool,
}

/// What a line holds: no header values, no path, no query.
#[derive(Serialize)]
struct Line<'a> {
    time: Rfc3339,
    level: &'static str,
    logger: &'static str,
    message: &'static str,
    listener: &'a str,
    atespace: Option<&'a str>,
    actor: Option<&'a str>,
    method: &'a str,
    status: Option<u16>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    resume: &'static str,
    cached: bool,
    route_ms: f64,
    duration_ms: f64,
    bytes_in: u64,
    bytes_out: u64,
    upstream: Option<std::net::SocketAddr>,
}

impl AccessLog {
    pub(super) fn to(sink: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), filled: Condvar::new() });
        let writing = shared.clone();
        let writer = std::thread::Builder::new().name("access-log".into()).spawn(move || write(&writing, sink))?;
        Ok(Self { shared, writer: Mutex::new(Some(writer)) })
    }

    /// False: the line was dropped.
    pub(super) fn push(&self, record: RequestRecord) -> bool {
        let now = SystemTime::now();
        let mut queue = self.shared.queue.lock();
        if queue.lines.len() >= CAPACITY || queue.closed {
            return false;
        }
        queue.lines.push((now, record));
        if queue.lines.len() == 1 {
            self.shared.filled.notify_one();
        }
        true
    }

    /// Writes what is left and ends the writer.
    pub(super) fn close(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.filled.notify_one();
        if let Some(writer) = self.writer.lock().take() {
            // A writer that panicked has nothing left to say.
            writer.join().ok();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.close();
    }
}

fn write(shared: &Shared, mut sink: Box<dyn Write + Send>) {
    let (mut lines, mut text) = (Vec::new(), Vec::new());
    loop {
        let closed = {
            let mut queue = shared.queue.lock();
            while queue.lines.is_empty() && !queue.closed {
                shared.filled.wait(&mut queue);
            }
            std::mem::swap(&mut queue.lines, &mut lines);
            queue.closed
        };
        for (time, record) in lines.drain(..) {
            append(&mut text, time, &record);
        }
        // Nowhere to say that stderr is gone.
        sink.write_all(&text).ok();
        text.clear();
        if closed {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

fn append(text: &mut Vec<u8>, time: SystemTime, record: &RequestRecord) {
    let line = Line {
        time: Rfc3339(time),
        level: "info",
        logger: "atenet.access",
        message: "request",
        listener: &record.listener,
        atespace: record.actor.as_ref().map(|actor| actor.atespace()),
        actor: record.actor.as_ref().map(|actor| actor.name()),
        method: record.method.as_str(),
        status: record.status.map(|status| status.as_u16()),
        outcome: record.outcome.class(),
        reason: record.outcome.reason(),
        trace_id: record.trace.id(),
        resume: resume_label(record.disposition),
        cached: record.cached,
        route_ms: millis(record.route),
        duration_ms: millis(record.total),
        bytes_in: record.bytes_in,
        bytes_out: record.bytes_out,
        upstream: record.upstream,
    };
    let start = text.len();
    match serde_json::to_writer(&mut *text, &line) {
        Ok(()) => text.push(b'\n'),
        Err(_) => text.truncate(start),
    }
}

/// Milliseconds with three digits behind the point.
fn millis(time: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)] // exact up to 285 years
    let micros = time.as_micros() as f64;
    micros / 1_000.0
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::actor_ref::ActorRef;
    use crate::assignment::Disposition;
    use crate::refusal::Refusal;
    use crate::telemetry::Outcome;
    use crate::trace::Trace;

    #[derive(Clone, Default)]
    pub(in crate::telemetry) struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Sink {
        pub(in crate::telemetry) fn lines(&self) -> Vec<serde_json::Value> {
            let text = String::from_utf8(self.0.lock().clone()).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    pub(in crate::telemetry) fn record() -> RequestRecord {
        RequestRecord {
            actor: Some(ActorRef::new("team-a", "agent-7").unwrap()),
            listener: "direct-tls".into(),
            method: http::Method::POST,
            status: Some(http::StatusCode::OK),
            outcome: Outcome::Served,
            disposition: Disposition::Triggered,
            cached: false,
            route: Duration::from_micros(1_234),
            total: Duration::from_millis(20),
            bytes_in: 5,
            bytes_out: 7,
            upstream: Some("127.1.0.1:8443".parse().unwrap()),
            trace: Trace::passing(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
        }
    }

    #[test]
    fn a_request_is_one_json_line_and_closing_writes_what_is_left() {
        let sink = Sink::default();
        let log = AccessLog::to(Box::new(sink.clone())).unwrap();
        assert!(log.push(record()));
        let refused = RequestRecord { actor: None, outcome: Outcome::Refused(Refusal::BadTarget), ..record() };
        assert!(log.push(refused));
        log.close();
        let lines = sink.lines();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["atespace"], &lines[0]["actor"]), (&"team-a".into(), &"agent-7".into()));
        assert_eq!((&lines[0]["route_ms"], &lines[0]["resume"]), (&1.234.into(), &"triggered".into()));
        assert_eq!(lines[0]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((&lines[1]["outcome"], &lines[1]["reason"]), (&"refused".into(), &"bad-target".into()));
        assert!(!log.push(record()));
    }
}
