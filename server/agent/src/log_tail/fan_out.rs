//! One tailer per log, however many look: reads, parses and redacts once (H61).
//!
//! What it reads goes into one ring of bounded size. The tailer never waits for a viewer; a viewer
//! that falls out of the ring has missed lines and is told so.

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
const BREATH: Duration = Duration::from_millis(4);

/// Chunks per round; viewers get a chance to take them before the ring turns.
const ROUND: usize = 4;

/// Reads a log as it grows, for as long as it is held.
#[derive(Debug)]
pub(super) struct Tailer {
    ring: Arc<Ring>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Ring {
    content: Mutex<Content>,
    /// Number of the next item, to wait for.
    head: watch::Sender<u64>,
}

#[derive(Debug)]
struct Content {
    items: VecDeque<TailItem>,
    bytes: usize,
    /// Number of the first item.
    first: u64,
    /// All lines that end after this offset are in the ring, as far as they were read.
    floor: u64,
    broken: Option<Arc<io::Error>>,
}

/// A viewer's place in the ring.
#[derive(Debug)]
pub(super) struct Seat {
    tailer: Arc<Tailer>,
    next: u64,
    head: watch::Receiver<u64>,
}

/// What a seat has to offer.
#[derive(Debug)]
pub(super) enum Offer {
    /// In order, never empty.
    Items(Vec<TailItem>),
    /// The log cannot be read any more.
    Broken(Arc<io::Error>),
}

/// Items taken at once: little enough to give them up when the viewer turns away.
const BATCH: usize = 64;

impl Tailer {
    /// Continues from the position of `reader`; `woken` reports changes.
    /// The returned subscription belongs to the viewer that has read everything so far.
    pub fn start(reader: Reader, woken: Subscription) -> Seat {
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
        Seat { tailer: Arc::new(Self { ring, task }), next: 0, head: seen }
    }

    /// Whether it still reads.
    pub fn is_alive(&self) -> bool {
        !self.task.is_finished()
    }

    /// Subscribes a viewer that has read up to `at`.
    /// `None` when the ring no longer holds that position. Lines that end before `at` may be
    /// offered again when the tailer gets there.
    pub fn join(self: &Arc<Self>, at: u64) -> Option<Seat> {
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
        Some(Seat { tailer: Arc::clone(self), next, head })
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

impl Seat {
    /// The tailer it is at.
    pub fn tailer(&self) -> &Arc<Tailer> {
        &self.tailer
    }

    /// The next items. Losing the future loses nothing.
    pub async fn next(&mut self) -> Offer {
        loop {
            self.head.borrow_and_update();
            if let Some(offer) = self.take() {
                return offer;
            }
            if self.head.changed().await.is_err() {
                // The tailer holds the sender, and this seat the tailer.
                std::future::pending::<()>().await;
            }
        }
    }

    fn take(&mut self) -> Option<Offer> {
        let content = self.tailer.ring.lock();
        let missed = self.next < content.first;
        let from = self.next.max(content.first);
        let at = usize::try_from(from - content.first).unwrap_or(usize::MAX);
        let gap = missed.then_some(TailItem::Gap);
        let items: Vec<TailItem> =
            gap.into_iter().chain(content.items.iter().skip(at).take(BATCH).cloned()).collect();
        if items.is_empty() {
            return content.broken.clone().map(Offer::Broken);
        }
        let taken = items.len() as u64 - u64::from(missed);
        drop(content);
        self.next = from + taken;
        Some(Offer::Items(items))
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
            // The runtime ends, or a defect: viewers must not wait for ever.
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
                // F63: what is written from now on may be lost.
                if !std::mem::replace(&mut was_gone, true) {
                    ring.publish(vec![TailItem::Gap]);
                }
            }
            Err(error) => return ring.end(error),
        }
        let rested = tokio::time::Instant::now() + BREATH;
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
