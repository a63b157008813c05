//! What says something about the activity of sessions. Kept in memory only.

use crate::agent::Agent;
use crate::auth::refs::SessionRefs;
use crate::read_model::limits::PlanLimits;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_agent::conversation::{Index, Waits};
use svc_agent::home::AgentHome;
use svc_agent::registry::{Entry, entry_of};
use svc_domain::activity::{Evidence, merge, of_registry, together};
use svc_domain::agent_log::RemoteId;
use svc_domain::identity::Pid;
use svc_shared::Timestamp;
use svc_shared::api::activity::Activity;
use svc_shared::api::limits::PlanLimit;
use svc_shared::ids::{InstanceId, SessionRef};
use svc_shared::status::{ActivityState, Confidence, EvidenceSource};
use tokio::sync::Notify;

/// Bytes at the end of a transcript in which a command looks for the last turn.
const END: u64 = 256 * 1024;

/// What a process says of itself in the agent's registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sign {
    /// Start of the process in clock ticks since boot.
    pub start_ticks: u64,
    /// The bridge that it belongs to.
    pub owner: Option<InstanceId>,
    /// The job that it works on.
    pub job: Option<String>,
    /// The agent's own id of the session.
    pub conversation: RemoteId,
    /// Where it works.
    pub cwd: PathBuf,
    /// What it does.
    pub evidence: Option<Evidence>,
}

impl Sign {
    /// Reads an entry.
    pub fn of(entry: &Entry, owner: Option<&InstanceId>) -> Self {
        let (status, waits) = (entry.status.as_deref(), entry.waiting_for.as_deref());
        Self {
            start_ticks: entry.start_ticks,
            owner: owner.cloned(),
            job: entry.job_id.clone(),
            conversation: RemoteId::new(&entry.session_id),
            cwd: entry.cwd.clone(),
            evidence: of_registry(status, waits, entry.status_since),
        }
    }
}

/// What is known of one session, besides its transcript.
#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    /// The agent's own id of it.
    pub conversation: Option<RemoteId>,
    /// Where it works, if that is known.
    pub cwd: Option<PathBuf>,
    /// Who says what it does.
    pub evidence: Vec<Evidence>,
}

/// What a session does, and the limit that it stopped at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub does: Option<Evidence>,
    pub limit: Option<PlanLimit>,
}

/// What differs since it was last asked.
#[derive(Debug, Default)]
pub(crate) struct Differing {
    /// Bridges with a session that does something else now.
    pub owners: HashSet<InstanceId>,
    /// Background jobs do.
    pub jobs: bool,
    /// Sessions without a bridge do.
    pub others: bool,
}

/// What says something about sessions.
#[derive(Debug)]
pub(crate) struct Signs {
    /// Plan limits that conversations stopped at.
    pub limits: PlanLimits,
    /// Whether this process follows files. Another one reads them when it is asked.
    follows: bool,
    entries: Mutex<HashMap<Pid, Sign>>,
    streams: Mutex<HashMap<InstanceId, (String, Evidence)>>,
    waits: Mutex<HashMap<SessionRef, Waits>>,
    logged_out: Mutex<Option<Timestamp>>,
    differing: Mutex<Differing>,
    changed: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Signs {
    pub fn new(follows: bool) -> Self {
        Self {
            limits: PlanLimits::default(),
            follows,
            entries: Mutex::default(),
            streams: Mutex::default(),
            waits: Mutex::default(),
            logged_out: Mutex::default(),
            differing: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Whether this process follows files.
    pub fn follows(&self) -> bool {
        self.follows
    }

    /// Waits for changes of entries, and takes them.
    pub async fn differing(&self) -> Differing {
        self.changed.notified().await;
        std::mem::take(&mut *lock(&self.differing))
    }

    /// Takes over the entries of live processes.
    pub fn set_entries(&self, now: HashMap<Pid, Sign>) {
        let mut entries = lock(&self.entries);
        if *entries == now {
            return;
        }
        let mut differing = lock(&self.differing);
        let all: HashSet<&Pid> = entries.keys().chain(now.keys()).collect();
        for pid in all {
            let (before, after) = (entries.get(pid), now.get(pid));
            if before == after {
                continue;
            }
            for sign in [before, after].into_iter().flatten() {
                differing.jobs |= sign.job.is_some();
                differing.others |= sign.owner.is_none();
                differing.owners.extend(sign.owner.clone());
            }
        }
        *entries = now;
        self.changed.notify_one();
    }

    /// The entry of a process of which this start is known. Blocks in a command.
    pub fn of_process(&self, home: Option<&AgentHome>, pid: Pid, start_ticks: u64) -> Option<Sign> {
        let fits = |sign: &Sign| sign.start_ticks == start_ticks;
        if self.follows {
            return lock(&self.entries).get(&pid).filter(|sign| fits(sign)).cloned();
        }
        let entry = entry_of(&home?.sessions_dir(), pid)?;
        Some(Sign::of(&entry, None)).filter(fits)
    }

    /// The entries of the processes of a bridge, by their pid.
    pub fn of_bridge(&self, id: &InstanceId) -> HashMap<Pid, Sign> {
        let entries = lock(&self.entries);
        let of_it = entries.iter().filter(|(_, sign)| sign.owner.as_ref() == Some(id));
        of_it.map(|(pid, sign)| (*pid, sign.clone())).collect()
    }

    /// What the process of a background job says.
    pub fn of_job(&self, job: &str) -> Option<Evidence> {
        let entries = lock(&self.entries);
        let of_it = |sign: &&Sign| sign.job.as_deref() == Some(job);
        entries.values().find(of_it)?.evidence.clone()
    }

    /// Takes over what an agent on pipes does; tells whether that differs.
    pub fn set_stream(&self, id: &InstanceId, process: &str, now: Evidence) -> bool {
        let mut streams = lock(&self.streams);
        let known = streams.get(id);
        if known.is_some_and(|(of, was)| of == process && was.state == now.state) {
            return false;
        }
        streams.insert(id.clone(), (process.to_owned(), now));
        true
    }

    /// What an agent on pipes said last.
    pub fn stream(&self, id: &InstanceId, process: &str) -> Option<Evidence> {
        let streams = lock(&self.streams);
        streams.get(id).filter(|(of, _)| of == process).map(|(_, said)| said.clone())
    }

    /// Takes over the conversations that wait for a person; tells whether they differ.
    pub fn set_waits(&self, now: HashMap<SessionRef, Waits>) -> bool {
        let mut waits = lock(&self.waits);
        let differs = *waits != now;
        *waits = now;
        differs
    }

    /// Takes over whether the agent is signed out; tells whether that differs.
    pub fn set_logged_out(&self, is_logged_out: bool, now: Timestamp) -> bool {
        let mut known = lock(&self.logged_out);
        let differs = known.is_some() != is_logged_out;
        if differs {
            *known = is_logged_out.then_some(now);
        }
        differs
    }

    /// What a session does, of everything that says something about it.
    pub fn told(&self, refs: &SessionRefs, home: Option<&AgentHome>, session: &Session) -> Told {
        let mut evidence = session.evidence.clone();
        let (limit, waits) = self.last_turn(refs, home, session);
        evidence.extend(limit.as_ref().map(|limit| said(ActivityState::Limit, limit.since)));
        evidence.extend(waits.map(|waits| said(waits.state, waits.since)));
        evidence.extend(lock(&self.logged_out).map(|since| Evidence {
            confidence: Confidence::Likely,
            source: EvidenceSource::Account,
            ..said(ActivityState::LoggedOut, since)
        }));
        Told { does: merge(&evidence), limit }
    }

    /// What the session of an entry does. Blocks in a command.
    pub fn of_entry(&self, refs: &SessionRefs, agent: &Agent, entry: &Entry) -> Option<Activity> {
        let sign = Sign::of(entry, None);
        let session = Session {
            conversation: Some(sign.conversation),
            cwd: Some(sign.cwd),
            evidence: sign.evidence.into_iter().collect(),
        };
        together(self.told(refs, agent.home().ok().as_ref(), &session).does.as_slice())
    }

    /// What the last turn of the transcript says. Blocks in a command.
    fn last_turn(
        &self,
        refs: &SessionRefs,
        home: Option<&AgentHome>,
        session: &Session,
    ) -> (Option<PlanLimit>, Option<Waits>) {
        let Some(raw) = &session.conversation else { return (None, None) };
        if self.follows {
            let Some(reference) = refs.session(raw.expose()) else { return (None, None) };
            return (self.limits.of(&reference), lock(&self.waits).get(&reference).cloned());
        }
        let place = home.zip(session.cwd.as_deref().and_then(Path::to_str));
        let Some((home, cwd)) = place.filter(|_| svc_domain::jobs::is_session_id(raw.expose()))
        else {
            return (None, None);
        };
        let read = Index::of_end(&home.transcript_file(cwd, raw.expose()), END);
        read.map_or((None, None), |index| (index.limit, index.waits))
    }
}

/// A turn of a transcript says so.
fn said(state: ActivityState, since: Timestamp) -> Evidence {
    Evidence {
        state,
        since,
        tool: None,
        source: EvidenceSource::Transcript,
        confidence: Confidence::Certain,
        is_stale: false,
    }
}
