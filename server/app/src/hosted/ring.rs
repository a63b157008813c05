//! The events of sessions that are kept for whoever watches.
//!
//! Viewers read at their own pace from the ring, so none of them slows the session or another
//! viewer, and memory is bounded by the ring alone.

use bytes::Bytes;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_shared::ids::InstanceId;
use tokio::sync::watch;

/// Most events that are kept.
const EVENTS: usize = 4096;
/// Most bytes of them.
const BYTES: usize = 32 * 1024 * 1024;

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last: u64,
    is_over: bool,
}

/// The events of one process of a session.
#[derive(Debug)]
pub(crate) struct EventRing {
    /// Random; another one when the ring is rebuilt.
    pub stream: String,
    process: String,
    inner: Mutex<Inner>,
    news: watch::Sender<u64>,
}

impl EventRing {
    fn new(process: &str) -> Self {
        let random = getrandom::u64().unwrap_or_default();
        Self {
            stream: format!("{random:016x}"),
            process: process.to_owned(),
            inner: Mutex::default(),
            news: watch::Sender::new(0),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an event, numbered.
    pub fn push(&self, mut event: Value) {
        let mut inner = self.inner();
        inner.last += 1;
        let seq = inner.last;
        if let Some(members) = event.as_object_mut() {
            members.insert("event_seq".to_owned(), seq.into());
        }
        let line = Bytes::from(event.to_string());
        inner.bytes += line.len();
        inner.events.push_back((seq, line));
        while (inner.bytes > BYTES || inner.events.len() > EVENTS) && inner.events.len() > 1 {
            if let Some((_, old)) = inner.events.pop_front() {
                inner.bytes -= old.len();
            }
        }
        drop(inner);
        self.news.send_replace(seq);
    }

    /// Nothing follows.
    pub fn finish(&self) {
        self.inner().is_over = true;
        self.news.send_modify(|_| {});
    }

    /// Numbers of the oldest and the newest event.
    pub fn range(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.events.front().map_or(0, |(seq, _)| *seq), inner.last)
    }

    /// Whether nothing follows.
    pub fn is_over(&self) -> bool {
        self.inner().is_over
    }

    /// The event after `seq`, with its number.
    pub fn after(&self, seq: u64) -> Option<(u64, Bytes)> {
        let inner = self.inner();
        let first = inner.events.front()?.0;
        let skipped = usize::try_from(seq.saturating_add(1).saturating_sub(first)).ok()?;
        inner.events.get(skipped).cloned()
    }

    /// Tells of new events.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }
}

/// The rings of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Rings(Mutex<HashMap<InstanceId, Arc<EventRing>>>);

impl Rings {
    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Arc<EventRing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ring of a process, if it has one.
    pub fn known(&self, id: &InstanceId, process: &str) -> Option<Arc<EventRing>> {
        self.lock().get(id).filter(|ring| ring.process == process).cloned()
    }

    /// The ring of a process; a new one in the place of an earlier process's.
    pub fn of(&self, id: &InstanceId, process: &str) -> Arc<EventRing> {
        let mut rings = self.lock();
        if let Some(ring) = rings.get(id).filter(|ring| ring.process == process) {
            return Arc::clone(ring);
        }
        let ring = Arc::new(EventRing::new(process));
        if let Some(before) = rings.insert(id.clone(), Arc::clone(&ring)) {
            before.finish();
        }
        ring
    }

    /// Number of the newest event of a process.
    pub fn last(&self, id: &InstanceId, process: &str) -> u64 {
        self.known(id, process).map_or(0, |ring| ring.range().1)
    }

    /// Drops the ring of a session that was forgotten.
    pub fn drop_of(&self, id: &InstanceId) {
        if let Some(ring) = self.lock().remove(id) {
            ring.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_numbered_from_one_and_the_oldest_go() {
        let ring = EventRing::new("p");
        assert_eq!(ring.range(), (0, 0));
        for n in 0..EVENTS + 2 {
            ring.push(json!({ "n": n }));
        }
        let (first, last) = ring.range();
        assert_eq!((first, last), (3, EVENTS as u64 + 2));
        let (seq, event) = ring.after(0).unwrap();
        let event: Value = serde_json::from_slice(&event).unwrap();
        assert_eq!((seq, &event["event_seq"], &event["n"]), (3, &json!(3), &json!(2)));
        assert_eq!(ring.after(last - 1).unwrap().0, last);
        assert!(ring.after(last).is_none());
    }

    #[test]
    fn another_process_gets_another_stream() {
        let rings = Rings::default();
        let id: InstanceId = "3b000000-0000-4000-8000-000000000004".parse().unwrap();
        let first = rings.of(&id, "one");
        first.push(json!({}));
        assert_eq!(rings.of(&id, "one").stream, first.stream);
        let second = rings.of(&id, "two");
        assert!(first.is_over() && second.stream != first.stream);
        assert_eq!((rings.last(&id, "one"), rings.last(&id, "two")), (0, 0));
    }
}
