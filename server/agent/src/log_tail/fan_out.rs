//! One tailer per log, for any number of viewers: reads and redacts once (H61).
//!
//! The tailer puts items into a ring of bounded size and never waits for a viewer. A slow viewer misses
//! the oldest items and gets a gap mark.

use super::reader::{Progress, Reader, TailItem};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_watch::Subscription;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Lines a viewer may be behind (`http-api` §4.1).
const RING_LINES: usize = 4096;

/// Bytes a viewer may be behind (`http-api` §4.1).
const RING_BYTES: usize = 1024 * 1024;

/// Least pause between two reads.
/// The agent opens, appends and closes for every few lines. The first line after silence does not
/// wait.
const READ_PAUSE: Duration = Duration::from_millis(4);

/// Chunks per round. Viewers can take the items before newer ones replace them.
const ROUND: usize = 4;

/// Reads a log as it grows. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct Tailer {
    ring: Arc<Ring>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Ring {
    content: Mutex<Content>,
    /// Number of the next item. Subscribers wait for it to change.
    head: watch::Sender<u64>,
}

#[derive(Debug)]
struct Content {
    items: VecDeque<TailItem>,
    bytes: usize,
    /// Number of the first item.
    first: u64,
    /// All lines read so far that end after this offset are in the ring.
    floor: u64,
    broken: Option<Arc<io::Error>>,
}

/// The subscription of one viewer to a tailer.
#[derive(Debug)]
pub(super) struct Subscriber {
    tailer: Arc<Tailer>,
    next: u64,
    head: watch::Receiver<u64>,
}

/// What a subscriber receives.
#[derive(Debug)]
pub(super) enum Received {
    /// The next items, in order. Never empty.
    Items(Vec<TailItem>),
    /// The log cannot be read any more.
    Broken(Arc<io::Error>),
}

/// Most items received at once. Few enough to drop them when the viewer leaves.
const BATCH: usize = 64;

impl Tailer {
    /// Continues from the position of `reader`; `woken` reports changes.
    /// The returned subscription belongs to the viewer that has read everything so far.
    pub fn start(reader: Reader, woken: Subscription) -> Subscriber {
        let content = Content {
            items: VecDeque::new(),
            bytes: 0,
            first: 0,
            floor: reader.resting(),
            broken: None,
        };
        let (head, seen) = watch::channel(0);
        let ring = Arc::new(Ring { content: Mutex::new(content), head });
        let task = tokio::spawn(run(reader, Arc::clone(&ring), woken));
        Subscriber { tailer: Arc::new(Self { ring, task }), next: 0, head: seen }
    }

    /// Whether its task still runs.
    pub fn is_alive(&self) -> bool {
        !self.task.is_finished()
    }

    /// Subscribes a viewer that has read up to `at`.
    /// `None` if the ring no longer contains that position. Lines that end before `at` may be
    /// received again when the tailer gets there.
    pub fn join(self: &Arc<Self>, at: u64) -> Option<Subscriber> {
        let head = self.ring.head.subscribe();
        let content = self.ring.lock();
        if at < content.floor {
            return None;
        }
        let seen = content.items.iter().rposition(|item| match item {
            TailItem::Line { end, .. } => *end <= at,
            TailItem::Rotated { .. } | TailItem::Gap => false,
        });
        let next = content.first + seen.map_or(0, |index| index as u64 + 1);
        drop(content);
        Some(Subscriber { tailer: Arc::clone(self), next, head })
    }
}

impl Drop for Tailer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Ring {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, items: Vec<TailItem>) {
        if items.is_empty() {
            return;
        }
        let mut content = self.lock();
        for item in items {
            content.bytes += cost(&item);
            content.items.push_back(item);
        }
        while content.items.len() > RING_LINES || content.bytes > RING_BYTES {
            let Some(oldest) = content.items.pop_front() else {
                break;
            };
            content.bytes -= cost(&oldest);
            content.first += 1;
            match oldest {
                TailItem::Line { end, .. } => content.floor = end,
                TailItem::Rotated { start } => content.floor = content.floor.max(start),
                TailItem::Gap => {}
            }
        }
        let head = content.first + content.items.len() as u64;
        drop(content);
        self.head.send_replace(head);
    }

    fn end(&self, error: io::Error) {
        self.lock().broken = Some(Arc::new(error));
        self.head.send_modify(|_| {});
    }
}

fn cost(item: &TailItem) -> usize {
    match item {
        TailItem::Line { text, .. } => text.len(),
        TailItem::Rotated { .. } | TailItem::Gap => 0,
    }
}

impl Subscriber {
    /// The tailer that it subscribes to.
    pub fn tailer(&self) -> &Arc<Tailer> {
        &self.tailer
    }

    /// Waits for the next items. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Received {
        loop {
            self.head.borrow_and_update();
            if let Some(received) = self.take() {
                return received;
            }
            if self.head.changed().await.is_err() {
                // Cannot happen: the tailer holds the sender, and this value holds the tailer.
                std::future::pending::<()>().await;
            }
        }
    }

    fn take(&mut self) -> Option<Received> {
        let content = self.tailer.ring.lock();
        let missed = self.next < content.first;
        let from = self.next.max(content.first);
        let at = usize::try_from(from - content.first).unwrap_or(usize::MAX);
        let gap = missed.then_some(TailItem::Gap);
        let items: Vec<TailItem> =
            gap.into_iter().chain(content.items.iter().skip(at).take(BATCH).cloned()).collect();
        if items.is_empty() {
            return content.broken.clone().map(Received::Broken);
        }
        let taken = items.len() as u64 - u64::from(missed);
        drop(content);
        self.next = from + taken;
        Some(Received::Items(items))
    }
}

async fn run(mut reader: Reader, ring: Arc<Ring>, mut woken: Subscription) {
    let mut was_gone = false;
    loop {
        let round = tokio::task::spawn_blocking(move || {
            let mut items = Vec::new();
            let progress = round(&mut reader, &mut items);
            (reader, items, progress)
        });
        let Ok((back, items, progress)) = round.await else {
            // The runtime ends, or the reader panicked: viewers must not wait for ever.
            return ring.end(io::Error::other("reading the log was interrupted"));
        };
        reader = back;
        ring.publish(items);
        match progress {
            Ok(Progress::More) => {
                tokio::task::yield_now().await;
                continue;
            }
            Ok(Progress::UpToDate) => was_gone = false,
            Ok(Progress::Gone) => {
                // F63: lines written from now on may be lost.
                if !std::mem::replace(&mut was_gone, true) {
                    ring.publish(vec![TailItem::Gap]);
                }
            }
            Err(error) => return ring.end(error),
        }
        let rested = tokio::time::Instant::now() + READ_PAUSE;
        woken.changed().await;
        tokio::time::sleep_until(rested).await;
    }
}

fn round(reader: &mut Reader, items: &mut Vec<TailItem>) -> io::Result<Progress> {
    for _ in 0..ROUND {
        match reader.step(items)? {
            Progress::More => {}
            done @ (Progress::UpToDate | Progress::Gone) => return Ok(done),
        }
    }
    Ok(Progress::More)
}
