//! One connected client: its socket, what it said, and the frames that wait for it.

use super::publish::Bytes;
use crate::frame::{self, HEAD};
use crate::message::{FromKeeper, Role};
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Most frames and bytes of screens that wait for a client.
const MOST_FRAMES: usize = 64;
const MOST_BYTES: usize = 512 << 10;
/// Most bytes that wait in all: a client that asks and never reads is disconnected.
const HARD_LIMIT: usize = 4 << 20;
/// Longest frame of a client that has not said its token.
const MOST_FIRST: usize = 4 << 10;
/// Bytes read from a client before others have their turn.
const TURN: usize = 64 << 10;
/// The first frame must come within this time.
pub(super) const HELLO_LIMIT: Duration = Duration::from_secs(2);
/// A client that takes no byte for this time is disconnected.
pub(super) const STALL_LIMIT: Duration = Duration::from_secs(10);

/// A subscription to the screen.
#[derive(Debug)]
pub(super) struct Subscribed {
    /// The frame that was queued last; 0 for none.
    pub(super) sent: u64,
    pub(super) every: Duration,
    pub(super) next: Instant,
    /// The last frame before the queue overflowed.
    ///
    /// A gap and a keyframe come when it is empty.
    pub(super) gap_after: Option<u64>,
}

struct Waiting {
    bytes: Bytes,
    is_screen: bool,
}

pub(super) struct Client {
    pub(super) stream: UnixStream,
    /// `None` until it has said its token.
    pub(super) role: Option<Role>,
    pub(super) subscribed: Option<Subscribed>,
    pub(super) connected: Instant,
    received: Vec<u8>,
    queue: VecDeque<Waiting>,
    queued: usize,
    /// Bytes of the first frame that are written.
    written: usize,
    progress: Instant,
    /// Closed as soon as the queue is written.
    pub(super) closing: bool,
    /// The other end closed.
    pub(super) ended: bool,
}

/// What reading gave.
pub(super) enum Received {
    /// Complete frames.
    Frames(Vec<Vec<u8>>),
    /// A frame that is too long. Frames before it are lost, the connection ends.
    TooLong(u32),
    /// The other end closed.
    Closed,
}

impl Client {
    pub(super) fn new(stream: UnixStream, now: Instant) -> Self {
        Self {
            stream,
            role: None,
            subscribed: None,
            connected: now,
            received: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            written: 0,
            progress: now,
            closing: false,
            ended: false,
        }
    }

    /// Reads what is there, at most a turn.
    pub(super) fn receive(&mut self) -> Received {
        let mut buffer = [0; 16 << 10];
        let mut read: usize = 0;
        while read < TURN {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    // What it said before it went still counts.
                    self.ended = true;
                    break;
                }
                Ok(count) => {
                    self.received.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    read = read.saturating_add(count);
                    // A length that is refused stops here, before its bytes are collected.
                    if let Some(length) = self.too_long() {
                        return Received::TooLong(length);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Received::Closed,
            }
        }
        let mut frames = Vec::new();
        let mut start: usize = 0;
        while let Some(head) = self.received.get(start..).and_then(<[u8]>::first_chunk::<HEAD>) {
            let length = match frame::body_length(*head) {
                Ok(length) if self.role.is_some() || length <= MOST_FIRST => length,
                Ok(_) | Err(_) => return Received::TooLong(u32::from_be_bytes(*head)),
            };
            let body = start.saturating_add(HEAD);
            let end = body.saturating_add(length);
            let Some(bytes) = self.received.get(body..end) else { break };
            frames.push(bytes.to_vec());
            start = end;
        }
        self.received.drain(..start.min(self.received.len()));
        if self.received.is_empty() {
            self.received.shrink_to(4 << 10);
        }
        if self.ended && frames.is_empty() { Received::Closed } else { Received::Frames(frames) }
    }

    fn too_long(&self) -> Option<u32> {
        let head = self.received.first_chunk::<HEAD>()?;
        let length = u32::from_be_bytes(*head);
        let most = if self.role.is_some() { crate::message::MAX_FRAME_BYTES } else { MOST_FIRST };
        usize::try_from(length).ok().is_none_or(|length| length > most).then_some(length)
    }

    /// Queues an answer or a message.
    pub(super) fn say(&mut self, message: &FromKeeper, now: Instant) {
        if let Ok(bytes) = frame::encode(message) {
            self.push(bytes.into(), false, now);
        }
    }

    /// Queues a frame of the screen.
    ///
    /// False if the queue overflowed: then all of them are dropped.
    pub(super) fn show(&mut self, bytes: Bytes, now: Instant) -> bool {
        let is_full = self.queue.len() >= MOST_FRAMES
            || (!self.queue.is_empty() && self.queued.saturating_add(bytes.len()) > MOST_BYTES);
        if is_full {
            self.drop_screens();
            return false;
        }
        self.push(bytes, true, now);
        true
    }

    /// Whether an answer of many lines may go on.
    pub(super) fn has_room(&self) -> bool {
        self.queued < MOST_BYTES
    }

    fn push(&mut self, bytes: Bytes, is_screen: bool, now: Instant) {
        if self.queue.is_empty() {
            self.progress = now;
        }
        self.queued = self.queued.saturating_add(bytes.len());
        self.queue.push_back(Waiting { bytes, is_screen });
    }

    /// Drops all screens but the one that is partly written.
    fn drop_screens(&mut self) {
        let partly = self.written > 0;
        let mut index = 0;
        self.queue.retain(|waiting| {
            let keep = !waiting.is_screen || (index == 0 && partly);
            index += 1;
            keep
        });
        self.queued = self.queue.iter().map(|waiting| waiting.bytes.len()).sum();
    }

    /// Writes what the socket takes. False if the connection is over.
    pub(super) fn write(&mut self, now: Instant) -> bool {
        while let Some(first) = self.queue.front() {
            let rest = first.bytes.get(self.written..).unwrap_or_default();
            match self.stream.write(rest) {
                Ok(count) => {
                    self.progress = now;
                    self.written = self.written.saturating_add(count);
                    if self.written >= first.bytes.len() {
                        self.queued = self.queued.saturating_sub(first.bytes.len());
                        self.queue.pop_front();
                        self.written = 0;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        !(self.closing && self.queue.is_empty()) && self.queued <= HARD_LIMIT
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// When this client is disconnected if it goes on like this.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let hello = self.role.is_none().then(|| self.connected + HELLO_LIMIT);
        let stall = (!self.queue.is_empty()).then(|| self.progress + STALL_LIMIT);
        hello.into_iter().chain(stall).min()
    }
}
