//! The open streams of an HTTP/2 connection, from its frame heads alone.

use std::collections::HashSet;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const END_STREAM: u8 = 0x1;

/// A stream is in flight from its first HEADERS until the actor's last frame, or a reset by either side.
#[derive(Default)]
pub(super) struct Streams {
    open: HashSet<u32>,
    /// The last one that the router began; trailers of an earlier one begin nothing.
    last: u32,
    up: Frames,
    down: Frames,
}

impl Streams {
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether there was a stream, and none is open.
    pub(super) fn all_answered(&self) -> bool {
        self.last > 0 && self.open.is_empty()
    }

    pub(super) fn asked(&mut self, bytes: &[u8]) {
        let Self { open, last, up, .. } = self;
        up.feed(bytes, |frame| match frame.kind {
            HEADERS if frame.stream > *last => {
                *last = frame.stream;
                open.insert(frame.stream);
            }
            RST_STREAM => {
                open.remove(&frame.stream);
            }
            _ => {}
        });
    }

    pub(super) fn answered(&mut self, bytes: &[u8]) {
        let Self { open, down, .. } = self;
        down.feed(bytes, |frame| {
            let ends = matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0;
            if ends || frame.kind == RST_STREAM {
                open.remove(&frame.stream);
            }
        });
    }
}

struct FrameHead {
    kind: u8,
    flags: u8,
    stream: u32,
}

/// Finds the frame heads in one direction, however it is cut into pieces.
#[derive(Default)]
struct Frames {
    head: [u8; 9],
    filled: usize,
    /// Bytes left of the present frame's payload.
    payload: usize,
}

impl Frames {
    fn feed(&mut self, mut bytes: &[u8], mut seen: impl FnMut(FrameHead)) {
        loop {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return;
            }
            let taken = (self.head.len() - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled < self.head.len() {
                return;
            }
            let [a, b, c, kind, flags, d, e, f, g] = self.head;
            self.filled = 0;
            self.payload = u32::from_be_bytes([0, a, b, c]) as usize;
            seen(FrameHead { kind, flags, stream: u32::from_be_bytes([d & 0x7f, e, f, g]) });
        }
    }
}
