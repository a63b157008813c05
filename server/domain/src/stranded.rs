//! Which conversations hung on a bridge that died.
//!
//! Three sources tell of them, and each can be incomplete: the debug file of the bridge, the
//! agent's registry of live sessions, and the transcripts of the project (`agent-cli` §3.2, §6.4,
//! §6.7). A process clears its entry of the registry when it ends in order, and the debug file may
//! have been rotated, so no single source is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use svc_shared::Timestamp;

use crate::agent_log::RemoteId;
use crate::agent_log::report::{LoggedSession, Stage};
use crate::jobs::is_session_id;

/// Most conversations recorded of one death.
/// The agent's own cap on sessions is lower.
pub const MOST: usize = 1_024;

/// How much earlier than the line of its start a process may have left a trace.
/// The bridge writes that line when the process runs already.
pub const EARLY: Duration = Duration::from_secs(2);

/// The earliest trace that a session can have left.
fn earliest(session: &LoggedSession) -> Timestamp {
    let early = i64::try_from(EARLY.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(session.since.as_millis().saturating_sub(early))
}

/// A session of the agent's registry, or one that was seen there before the death.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Its process.
    pub pid: u32,
    /// The conversation.
    pub conversation: RemoteId,
    /// When the process was started.
    pub started_at: Timestamp,
    /// Its process was seen to descend from the bridge.
    pub is_proven: bool,
}

/// A transcript in the agent's directory of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The conversation.
    pub conversation: RemoteId,
    /// Time of its first record.
    pub begun_at: Timestamp,
    /// Its first record was written by a process that a program drives (`entrypoint`).
    pub is_driven: bool,
}

/// A conversation that hung on the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The conversation.
    pub conversation: RemoteId,
    /// Its remote session, when it is known.
    pub remote: Option<RemoteId>,
}

/// Joins the three sources.
///
/// A session that was over before the death is left out. A session whose process failed or was
/// interrupted is named: its conversation is not over. `died_at` bounds the transcripts.
#[must_use]
pub fn attached<'a>(
    logged: impl IntoIterator<Item = &'a LoggedSession>,
    registered: &[Registered],
    transcripts: &[Transcript],
    died_at: Timestamp,
) -> Vec<Attached> {
    let mut found: BTreeMap<RemoteId, Option<RemoteId>> = BTreeMap::new();
    let mut finished = BTreeSet::new();
    let mut finished_pids = BTreeSet::new();
    let mut unnamed: Vec<&LoggedSession> = Vec::new();
    for session in logged {
        let conversation = conversation_of(session, registered);
        match (session.stage, conversation) {
            (Stage::Finished, conversation) => {
                finished.extend(conversation);
                finished_pids.extend(session.pid);
            }
            (Stage::Attached | Stage::Broken, Some(conversation)) => {
                found.insert(conversation, Some(session.remote.clone()));
            }
            (Stage::Attached | Stage::Broken, None) => unnamed.push(session),
        }
    }
    for entry in registered.iter().filter(|entry| entry.is_proven) {
        let is_over = finished_pids.contains(&entry.pid) || finished.contains(&entry.conversation);
        if !is_over && is_session_id(entry.conversation.expose()) {
            found.entry(entry.conversation.clone()).or_insert(None);
        }
    }
    let named = |id: &RemoteId| found.contains_key(id) || finished.contains(id);
    let paired = by_transcript(unnamed, transcripts, died_at, named);
    found.extend(paired.into_iter().map(|(id, remote)| (id, Some(remote))));
    let attached =
        found.into_iter().map(|(conversation, remote)| Attached { conversation, remote });
    attached.take(MOST).collect()
}

fn conversation_of(session: &LoggedSession, registered: &[Registered]) -> Option<RemoteId> {
    let in_registry = || {
        let of_it = registered.iter().filter(|entry| Some(entry.pid) == session.pid);
        // A later process of the same number is somebody else.
        let starts = earliest(session);
        let fits = |entry: &&Registered| entry.is_proven || entry.started_at >= starts;
        of_it.filter(fits).map(|entry| &entry.conversation).next()
    };
    let conversation = session.conversation.as_ref().or_else(in_registry)?;
    is_session_id(conversation.expose()).then(|| conversation.clone())
}

/// Pairs sessions that nobody names with transcripts that nobody claims.
/// Only if there are as many of both, so that no transcript of somebody else is taken.
fn by_transcript(
    mut unnamed: Vec<&LoggedSession>,
    transcripts: &[Transcript],
    died_at: Timestamp,
    is_named: impl Fn(&RemoteId) -> bool,
) -> Vec<(RemoteId, RemoteId)> {
    unnamed.sort_by_key(|session| session.since);
    let Some(first) = unnamed.first().map(|session| earliest(session)) else { return Vec::new() };
    let mut candidates: Vec<&Transcript> = transcripts
        .iter()
        .filter(|one| one.is_driven && one.begun_at >= first && one.begun_at <= died_at)
        .filter(|one| is_session_id(one.conversation.expose()) && !is_named(&one.conversation))
        .collect();
    candidates.sort_by_key(|one| one.begun_at);
    candidates.dedup_by(|one, other| one.conversation == other.conversation);
    let each_began_later = candidates
        .iter()
        .zip(&unnamed)
        .all(|(transcript, session)| transcript.begun_at >= earliest(session));
    if candidates.len() != unnamed.len() || !each_began_later {
        return Vec::new();
    }
    let pairs = candidates.into_iter().zip(unnamed);
    pairs.map(|(one, session)| (one.conversation.clone(), session.remote.clone())).collect()
}

#[cfg(test)]
mod tests;
