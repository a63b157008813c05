//! The sessions that a bridge serves, and what each of them does.

use std::collections::BTreeMap;

use svc_shared::Timestamp;
use svc_shared::status::{ActivityState, EvidenceSource};

use super::DEBUG_FILE;
use crate::agent_log::RemoteId;
use crate::jobs::is_session_id;

/// Most sessions remembered; the agent's own cap on sessions is lower.
const SESSIONS: usize = 1_024;

/// Longest name of a tool that is shown.
const TOOL: usize = 64;

/// A session of the bridge, as its debug file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedSession {
    /// The remote session.
    pub remote: RemoteId,
    /// The process that serves it; `None` when its start was not read.
    pub pid: Option<u32>,
    /// When that process was started or first heard of.
    pub since: Timestamp,
    /// The agent's id of the conversation, once the process has told it.
    pub conversation: Option<RemoteId>,
    /// Whether the process still serves it.
    pub stage: Stage,
    /// What it does.
    pub work: Work,
}

/// How far the process of a session came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It serves the session.
    Attached,
    /// It failed or was interrupted: the conversation is not over.
    Broken,
    /// The session is over.
    Finished,
}

/// What one session does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Works, waits or neither.
    pub state: ActivityState,
    /// Since when.
    pub since: Timestamp,
    /// The tool that it waits for a permission to use.
    pub tool: Option<String>,
}

/// What all attached sessions do, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// `blocked` if any waits, else `working` if any works, else `idle`.
    pub state: ActivityState,
    /// Since when the first of them is in this state.
    pub since: Timestamp,
    /// The tool that the first blocked session asks for.
    pub tool: Option<String>,
    /// Where this was read.
    pub source: EvidenceSource,
    /// How many work.
    pub working: u32,
    /// How many wait for a permission.
    pub blocked: u32,
    /// How many do neither.
    pub idle: u32,
}

/// The sessions of one generation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sessions(BTreeMap<RemoteId, LoggedSession>);

impl Sessions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &LoggedSession> {
        self.0.values()
    }

    pub(super) fn activity(&self) -> Option<Activity> {
        let attached = || self.0.values().filter(|session| session.stage == Stage::Attached);
        let count = |state| {
            let of_it = attached().filter(|session| session.work.state == state).count();
            u32::try_from(of_it).unwrap_or(u32::MAX)
        };
        let (working, blocked, idle) = (
            count(ActivityState::Working),
            count(ActivityState::Blocked),
            count(ActivityState::Idle),
        );
        let state = match (blocked, working) {
            (1.., _) => ActivityState::Blocked,
            (0, 1..) => ActivityState::Working,
            (0, 0) => ActivityState::Idle,
        };
        let of_it = attached().filter(|session| session.work.state == state);
        let first = of_it.min_by_key(|session| session.work.since)?;
        let (since, tool) = (first.work.since, first.work.tool.clone());
        Some(Activity { state, since, tool, source: DEBUG_FILE, working, blocked, idle })
    }

    /// A line with the tag `bridge:session` or `bridge:ws`.
    pub(super) fn session_line(&mut self, tag: &str, text: &str, at: Timestamp) -> bool {
        let Some((remote, rest)) = session_of(text) else { return false };
        if tag == "bridge:ws" {
            return self.wire_line(&remote, rest);
        }
        let ended = |stage| move |session: &mut LoggedSession| session.stage = stage;
        match rest.split(' ').next().unwrap_or_default() {
            "completed" => self.change(&remote, ended(Stage::Finished)),
            "failed" | "interrupted" => self.change(&remote, ended(Stage::Broken)),
            _ => match pid(rest) {
                Some(pid) => self.started(remote, Some(pid), at),
                None => false,
            },
        }
    }

    /// What a session writes names its conversation, in the frame and not in the text.
    fn wire_line(&mut self, remote: &RemoteId, rest: &str) -> bool {
        let is_open = |session: &LoggedSession| {
            session.stage == Stage::Attached && session.conversation.is_none()
        };
        if !self.0.get(remote).is_some_and(is_open) || !rest.contains("\"session_id\"") {
            return false;
        }
        let Some(json) = rest.strip_prefix("<<< ") else { return false };
        let Ok(frame) = serde_json::from_str::<serde_json::Value>(json) else { return false };
        let Some(raw) = frame.get("session_id").and_then(serde_json::Value::as_str) else {
            return false;
        };
        // The agent may use the remote identifier there as well; that is no conversation.
        if !is_session_id(raw) {
            return false;
        }
        self.change(remote, |session| session.conversation = Some(RemoteId::new(raw)))
    }

    /// A line with the tag `bridge:activity`. Only its type is read.
    pub(super) fn activity_line(&mut self, text: &str, at: Timestamp) -> bool {
        let Some((remote, rest)) = session_of(text) else { return false };
        let state = match rest.split(' ').next().unwrap_or_default() {
            "result" => ActivityState::Idle,
            "text" | "tool_start" | "tool_use" => ActivityState::Working,
            _ => return false,
        };
        self.does(remote, state, None, at)
    }

    /// A line with the tag `bridge:perm`.
    pub(super) fn permission_line(&mut self, text: &str, at: Timestamp) -> bool {
        let Some((remote, rest)) = session_of(text) else { return false };
        if !rest.ends_with("(not auto-approving)") {
            return false;
        }
        let tool = rest.strip_prefix("tool=").and_then(|rest| rest.split(' ').next());
        self.does(remote, ActivityState::Blocked, tool.and_then(tool_name), at)
    }

    fn does(
        &mut self,
        remote: RemoteId,
        state: ActivityState,
        tool: Option<String>,
        at: Timestamp,
    ) -> bool {
        if !self.0.contains_key(&remote) {
            self.started(remote.clone(), None, at);
        }
        self.change(&remote, |session| {
            let is_same = session.work.state == state && session.work.tool == tool;
            if session.stage == Stage::Attached && !is_same {
                session.work = Work { state, since: at, tool };
            }
        })
    }

    fn started(&mut self, remote: RemoteId, pid: Option<u32>, at: Timestamp) -> bool {
        if self.0.len() >= SESSIONS && !self.0.contains_key(&remote) {
            self.0.retain(|_, session| session.stage != Stage::Finished);
            if self.0.len() >= SESSIONS {
                return false;
            }
        }
        let known = self.0.get(&remote).and_then(|session| session.conversation.clone());
        let session = LoggedSession {
            remote: remote.clone(),
            pid,
            since: at,
            conversation: known,
            stage: Stage::Attached,
            work: Work { state: ActivityState::Idle, since: at, tool: None },
        };
        self.0.insert(remote, session);
        true
    }

    fn change(&mut self, remote: &RemoteId, change: impl FnOnce(&mut LoggedSession)) -> bool {
        let Some(session) = self.0.get_mut(remote) else { return false };
        let before = session.clone();
        change(session);
        *session != before
    }
}

/// The session a line is about, and the rest of the line.
fn session_of(text: &str) -> Option<(RemoteId, &str)> {
    let (id, rest) = text.strip_prefix("sessionId=")?.split_once(' ')?;
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let fits = !id.is_empty() && id.len() <= 128 && id.bytes().all(is_id);
    fits.then(|| (RemoteId::new(id), rest))
}

/// The process in a run of `key=value`. Free text may follow elsewhere.
fn pid(rest: &str) -> Option<u32> {
    let words = rest.split(' ').filter(|word| !word.is_empty());
    let mut pairs = words.map_while(|word| word.split_once('='));
    pairs.find_map(|(key, value)| (key == "pid").then_some(value))?.parse().ok()
}

/// The name of a tool; `None` for a text that is no name.
fn tool_name(raw: &str) -> Option<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let fits = !raw.is_empty() && raw.len() <= TOOL && raw.bytes().all(is_name);
    fits.then(|| crate::redact::redact_text(raw))
}
