//! Frames of the WebSocket streams, and the one function that folds them.
//!
//! Frames and changes carry a word that says what they are. They are read in two steps: first that
//! word, while the rest stays text, then the members that belong to it. A frame or a record of
//! another version is recognised by its word and ignored.

mod envelope;

use crate::Timestamp;
use crate::api::approvals::Approval;
use crate::api::health::Health;
use crate::api::instances::Instance;
use crate::api::jobs::BackgroundJob;
use crate::api::limits::PlanLimit;
use crate::api::planned_launches::PlannedLaunch;
use crate::api::projects::Project;
use crate::api::sessions::WorkingSession;
use crate::internal::agent_sign_in::SignInRecord;
use crate::internal::clones::CloneJob;
use crate::internal::metrics::Metrics;
use crate::internal::restore::RestoreJob;
use crate::internal::{LoginStatus, PreflightSummary, State};
use envelope::tagged_frames;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Version of the frame format.
pub const PROTOCOL: u32 = 1;

/// Close codes after accept (`http-api` §4.1).
pub mod close {
    /// Stream complete.
    pub const COMPLETE: u16 = 1000;
    /// Server shutting down.
    pub const GOING_AWAY: u16 = 1001;
    /// Text expected.
    pub const UNSUPPORTED: u16 = 1003;
    /// Too many messages.
    pub const POLICY: u16 = 1008;
    /// Internal error.
    pub const INTERNAL: u16 = 1011;
    /// Service restart.
    pub const RESTART: u16 = 1012;
    /// Signed out, revoked or expired: sign in again.
    pub const SIGNED_OUT: u16 = 4401;
    /// Unknown instance, or forgotten while open.
    pub const UNKNOWN: u16 = 4404;
    /// Slow consumer.
    pub const SLOW: u16 = 4408;
    /// Ambiguous reference.
    pub const AMBIGUOUS: u16 = 4409;
    /// Wrong kind of row, or feature off.
    pub const WRONG_KIND: u16 = 4415;
}

tagged_frames! {
    /// A frame of the state stream, server to client.
    ///
    /// Reads from text only, not from a [`serde_json::Value`].
    pub enum EventFrame {
        /// First frame.
        Hello = "hello" {
            /// Frame format version.
            v: u32,
            /// Random per server process.
            boot: String,
            /// Head of the stream.
            seq: u64,
            /// Service version.
            server_version: String,
            /// The client's position was found: deltas follow, no snapshot.
            resumed: bool,
            /// Server clock.
            time: Timestamp,
        }
        /// The whole state.
        Snapshot = "snapshot" {
            /// Position of this state.
            seq: u64,
            /// `initial`, `gap`, `boot`, `overflow` or `requested`.
            reason: String,
            /// Everything.
            state: Box<State>,
        }
        /// One step.
        Delta = "delta" {
            /// One more than the step before.
            seq: u64,
            /// Server clock.
            time: Timestamp,
            /// What changed; whole records.
            ops: Vec<Op>,
        }
        /// Measurements, not part of the state.
        Sample = "sample" {
            /// Server clock.
            time: Timestamp,
            /// By instance id.
            metrics: BTreeMap<String, Metrics>,
        }
        /// Something happened, for a toast; the fact itself is in a delta.
        Event = "event" {
            /// Server clock.
            time: Timestamp,
            /// `spawn`, `ready`, `stop`, `crash`.
            name: String,
            /// Fields of the outbound payload, and `instance_id`.
            data: serde_json::Value,
        }
        /// Something the operator should know.
        Notice = "notice" {
            /// `info`, `warn` or `error`.
            level: String,
            /// A word.
            code: String,
            /// A sentence.
            text: String,
        }
        /// Sign of life while nothing happens.
        Tick = "tick" {
            /// Head of the stream.
            seq: u64,
            /// Server clock.
            time: Timestamp,
        }
    }
}

/// One change of the state. Reads from text only, not from a [`serde_json::Value`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Op {
    /// The record is now this.
    Put(Put),
    /// The record is gone.
    Del {
        /// Kind of record.
        k: String,
        /// Its id.
        id: String,
    },
}

/// A whole record under its kind and id.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Put {
    /// Id of the record.
    pub id: String,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
}

/// Kinds of records in the stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "k", content = "v", rename_all = "snake_case")]
pub enum Record {
    /// A project.
    Project(Arc<Project>),
    /// A bridge.
    Instance(Arc<Instance>),
    /// A background job.
    Job(Arc<BackgroundJob>),
    /// External sessions of a project.
    External(Vec<WorkingSession>),
    /// Sessions of a bridge.
    Tracked(Vec<WorkingSession>),
    /// The project has an adoptable bridge.
    Adoptable(bool),
    /// A question of a session that nobody manages.
    Question(Box<Approval>),
    /// A launch that waits for a plan limit, or could not be started after it.
    Launch(Box<PlannedLaunch>),
    /// The plan limit that a launch of now would run into.
    PlanLimit(Box<PlanLimit>),
    /// A clone that runs or has just ended.
    Clone(CloneJob),
    /// Readiness of a project.
    Preflight(PreflightSummary),
    /// The health report.
    Health(Box<Health>),
    /// Login facts.
    Login(LoginStatus),
    /// A running sign-in.
    Shepherd(SignInRecord),
    /// The restore that runs or ran last.
    Restore(RestoreJob),
    /// A kind that this version does not know; never sent.
    #[serde(skip)]
    Other,
}

impl Record {
    /// The word of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Project(_) => "project",
            Self::Instance(_) => "instance",
            Self::Job(_) => "job",
            Self::External(_) => "external",
            Self::Tracked(_) => "tracked",
            Self::Adoptable(_) => "adoptable",
            Self::Question(_) => "question",
            Self::Launch(_) => "launch",
            Self::PlanLimit(_) => "plan_limit",
            Self::Clone(_) => "clone",
            Self::Preflight(_) => "preflight",
            Self::Health(_) => "health",
            Self::Login(_) => "login",
            Self::Shepherd(_) => "shepherd",
            Self::Restore(_) => "restore",
            Self::Other => "",
        }
    }
}

/// A frame of the state stream, client to server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientFrame {
    /// Asks for a fresh snapshot.
    Snapshot,
    /// Turns samples on or off.
    Samples {
        /// Whether samples are wanted.
        on: bool,
    },
}

/// A frame of the live log with `format=json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LogFrame {
    /// One redacted line.
    Line {
        /// Position after the line.
        cursor: String,
        /// The line without its end. Shared: all readers of a log have the same one.
        text: Arc<str>,
    },
    /// What the process printed besides its log, told once its generation has ended.
    Output {
        /// The generation that printed it.
        generation: u32,
        /// The last redacted lines of standard output and standard error, oldest first.
        lines: Vec<String>,
    },
    /// Something happened to the log itself.
    Mark {
        /// What.
        kind: MarkKind,
        /// Generation from here on.
        generation: u32,
        /// When it happened; absent where the record does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
}

/// What happened to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkKind {
    /// The bridge was resumed; a new log begins.
    Resumed,
    /// The file was rotated or truncated.
    Rotated,
    /// Lines were dropped for this reader.
    Gap,
    /// The bridge has ended; the socket stays open for a resume.
    Ended,
}

/// Applies one change to a state.
///
/// The page, the server and the tests fold the stream with this one function, so a folded stream
/// and a snapshot cannot disagree. Unknown kinds are ignored.
pub fn apply(state: &mut State, op: Op) {
    match op {
        Op::Put(Put { id, record }) => put(state, id, record),
        Op::Del { k, id } => delete(state, &k, &id),
    }
}

fn put(state: &mut State, id: String, record: Record) {
    match record {
        Record::Project(v) => drop(state.projects.insert(id, v)),
        Record::Instance(v) => {
            count(&mut state.counts, &v, Step::Up);
            if let Some(before) = state.instances.insert(id, v) {
                count(&mut state.counts, &before, Step::Down);
            }
        }
        Record::Job(v) => drop(state.jobs.insert(id, v)),
        Record::External(v) => drop(state.external.insert(id, v)),
        Record::Tracked(v) => drop(state.tracked.insert(id, v)),
        Record::Adoptable(_) => {
            if let Err(at) = state.adoptable.binary_search(&id) {
                state.adoptable.insert(at, id);
            }
        }
        Record::Question(v) => drop(state.questions.insert(id, *v)),
        Record::Launch(v) => drop(state.launches.insert(id, *v)),
        Record::PlanLimit(v) => state.plan_limit = Some(*v),
        Record::Clone(v) => drop(state.clones.insert(id, v)),
        Record::Preflight(v) => drop(state.preflight.insert(id, v)),
        Record::Health(v) => state.health = Some(*v),
        Record::Login(v) => state.login = Some(v),
        Record::Shepherd(v) => state.shepherd = Some(v),
        Record::Restore(v) => state.restore = Some(v),
        Record::Other => {}
    }
}

fn delete(state: &mut State, kind: &str, id: &str) {
    match kind {
        "project" => drop(state.projects.remove(id)),
        "instance" => {
            if let Some(before) = state.instances.remove(id) {
                count(&mut state.counts, &before, Step::Down);
            }
        }
        "job" => drop(state.jobs.remove(id)),
        "external" => drop(state.external.remove(id)),
        "tracked" => drop(state.tracked.remove(id)),
        "adoptable" => state.adoptable.retain(|name| name != id),
        "question" => drop(state.questions.remove(id)),
        "launch" => drop(state.launches.remove(id)),
        "plan_limit" => state.plan_limit = None,
        "clone" => drop(state.clones.remove(id)),
        "preflight" => drop(state.preflight.remove(id)),
        "health" => state.health = None,
        "login" => state.login = None,
        "shepherd" => state.shepherd = None,
        "restore" => state.restore = None,
        _ => {}
    }
}

/// Bridges per status, every status present.
#[must_use]
pub fn counts<'a>(instances: impl Iterator<Item = &'a Instance>) -> BTreeMap<String, u32> {
    let mut counts = no_bridges();
    for instance in instances {
        count(&mut counts, instance, Step::Up);
    }
    counts
}

fn no_bridges() -> BTreeMap<String, u32> {
    use crate::status::BridgeStatus;
    BridgeStatus::ALL
        .iter()
        .filter(|status| **status != BridgeStatus::Stopping)
        .map(|status| (status.as_str().to_owned(), 0))
        .collect()
}

#[derive(Clone, Copy)]
enum Step {
    Up,
    Down,
}

/// Counts one bridge in or out.
///
/// A count over all rows per change would make filling a state with thousands of rows quadratic.
fn count(counts: &mut BTreeMap<String, u32>, instance: &Instance, step: Step) {
    use crate::status::Channel;
    if counts.is_empty() {
        *counts = no_bridges();
    }
    if !instance.channel.is(&Channel::RemoteControl) {
        return;
    }
    let word = instance.status.to_string();
    let count = counts.entry(word.clone()).or_default();
    *count = match step {
        Step::Up => count.saturating_add(1),
        Step::Down => count.saturating_sub(1),
    };
    // The five statuses are always there; a word of another version only while it is in use.
    if *count == 0 && !no_bridges().contains_key(&word) {
        counts.remove(&word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_has_the_documented_shape() {
        let op = Op::Put(Put { id: "api".into(), record: Record::Adoptable(true) });
        assert_eq!(
            serde_json::to_value(&op).unwrap(),
            serde_json::json!({"op": "put", "k": "adoptable", "id": "api", "v": true})
        );
        let del = Op::Del { k: "job".into(), id: "3c509237".into() };
        let json = serde_json::to_string(&del).unwrap();
        assert_eq!(json, r#"{"op":"del","k":"job","id":"3c509237"}"#);
        assert_eq!(serde_json::from_str::<Op>(&json).unwrap(), del);
        let json = serde_json::to_string(&op).unwrap();
        assert_eq!(serde_json::from_str::<Op>(&json).unwrap(), op);
    }

    fn read(text: &str) -> Result<EventFrame, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn f87_a_frame_of_another_version_is_ignored_whatever_its_members_are() {
        for text in [
            r#"{"type":"weather"}"#,
            r#"{"v":"a text","type":"weather","seq":{"deep":[1]},"state":7,"ops":"x"}"#,
        ] {
            assert_eq!(read(text).unwrap(), EventFrame::Other);
        }
        let more = r#"{"moon":{},"type":"tick","time":"1970-01-01T00:00:00.007Z","seq":4}"#;
        assert_eq!(
            read(more).unwrap(),
            EventFrame::Tick { seq: 4, time: Timestamp::from_millis(7) }
        );
    }

    #[test]
    fn f87_a_record_of_another_version_is_ignored_and_its_neighbours_are_not() {
        let text = r#"{"type":"delta","seq":1,"time":"1970-01-01T00:00:00.000Z","ops":[
            {"op":"put","k":"moon","id":"full","v":{"bright":true}},
            {"op":"put","k":"moon","id":"new"},
            {"op":"put","k":"adoptable","id":"api","v":true},
            {"op":"del","k":"moon","id":"full"}]}"#;
        let EventFrame::Delta { ops, .. } = read(text).unwrap() else { panic!("not a delta") };
        assert_eq!(ops.len(), 4);
        let mut state = State::default();
        ops.into_iter().for_each(|op| apply(&mut state, op));
        assert_eq!(state, State { adoptable: vec!["api".into()], ..State::default() });
    }

    #[test]
    fn a_frame_with_a_known_record_that_does_not_fit_is_refused_whole() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"tick","seq":-1,"time":"1970-01-01T00:00:00.000Z"}"#,
            r#"{"type":"tick","seq":1,"time":"yesterday"}"#,
            r#"{"type":"tick","seq":1}"#,
            r#"{"type":"delta","seq":1,"time":"1970-01-01T00:00:00.000Z","ops":[{"op":"move","k":"instance","id":"1"}]}"#,
            r#"{"type":"delta","seq":1,"time":"1970-01-01T00:00:00.000Z","ops":[{"op":"put","k":"instance","id":"1","v":{}}]}"#,
            r#"{"type":"delta","seq":1,"time":"1970-01-01T00:00:00.000Z","ops":[{"op":"put","k":"instance","id":"1"}]}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn adoptable_names_stay_sorted_and_unique() {
        let mut state = State::default();
        for name in ["b", "a", "b"] {
            apply(&mut state, Op::Put(Put { id: name.into(), record: Record::Adoptable(true) }));
        }
        assert_eq!(state.adoptable, ["a", "b"]);
        apply(&mut state, Op::Del { k: "adoptable".into(), id: "a".into() });
        assert_eq!(state.adoptable, ["b"]);
    }
}
