//! One reader of the stream.
//!
//! A reader owns no queue: it is a position in the ring. Its backlog is bounded by comparing that
//! position with the head, so a stalled reader costs nothing and never holds up a writer.

use super::ReadModel;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::stream::{EventFrame, PROTOCOL};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// Most frames a reader may be behind (`http-api` §4.1).
const FRAMES_BEHIND: usize = 4096;
/// Most bytes a reader may be behind.
const BYTES_BEHIND: u64 = 1024 * 1024;
/// Two overflows within this time mean that the reader cannot keep up.
const OVERFLOW_WINDOW: Duration = Duration::from_secs(30);
/// A fresh snapshot is given at most this often.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(1);

/// What a reader gets next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// One JSON text frame.
    Frame(Bytes),
    /// The reader cannot keep up: close with 4408.
    TooSlow,
}

/// A position in the stream with everything it still has to be told.
#[derive(Debug)]
pub struct Subscription {
    model: Arc<ReadModel>,
    head: watch::Receiver<u64>,
    toasts: broadcast::Receiver<Bytes>,
    /// `None` while the reader does not want them.
    samples: Option<broadcast::Receiver<Bytes>>,
    hello: Option<Bytes>,
    snapshot_due: Option<&'static str>,
    /// Last delta the reader has.
    at: u64,
    /// Deltas up to here were promised by `hello` and are not a backlog.
    promised: u64,
    /// The reader had everything when it last asked.
    /// A burst since then is not its fault.
    was_current: bool,
    overflowed: Option<Instant>,
    requested: Option<Instant>,
}

impl ReadModel {
    /// Opens the stream, at the position of an earlier one when that is still known.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, since: Option<(String, u64)>) -> Subscription {
        let mut inner = self.lock();
        inner.is_followed = true;
        let snapshot_due = match since.as_ref() {
            None => Some("initial"),
            Some((boot, _)) if **boot != *self.boot => Some("boot"),
            Some((_, seq)) if *seq > inner.seq => Some("gap"),
            Some((_, seq)) if !inner.ring.reaches_back_to(*seq, inner.seq) => Some("gap"),
            Some(_) => None,
        };
        let hello = EventFrame::Hello {
            v: PROTOCOL,
            boot: self.boot.to_string(),
            seq: inner.seq,
            server_version: env!("CARGO_PKG_VERSION").into(),
            resumed: snapshot_due.is_none(),
            time: super::now(),
        };
        Subscription {
            model: Arc::clone(self),
            head: self.head.subscribe(),
            toasts: self.toasts.subscribe(),
            samples: Some(self.sample_feed()),
            hello: Some(super::encode(&hello)),
            snapshot_due,
            at: since.map_or(0, |(_, seq)| seq),
            promised: inner.seq,
            was_current: true,
            overflowed: None,
            requested: None,
        }
    }
}

impl Subscription {
    /// Waits for the next frame.
    /// Cancel-safe: a frame is taken only when it is returned.
    pub async fn next(&mut self) -> Feed {
        loop {
            self.head.mark_unchanged();
            if let Some(feed) = self.ready() {
                return feed;
            }
            tokio::select! {
                // The sender lives in the model, which this subscription holds.
                _ = self.head.changed() => {}
                toast = self.toasts.recv() => match toast {
                    Ok(frame) => return Feed::Frame(frame),
                    // Too many at once: the older ones are gone, which is allowed.
                    Err(RecvError::Lagged(_) | RecvError::Closed) => {}
                },
                sample = next_sample(&mut self.samples) => if let Some(frame) = sample {
                    return Feed::Frame(frame);
                },
            }
        }
    }

    /// Turns samples on, as they are at first, or off.
    pub fn want_samples(&mut self, on: bool) {
        match (on, &self.samples) {
            (true, None) => self.samples = Some(self.model.sample_feed()),
            (true, Some(_)) => {}
            (false, _) => self.samples = None,
        }
    }

    /// Asks for a snapshot; ignored within a second of the last request.
    pub fn request_snapshot(&mut self) {
        let now = Instant::now();
        if self.requested.is_none_or(|at| now.duration_since(at) >= SNAPSHOT_EVERY) {
            self.requested = Some(now);
            self.snapshot_due = Some("requested");
        }
    }

    fn ready(&mut self) -> Option<Feed> {
        if let Some(hello) = self.hello.take() {
            return Some(Feed::Frame(hello));
        }
        if let Some(reason) = self.snapshot_due.take() {
            return Some(Feed::Frame(self.snapshot(reason)));
        }
        let behind = {
            let inner = self.model.lock();
            if self.at >= inner.seq {
                self.was_current = true;
                return None;
            }
            inner.ring.after(self.at)
        };
        let is_promised = self.at < self.promised;
        match behind {
            Some(behind)
                if is_promised
                    || (behind.frames <= FRAMES_BEHIND && behind.bytes <= BYTES_BEHIND) =>
            {
                self.at += 1;
                self.was_current = false;
                Some(Feed::Frame(behind.frame))
            }
            Some(_) | None => Some(self.overflow()),
        }
    }

    fn overflow(&mut self) -> Feed {
        let now = Instant::now();
        if !self.was_current {
            let is_again =
                self.overflowed.is_some_and(|at| now.duration_since(at) < OVERFLOW_WINDOW);
            if is_again {
                return Feed::TooSlow;
            }
            self.overflowed = Some(now);
        }
        Feed::Frame(self.snapshot("overflow"))
    }

    fn snapshot(&mut self, reason: &'static str) -> Bytes {
        let (seq, frame) = self.model.snapshot_frame(reason);
        self.at = seq;
        self.promised = seq;
        self.was_current = false;
        frame
    }
}

/// `None` when some were missed, which is allowed.
async fn next_sample(samples: &mut Option<broadcast::Receiver<Bytes>>) -> Option<Bytes> {
    match samples {
        Some(samples) => samples.recv().await.ok(),
        None => std::future::pending().await,
    }
}
