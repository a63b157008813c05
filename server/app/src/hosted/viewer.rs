//! One viewer of a session's events.

use crate::hosted::HostedParts;
use crate::hosted::ring::EventRing;
use bytes::Bytes;
use serde_json::json;
use std::sync::Arc;
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::stream::close;
use tokio::sync::watch;

/// What a viewer is given next.
#[derive(Debug)]
pub enum HostedItem {
    /// An event.
    Event(Bytes),
    /// Nothing follows, for this reason.
    Closed(u16, ErrorCode),
}

/// Reads the events of a session, from where its viewer left off.
pub struct HostedViewer {
    parts: Arc<HostedParts>,
    id: InstanceId,
    ring: Arc<EventRing>,
    news: watch::Receiver<u64>,
    rows: watch::Receiver<u64>,
    cursor: u64,
    is_greeted: bool,
}

impl HostedViewer {
    pub(super) fn new(
        parts: Arc<HostedParts>,
        id: InstanceId,
        ring: Arc<EventRing>,
        after: u64,
        stream: Option<&str>,
    ) -> Self {
        // Numbers begin anew with the ring: a position of another one says nothing.
        let knows = stream.is_none_or(|stream| stream == ring.stream);
        let cursor = if knows { after } else { 0 };
        let (news, rows) = (ring.news(), parts.rows.changes());
        Self { parts, id, ring, news, rows, cursor, is_greeted: false }
    }

    /// Waits for the next event. Cancel-safe.
    pub async fn next(&mut self) -> HostedItem {
        loop {
            self.news.borrow_and_update();
            self.rows.borrow_and_update();
            let Some(session) = self.parts.rows.get(&self.id) else {
                return HostedItem::Closed(close::UNKNOWN, ErrorCode::UnknownInstance);
            };
            if !self.is_greeted {
                self.is_greeted = true;
                let (first, last) = self.ring.range();
                let hello = json!({ "type": "hello", "stream": self.ring.stream,
                    "first_seq": first, "last_seq": last, "status": session.status() });
                self.cursor = self.cursor.min(last);
                return HostedItem::Event(hello.to_string().into());
            }
            let (first, _) = self.ring.range();
            if first > self.cursor + 1 {
                let gap =
                    json!({ "type": "gap", "from_seq": self.cursor + 1, "to_seq": first - 1 });
                self.cursor = first - 1;
                return HostedItem::Event(gap.to_string().into());
            }
            if let Some((seq, event)) = self.ring.after(self.cursor) {
                self.cursor = seq;
                return HostedItem::Event(event);
            }
            if self.ring.is_over() {
                let current = self.parts.rows.rings.known(&self.id, &session.process_id);
                match current.filter(|ring| ring.stream != self.ring.stream) {
                    // A resume: the view goes on with the new process.
                    Some(ring) => {
                        self.news = ring.news();
                        self.ring = ring;
                        self.cursor = 0;
                        self.is_greeted = false;
                        continue;
                    }
                    None if !session.is_live() => {
                        return HostedItem::Closed(close::COMPLETE, ErrorCode::NotFound);
                    }
                    None => {}
                }
            }
            tokio::select! {
                changed = self.news.changed() => if changed.is_err() {
                    return HostedItem::Closed(close::UNKNOWN, ErrorCode::UnknownInstance);
                },
                changed = self.rows.changed() => if changed.is_err() {
                    return HostedItem::Closed(close::GOING_AWAY, ErrorCode::ShuttingDown);
                },
            }
        }
    }
}
