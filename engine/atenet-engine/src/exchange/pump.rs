//! One exchange, both directions at once: the body goes up while answers come down.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::{Sleep, sleep};

use super::headers;
use super::party::{ActorError, ActorRecv, ActorSend, ClientError, RequestBody, Responder};
use crate::http1::{Frame, ResponseHead};
use crate::pipe::Idle;

/// Queued bytes beyond which a side is flushed before more is taken in.
const HIGH: usize = 64 * 1024;
/// How long a client that waits for a 100 is left waiting by a silent actor.
const CONTINUE_AFTER: Duration = Duration::from_secs(1);
/// How long an upload that its actor does not take may stall once the answer is complete. A client that pauses has
/// the idle limit's time.
const LINGER: Duration = Duration::from_secs(2);

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer is through; `whole`: so is the request's body.
    Done {
        whole: bool,
    },
    /// The actor switched protocols; the head is for the caller to pass on.
    Switched,
    ClientGone,
    /// The request's body is malformed.
    BadRequest,
    /// No final head came.
    Failed(ActorError),
    /// The answer broke off after its head, with the HTTP/2 error that the actor gave.
    Cut(Option<u32>),
    /// Nothing moved for too long; `answered`: the head was already sent.
    Idle {
        answered: bool,
    },
}

/// What was moved so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) status: Option<StatusCode>,
    /// Bytes of the request were taken by the tunnel.
    pub(crate) sent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Up {
    Body,
    Flush,
    /// All sent; only the client's leaving is of interest.
    Watch,
    /// The actor takes no more.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Down {
    Head,
    Body,
    Flush,
    Done,
}

pub(crate) struct Pump<'a, B, R, S, V> {
    pub(crate) body: &'a mut B,
    pub(crate) responder: &'a mut R,
    pub(crate) send: S,
    pub(crate) recv: V,
    pub(crate) method: &'a Method,
    pub(crate) head: &'a mut ResponseHead,
    pub(crate) idle: &'a Idle,
    pub(crate) tally: Tally,
    up: Up,
    down: Down,
    /// The client waits for a 100 that has not come yet.
    owed: Option<Pin<Box<Sleep>>>,
    /// It was never told to go on, so its body may never come.
    withheld: bool,
    linger: Option<Pin<Box<Sleep>>>,
}

impl<'a, B: RequestBody, R: Responder, S: ActorSend, V: ActorRecv> Pump<'a, B, R, S, V> {
    pub(crate) fn new(
        client: (&'a mut B, &'a mut R),
        actor: (S, V),
        method: &'a Method,
        head: &'a mut ResponseHead,
        idle: &'a Idle,
    ) -> Self {
        let (body, responder) = client;
        let (send, recv) = actor;
        let (tally, up, down) = (Tally::default(), Up::Body, Down::Head);
        let (owed, withheld, linger) = (None, false, None);
        Self { body, responder, send, recv, method, head, idle, tally, up, down, owed, withheld, linger }
    }

    /// The client holds its body back until it hears a 100.
    pub(crate) fn expect_continue(&mut self) {
        self.owed = Some(Box::pin(sleep(CONTINUE_AFTER)));
        self.withheld = true;
    }

    /// Runs to the end.
    pub(crate) async fn run(&mut self) -> End {
        self.idle.touch();
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready(end) = self.poll_up(cx) {
            return Poll::Ready(end);
        }
        if let Poll::Ready(end) = self.poll_down(cx) {
            return Poll::Ready(end);
        }
        self.poll_continue(cx);
        if self.idle.poll_expired(cx).is_ready() {
            return Poll::Ready(End::Idle { answered: self.down != Down::Head });
        }
        Poll::Pending
    }

    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match self.up {
                Up::Body if self.send.queued() >= HIGH => ready!(self.flush_up(cx)),
                Up::Body => match self.body.poll_frame(cx) {
                    Poll::Ready(Ok(frame)) => self.upload(frame),
                    Poll::Ready(Err(ClientError::Gone)) => return Poll::Ready(End::ClientGone),
                    Poll::Ready(Err(ClientError::Malformed)) if self.down == Down::Head => {
                        return Poll::Ready(End::BadRequest);
                    }
                    Poll::Ready(Err(ClientError::Malformed)) => return Poll::Ready(End::Cut(None)),
                    Poll::Pending => {
                        if self.send.queued() > 0 {
                            ready!(self.flush_up(cx));
                            continue;
                        }
                        return Poll::Pending;
                    }
                },
                Up::Flush => {
                    ready!(self.flush_up(cx));
                    if self.up == Up::Flush {
                        self.up = Up::Watch;
                    }
                }
                Up::Watch | Up::Stopped => return self.body.poll_gone(cx).map(|()| End::ClientGone),
            }
        }
    }

    fn upload(&mut self, frame: Frame) {
        self.idle.touch();
        match frame {
            Frame::Data(data) => {
                self.withheld = false;
                self.owed = None;
                self.tally.bytes_in += data.len() as u64;
                self.send.data(data);
            }
            Frame::End(mut fields) => {
                if let Some(fields) = &mut fields {
                    headers::trailers(fields);
                }
                self.send.end(fields);
                self.up = Up::Flush;
            }
        }
    }

    /// An actor that stops reading may still answer: what it says decides, not that it stopped.
    fn flush_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let before = self.send.queued();
        let flushed = self.send.poll_flush(cx);
        if self.send.queued() < before || matches!(flushed, Poll::Ready(Ok(()))) {
            self.tally.sent = true;
            self.linger = None;
            self.idle.touch();
        }
        if ready!(flushed).is_err() {
            self.up = Up::Stopped;
        }
        Poll::Ready(())
    }

    fn poll_down(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match self.down {
                Down::Head => match self.recv.poll_head(cx, self.head) {
                    Poll::Ready(Ok(())) => {
                        if let Some(end) = self.on_head() {
                            return Poll::Ready(end);
                        }
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(End::Failed(error)),
                    Poll::Pending => return self.wait_down(cx),
                },
                Down::Body if self.responder.queued() >= HIGH => {
                    if ready!(self.responder.poll_flush(cx)).is_err() {
                        return Poll::Ready(End::ClientGone);
                    }
                }
                Down::Body => match self.recv.poll_frame(cx) {
                    Poll::Ready(Ok(frame)) => self.download(frame),
                    Poll::Ready(Err(ActorError::Broken { code, .. })) => return Poll::Ready(End::Cut(code)),
                    Poll::Ready(Err(ActorError::Protocol)) => return Poll::Ready(End::Cut(None)),
                    Poll::Pending => return self.wait_down(cx),
                },
                Down::Flush => match ready!(self.responder.poll_flush(cx)) {
                    Ok(()) => self.down = Down::Done,
                    Err(_) => return Poll::Ready(End::ClientGone),
                },
                Down::Done => return self.poll_linger(cx),
            }
        }
    }

    /// Takes a head in; returns an end where the exchange stops here.
    fn on_head(&mut self) -> Option<End> {
        self.idle.touch();
        let status = self.head.status;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Some(End::Switched);
        }
        if status.is_informational() {
            // Ours went out already: a second 100 says nothing new.
            if status == StatusCode::CONTINUE {
                self.withheld = false;
            }
            if status != StatusCode::CONTINUE || self.owed.take().is_some() {
                headers::to_client(&mut self.head.fields);
                self.responder.inform(self.head);
            }
            return None;
        }
        self.owed = None;
        let framing = match self.recv.begin_body(self.method, self.head) {
            Ok(framing) => framing,
            Err(error) => return Some(End::Failed(error)),
        };
        headers::to_client(&mut self.head.fields);
        self.tally.status = Some(status);
        self.responder.start(self.head, framing);
        self.down = Down::Body;
        None
    }

    fn download(&mut self, frame: Frame) {
        self.idle.touch();
        match frame {
            Frame::Data(data) => {
                self.tally.bytes_out += data.len() as u64;
                self.responder.data(data);
            }
            Frame::End(mut fields) => {
                if let Some(fields) = &mut fields {
                    headers::trailers(fields);
                }
                self.responder.end(fields);
                self.down = Down::Flush;
            }
        }
    }

    /// The actor is silent: send what is queued and watch for the client's leaving.
    fn wait_down(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.responder.queued() > 0 && matches!(self.responder.poll_flush(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(End::ClientGone);
        }
        self.responder.poll_gone(cx).map(|()| End::ClientGone)
    }

    /// The answer is complete. The upload runs to its own end, unless the actor leaves it lying or it was never
    /// asked for.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.up {
            Up::Watch => return Poll::Ready(End::Done { whole: true }),
            Up::Stopped => return Poll::Ready(End::Done { whole: false }),
            Up::Body if self.withheld => return Poll::Ready(End::Done { whole: false }),
            Up::Body | Up::Flush if self.send.queued() == 0 => return Poll::Pending,
            Up::Body | Up::Flush => {}
        }
        let linger = self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        linger.as_mut().poll(cx).map(|()| End::Done { whole: false })
    }

    fn poll_continue(&mut self, cx: &mut Context<'_>) {
        let Some(owed) = &mut self.owed else { return };
        if self.down == Down::Head && owed.as_mut().poll(cx).is_ready() {
            self.owed = None;
            self.withheld = false;
            let head = ResponseHead { status: StatusCode::CONTINUE, ..ResponseHead::default() };
            self.responder.inform(&head);
            // An error shows again at the next write.
            let _later = self.responder.poll_flush(cx);
        }
    }
}
