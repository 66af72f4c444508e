//! The one thread that enters other namespaces.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use nix::sched::{CloneFlags, setns};
use socket2::{Domain, Type};
use tokio::sync::oneshot;

/// One socket to make.
pub(crate) struct Job {
    pub(crate) netns: Arc<File>,
    pub(crate) domain: Domain,
    pub(crate) kind: Type,
}

type Made = io::Result<OwnedFd>;
type Queue = mpsc::Sender<(Job, oneshot::Sender<Made>)>;

static QUEUE: Mutex<Option<Queue>> = Mutex::new(None);

/// Hands the job to the helper thread, starting it if there is none.
pub(crate) fn run(job: Job) -> oneshot::Receiver<Made> {
    let (reply, made) = oneshot::channel();
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    let unsent = match queue.as_ref() {
        Some(sender) => sender.send((job, reply)).err().map(|refused| refused.0),
        None => Some((job, reply)),
    };
    if let Some((job, reply)) = unsent {
        *queue = start(job, reply);
    }
    made
}

/// What a caller is told whose job was lost with the thread.
pub(crate) fn ended() -> io::Error {
    io::Error::other("the thread that enters network namespaces ended")
}

fn start(job: Job, reply: oneshot::Sender<Made>) -> Option<Queue> {
    let (sender, jobs) = mpsc::channel();
    let builder = thread::Builder::new().name("netns".into()).stack_size(128 * 1024);
    match builder.spawn(move || serve(&jobs)) {
        Ok(_detached) => {
            // Cannot fail: the thread holds the receiver and has had no job yet. If it does, the caller sees `ended`.
            let _lost = sender.send((job, reply));
            Some(sender)
        }
        Err(error) => {
            let _caller_gone = reply.send(Err(error));
            None
        }
    }
}

fn serve(jobs: &mpsc::Receiver<(Job, oneshot::Sender<Made>)>) {
    let home = File::open("/proc/thread-self/ns/net");
    for (job, reply) in jobs {
        let Ok(home) = &home else {
            let _caller_gone = reply.send(Err(io::Error::other("cannot open the process's own network namespace")));
            continue;
        };
        let made = setns(&job.netns, CloneFlags::CLONE_NEWNET)
            .map_err(io::Error::from)
            .and_then(|()| super::new_socket(job.domain, job.kind));
        let back = setns(home, CloneFlags::CLONE_NEWNET);
        let _caller_gone = reply.send(made);
        if back.is_err() {
            // A thread that cannot go home must not make another socket; the next job starts a new one.
            return;
        }
    }
}
