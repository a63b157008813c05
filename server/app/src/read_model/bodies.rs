//! Encoded answers of the large lists, built once per change.

use super::{ReadModel, Revisions, Snapshot};
use bytes::Bytes;
use std::sync::{Arc, PoisonError};
use svc_shared::api::instances::Instance;

/// A list that is kept encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// `GET /instances`
    Instances,
    /// `GET /projects`
    Projects,
    /// `GET /api/state`
    State,
}

/// A JSON body and its strong entity tag, quotes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The bytes sent without a content coding.
    pub body: Bytes,
    /// Changes whenever the bytes do.
    pub etag: String,
}

#[derive(Debug, Default)]
pub(super) struct Bodies {
    instances: Option<(u64, Arc<Encoded>)>,
    projects: Option<(u64, Arc<Encoded>)>,
    state: Option<(u64, Arc<Encoded>)>,
    /// The state alone, as snapshot frames embed it; a part of the document.
    bare_state: Option<(u64, Bytes)>,
    /// The newest snapshot frame and its reason.
    /// Of a long history it is ten megabytes, and many pages come back at the same moment.
    frame: Option<(u64, &'static str, Bytes)>,
    /// Somebody has asked since [`ReadModel::rest`] last looked.
    is_used: bool,
}

impl ReadModel {
    /// The list as it is now, if it is encoded already.
    ///
    /// Tells whether [`Self::encoded`] is cheap: encoding thousands of records belongs on a
    /// blocking thread.
    #[must_use]
    pub fn cached(&self, list: List) -> Option<Arc<Encoded>> {
        let (snapshot, revisions) = self.versioned();
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.is_used = true;
        current(bodies.slot(list), revision(list, &snapshot, revisions))
    }

    /// The list as it is now, encoded at most once per change.
    #[must_use]
    pub fn encoded(&self, list: List) -> Arc<Encoded> {
        // Held while encoding, so that a burst of readers makes one body.
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.is_used = true;
        let (snapshot, revisions) = self.versioned();
        let revision = revision(list, &snapshot, revisions);
        if let Some(encoded) = current(bodies.slot(list), revision) {
            return encoded;
        }
        let (body, kind) = match list {
            List::Instances => (encode_instances(&snapshot), "i"),
            List::Projects => (json(&snapshot.projects()), "p"),
            List::State => (bodies.state_document(&snapshot), "s"),
        };
        let etag = format!("\"{}-{kind}{revision}\"", snapshot.boot);
        let encoded = Arc::new(Encoded { body, etag });
        *bodies.slot_mut(list) = Some((revision, Arc::clone(&encoded)));
        encoded
    }

    /// Lets go of encoded lists that nobody has asked for since the last call.
    /// Of a long history they are tens of megabytes.
    pub fn rest(&self) {
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut bodies.is_used) {
            *bodies = Bodies::default();
        }
    }

    /// A snapshot frame and the `seq` it stands for.
    pub(super) fn snapshot_frame(&self, reason: &'static str) -> (u64, Bytes) {
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.is_used = true;
        let (snapshot, _) = self.versioned();
        let seq = snapshot.seq;
        if let Some((at, of, frame)) = &bodies.frame
            && (*at, *of) == (seq, reason)
        {
            return (seq, frame.clone());
        }
        let head = format!(r#"{{"type":"snapshot","seq":{seq},"reason":"{reason}","state":"#);
        let state = bodies.bare_state(&snapshot);
        let frame = wrap(&head, &state);
        // Both are kept as one.
        bodies.bare_state = Some((seq, inside(&head, &frame)));
        bodies.frame = Some((seq, reason, frame.clone()));
        (seq, frame)
    }

    fn versioned(&self) -> (Snapshot, Revisions) {
        let mut inner = self.lock();
        // Who reads a state may follow it from there.
        inner.is_followed = true;
        (self.snapshot_of(&inner), inner.revisions)
    }
}

impl Bodies {
    fn slot(&self, list: List) -> Option<&(u64, Arc<Encoded>)> {
        match list {
            List::Instances => self.instances.as_ref(),
            List::Projects => self.projects.as_ref(),
            List::State => self.state.as_ref(),
        }
    }

    fn slot_mut(&mut self, list: List) -> &mut Option<(u64, Arc<Encoded>)> {
        match list {
            List::Instances => &mut self.instances,
            List::Projects => &mut self.projects,
            List::State => &mut self.state,
        }
    }

    fn bare_state(&mut self, snapshot: &Snapshot) -> Bytes {
        if let Some((seq, bytes)) = &self.bare_state
            && *seq == snapshot.seq
        {
            return bytes.clone();
        }
        let bytes = json(&*snapshot.state);
        self.bare_state = Some((snapshot.seq, bytes.clone()));
        bytes
    }

    fn state_document(&mut self, snapshot: &Snapshot) -> Bytes {
        let state = self.bare_state(snapshot);
        let head = format!(r#"{{"boot":"{}","seq":{},"state":"#, snapshot.boot, snapshot.seq);
        let document = wrap(&head, &state);
        self.bare_state = Some((snapshot.seq, inside(&head, &document)));
        document
    }
}

fn revision(list: List, snapshot: &Snapshot, revisions: Revisions) -> u64 {
    match list {
        List::Instances => revisions.instances,
        List::Projects => revisions.projects,
        List::State => snapshot.seq,
    }
}

fn current(slot: Option<&(u64, Arc<Encoded>)>, revision: u64) -> Option<Arc<Encoded>> {
    slot.filter(|(at, _)| *at == revision).map(|(_, encoded)| Arc::clone(encoded))
}

fn encode_instances(snapshot: &Snapshot) -> Bytes {
    let instances: Vec<&Instance> = snapshot.instances().collect();
    json(&instances)
}

fn wrap(head: &str, json: &Bytes) -> Bytes {
    let mut frame = Vec::with_capacity(head.len() + json.len() + 1);
    frame.extend_from_slice(head.as_bytes());
    frame.extend_from_slice(json);
    frame.push(b'}');
    frame.into()
}

/// What was wrapped, as a part of the whole.
fn inside(head: &str, whole: &Bytes) -> Bytes {
    whole.slice(head.len()..whole.len() - 1)
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Bytes {
    // Records hold texts, numbers and maps with text keys: nothing that JSON cannot carry.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    // It was grown by doubling, and is kept: without this half of it may be room for nothing.
    bytes.shrink_to_fit();
    bytes.into()
}
