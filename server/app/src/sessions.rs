//! Working sessions of the agent: whose they are.

mod owners;
pub(crate) mod pointers;
pub(crate) mod seen;

use crate::agent::Agent;
use crate::auth::refs::SessionRefs;
use crate::bridges::unmanaged::Finder;
use crate::projects::catalog::Catalog;
use crate::read_model::ReadModel;
use crate::read_model::records::Records;
use crate::read_model::signs::{Sign, Signs};
use crate::registry::copies::Copies;
use crate::tasks::blocking;
use crate::{AppError, Class, registry};
use owners::Owners;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_agent::registry::{Entry, Reading, Registry, entry_of};
use svc_agent::session_list::CliSession;
use svc_config::Config;
use svc_domain::adoption::{Unrecorded, unrecorded};
use svc_domain::agent_log::RemoteId;
use svc_domain::attribution::{Attribution, Descent, SessionFacts, attribute};
use svc_domain::identity::{Pid, ProcessIdentity, Verdict};
use svc_domain::redact::redact_text;
use svc_domain::same_session::{Sharer, Worker, sentence, shared};
use svc_domain::stranded::Registered;
use svc_ports::ProcessHost;
use svc_ports::process::ProcessFacts;
use svc_projects::{Project, Projects};
use svc_shared::api::sessions::WorkingSession;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName, SessionRef};
use tokio::sync::Notify;

/// What is remembered between two looks at the agent's sessions.
#[derive(Debug, Default)]
pub(crate) struct SessionMemory {
    registry: Mutex<Option<Registry>>,
    /// Projects whose pointer named a live bridge at the last look at all pointers.
    pointed: Mutex<BTreeSet<ProjectName>>,
    /// The last look succeeded.
    is_current: AtomicBool,
    /// The last look found a live session, or an entry that could not be read.
    is_anything_live: AtomicBool,
    /// Entries that could not be read at the last look.
    unusable: AtomicUsize,
    /// Told when there are more of those: only the agent knows what they are about.
    puzzled: Notify,
    /// Whoever looked before has shown it before.
    publishing: tokio::sync::Mutex<()>,
    /// Pairs of processes on one session that the log tells of already.
    told: Mutex<HashSet<[ProcessIdentity; 2]>>,
}

impl SessionMemory {
    /// Whether the agent may have something to list.
    pub fn is_anything_live(&self) -> bool {
        self.is_anything_live.load(Ordering::Relaxed)
    }

    /// Waits for entries of the agent's registry that cannot be read.
    pub async fn puzzled(&self) {
        self.puzzled.notified().await;
    }

    /// Tells the log of processes on one session, of each pair once while it lasts.
    fn tell_of(&self, all: &[Vec<Sharer>]) {
        let mut told = lock(&self.told);
        let before = std::mem::take(&mut *told);
        for sharers in all {
            let pairs = pairs(sharers);
            if pairs.iter().any(|pair| !before.contains(pair)) {
                let text = sentence(sharers);
                tracing::warn!(
                    "{text}; end one of them, because each overlooks what the other does"
                );
            }
            told.extend(pairs);
        }
    }

    fn saw(&self, is_anything_live: bool, unusable: usize) {
        self.is_anything_live.store(is_anything_live || unusable > 0, Ordering::Relaxed);
        if self.unusable.swap(unusable, Ordering::Relaxed) < unusable {
            self.puzzled.notify_one();
        }
    }
}

fn pairs(sharers: &[Sharer]) -> Vec<[ProcessIdentity; 2]> {
    let mut pairs = Vec::new();
    let mut rest = sharers;
    while let [first, others @ ..] = rest {
        pairs.extend(others.iter().map(|other| [first.process.clone(), other.process.clone()]));
        rest = others;
    }
    pairs
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How much a look at the sessions takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The registry of the agent, and the pointers of projects where something runs.
    Registry,
    /// The pointers of all projects as well.
    Everything,
}

/// The working sessions, as readers see them.
pub struct Sessions {
    pub(crate) scan: Arc<SessionScan>,
    pub(crate) registry: Arc<registry::Registry>,
    pub(crate) read_model: Arc<ReadModel>,
    pub(crate) records: Arc<Records>,
}

impl Sessions {
    /// What stands for a raw session id that the caller knows.
    #[must_use]
    pub fn reference(&self, raw: &str) -> Option<SessionRef> {
        self.scan.refs.session(raw)
    }

    /// Whether the lists of sessions may be out of date.
    /// Nothing was read yet, or the registry of the agent could not be read.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        !self.scan.memory.is_current.load(Ordering::Relaxed)
    }

    /// Brings the lists of working sessions up to date.
    pub async fn refresh(&self) {
        self.publish(Extent::Registry).await;
    }

    /// The same after a look of this extent.
    /// The projects with a bridge of this service that has lost its row.
    pub(crate) async fn publish(&self, look: Extent) -> Vec<Project> {
        let _publishing = self.scan.memory.publishing.lock().await;
        let mut lists = self.lists(look).await;
        // A command records a bridge before its agent begins, and the agent can be seen first.
        if lists.as_ref().is_some_and(SessionLists::has_strangers)
            && self.registry.catch_up().await.unwrap_or(false)
        {
            lists = self.lists(look).await;
        }
        let Some(lists) = lists else {
            // The last good answer stays.
            self.scan.memory.is_current.store(false, Ordering::Relaxed);
            return Vec::new();
        };
        self.scan.memory.is_current.store(true, Ordering::Relaxed);
        self.read_model.replace_tracked(lists.tracked);
        self.read_model.replace_external(lists.external);
        self.read_model.replace_adoptable(lists.adoptable);
        let differing = self.records.facts.set_unmanaged(lists.unmanaged);
        let readiness_differs = !differing.is_empty();
        self.registry.copies.recheck_projects(differing);
        self.registry.publish().await;
        if let Some(publisher) = self.registry.publisher.as_ref().filter(|_| readiness_differs) {
            publisher.publish_readiness().await;
        }
        if !self.registry.has_readers() {
            return Vec::new();
        }
        self.scan.memory.tell_of(&lists.shared);
        lists.lost
    }

    async fn lists(&self, look: Extent) -> Option<SessionLists> {
        let scan = Arc::clone(&self.scan);
        blocking(move || scan.lists(look)).await.ok().flatten()
    }

    /// The agent's own list of working sessions, for a command.
    ///
    /// # Errors
    /// The agent gave no list; the message says why.
    pub async fn listed(&self) -> Result<Vec<WorkingSession>, AppError> {
        let rows = self.registry.store.bridges().await?;
        self.registry.copies.replace(rows);
        let listed = self.scan.agent.cli().sessions_now().await.map_err(|error| {
            AppError::new(ErrorCode::AgentFailed, Class::Upstream, error.to_string())
        })?;
        let scan = Arc::clone(&self.scan);
        blocking(move || {
            let owners = Owners::new(&scan);
            let mut workers = Vec::new();
            let mut sessions = Vec::new();
            for item in listed.list.iter() {
                let facts = item.pid.and_then(|pid| scan.host.inspect(pid));
                let attribution = scan.attribute_listed(item, facts.as_ref(), &owners);
                sessions.extend(scan.listed_session(item, attribution));
                let proven = facts.filter(|facts| facts.cwd.as_deref() == Some(item.cwd.as_path()));
                if let Some(facts) = proven.filter(|_| !item.has_ended()) {
                    workers.push(worker(&item.session_id, facts.identity, &item.cwd, attribution));
                }
            }
            mark_shared(&mut sessions, &scan.sharers(workers, &owners));
            sessions
        })
        .await
    }
}

/// Reads the agent's sessions, the process table and the pointers of projects.
pub(crate) struct SessionScan {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub host: Arc<dyn ProcessHost>,
    pub copies: Arc<Copies>,
    pub catalog: Arc<Catalog>,
    pub refs: Arc<SessionRefs>,
    pub finder: Arc<Finder>,
    pub memory: SessionMemory,
    pub seen: Arc<seen::SeenSessions>,
    pub signs: Arc<Signs>,
}

impl SessionScan {
    /// Processes that work on one session, by session.
    /// `None` when the agent's registry cannot be read. Blocks.
    pub fn shared(&self) -> Option<Vec<Vec<Sharer>>> {
        Some(self.listed_sessions()?.shared)
    }

    /// What a look takes in now; `None` when the agent's registry cannot be read.
    /// Blocks.
    fn lists(&self, look: Extent) -> Option<SessionLists> {
        let mut lists = self.listed_sessions()?;
        self.look_at_pointers(look, &self.catalog.all(), &mut lists);
        Some(lists)
    }

    /// External and tracked sessions now.
    /// `None` when the agent's registry cannot be read. Blocks: reads the registry and the process
    /// table.
    fn listed_sessions(&self) -> Option<SessionLists> {
        let dir = self.agent.sessions_dir()?;
        let Reading { entries, unusable } = {
            let mut known = lock(&self.memory.registry);
            let registry = known.get_or_insert_with(|| Registry::new(dir));
            match registry.read() {
                Ok(reading) => reading,
                Err(error) => {
                    tracing::warn!(error = %error, "the agent's registry of sessions is unreadable");
                    return None;
                }
            }
        };
        let mut lists = SessionLists::default();
        let owners = Owners::new(self);
        let projects = self.catalog.all();
        let mut listed: HashSet<Pid> = HashSet::new();
        let mut workers: Vec<Worker<'_>> = Vec::new();
        let mut is_anything_live = false;
        let mut seen = owners.nothing_seen();
        let mut signs = HashMap::new();
        for entry in &entries {
            listed.insert(entry.pid);
            let process = ProcessIdentity {
                pid: entry.pid,
                start_ticks: entry.start_ticks,
                boot_id: self.host.boot_id().clone(),
            };
            // The kernel decides about liveness: a file can outlive its process.
            let verdict = self.host.probe(&process);
            let descent = match verdict {
                Verdict::Gone(_) => continue,
                Verdict::Unknown => Descent::Unknown,
                Verdict::Same => owners.descent_of(self, &process),
            };
            is_anything_live = true;
            let session =
                SessionFacts { is_background: entry.is_background(), cwd: &entry.cwd, descent };
            let attribution = attribute(session, &owners.candidates());
            if let (Verdict::Same, Attribution::Tracked(owner)) = (verdict, attribution)
                && owners.owner(entry.pid).is_none()
            {
                let sessions = seen.entry(owner.clone()).or_default();
                sessions.extend(registered(entry));
            }
            lists.add(attribution, &projects, &entry.cwd, || {
                self.working_session(entry, attribution)
            });
            if verdict == Verdict::Same {
                signs.insert(entry.pid, Sign::of(entry, words(attribution).1.as_ref()));
                workers.push(worker(&entry.session_id, process, &entry.cwd, attribution));
            }
        }
        self.seen.saw(seen);
        self.signs.set_entries(signs);
        self.memory.saw(is_anything_live, unusable);
        // The CLI decides about existence, where it could be asked of late.
        let period = self.config.claude.agents_json_poll_interval;
        let asked = self.agent.cli().sessions_within(period.saturating_mul(2));
        let asked = asked.unwrap_or_default();
        for item in asked.list.iter().filter(|item| !item.has_ended()) {
            let Some(facts) = item.pid.filter(|pid| !listed.contains(pid)) else { continue };
            let Some(facts) = self.host.inspect(facts) else { continue };
            // A process of the same number that came later works elsewhere.
            if facts.cwd.as_deref() == Some(item.cwd.as_path()) {
                let attribution = self.attribute_listed(item, Some(&facts), &owners);
                lists.add(attribution, &projects, &item.cwd, || {
                    self.listed_session(item, attribution)
                });
                workers.push(worker(&item.session_id, facts.identity, &item.cwd, attribution));
            }
        }
        lists.shared = self.sharers(workers, &owners);
        let sessions = lists.tracked.values_mut().chain(lists.external.values_mut());
        mark_shared(sessions.flatten(), &lists.shared);
        Some(lists)
    }

    fn sharers(&self, workers: Vec<Worker<'_>>, owners: &Owners) -> Vec<Vec<Sharer>> {
        let parent = |pid: Pid| Pid::new(i64::from(self.host.inspect(pid)?.parent));
        let sharer = |worker: Worker<'_>| Sharer {
            project: match worker.bridge.and_then(|id| owners.project_of(id)) {
                Some(project) => Some(project.to_string()),
                None => self.catalog.holding(Some(worker.cwd)),
            },
            process: worker.process,
        };
        let groups = shared(workers, parent).into_iter();
        groups.map(|workers| workers.into_iter().map(sharer).collect()).collect()
    }

    /// Bridges without a record.
    /// Where a session runs that is nobody's, and where a pointer says so.
    fn look_at_pointers(&self, look: Extent, projects: &Projects, lists: &mut SessionLists) {
        let mut pointed = lock(&self.memory.pointed);
        for project in projects.iter() {
            let is_worth_it = look == Extent::Everything
                || pointed.contains(&project.name)
                || lists.external.contains_key(project.name.as_str());
            if !is_worth_it {
                continue;
            }
            let Some((found, may_adopt)) = self.finder.look(project) else {
                pointed.remove(&project.name);
                continue;
            };
            pointed.insert(project.name.clone());
            // Two names of one directory: its bridge belongs to the first.
            if found.is_lost() && project.alias_of.is_none() {
                lists.lost.push(project.clone());
            }
            if may_adopt {
                lists.adoptable.push(project.name.to_string());
            }
            lists.unmanaged.insert(project.name.clone(), unrecorded(&found.found, None));
        }
        lists.adoptable.sort();
    }

    fn attribute_listed<'o>(
        &self,
        item: &CliSession,
        facts: Option<&ProcessFacts>,
        owners: &'o Owners,
    ) -> Attribution<'o> {
        let session = SessionFacts {
            is_background: !matches!(item.kind.as_str(), "interactive" | ""),
            cwd: &item.cwd,
            descent: facts.map_or(Descent::Unknown, |facts| owners.descent(self, facts)),
        };
        match attribute(session, &owners.candidates()) {
            Attribution::Tracked(id) => owners.tracked(id),
            Attribution::Untracked => Attribution::Untracked,
            Attribution::External => Attribution::External,
        }
    }

    fn listed_session(
        &self,
        item: &CliSession,
        attribution: Attribution<'_>,
    ) -> Option<WorkingSession> {
        let (word, owner) = words(attribution);
        Some(WorkingSession {
            pid: item.pid?.get(),
            cwd: item.cwd.to_string_lossy().into_owned(),
            kind: item.kind.clone(),
            state: item.state.clone().unwrap_or_default(),
            name: item.name.as_deref().map(redact_text),
            waiting_for: item.waiting_for.as_deref().map(redact_text),
            started_at: item.started_at.as_millis(),
            session_ref: self.refs.session(&item.session_id),
            attribution: word.to_owned(),
            parent_instance: owner,
            also_in: Vec::new(),
            activity: self
                .entry_of(item)
                .and_then(|entry| self.signs.of_entry(&self.refs, &self.agent, &entry)),
        })
    }

    fn entry_of(&self, item: &CliSession) -> Option<Entry> {
        let entry = entry_of(&self.agent.sessions_dir()?, item.pid?)?;
        (entry.session_id == item.session_id).then_some(entry)
    }

    fn working_session(
        &self,
        entry: &Entry,
        attribution: Attribution<'_>,
    ) -> Option<WorkingSession> {
        let (word, owner) = words(attribution);
        Some(WorkingSession {
            pid: entry.pid.get(),
            cwd: entry.cwd.to_string_lossy().into_owned(),
            kind: entry.kind.clone(),
            state: entry.state().to_owned(),
            name: entry.name.as_deref().map(redact_text),
            waiting_for: entry.waiting_for.as_deref().map(redact_text),
            started_at: entry.started_at.as_millis(),
            session_ref: self.refs.session(&entry.session_id),
            attribution: word.to_owned(),
            parent_instance: owner,
            also_in: Vec::new(),
            activity: self.signs.of_entry(&self.refs, &self.agent, entry),
        })
    }
}

/// A conversation whose process was proven to belong to a bridge.
fn registered(entry: &Entry) -> Option<Registered> {
    Some(Registered {
        pid: u32::try_from(entry.pid.get()).ok()?,
        conversation: RemoteId::new(&entry.session_id),
        started_at: entry.started_at,
        is_proven: true,
    })
}

fn words(attribution: Attribution<'_>) -> (&'static str, Option<InstanceId>) {
    match attribution {
        Attribution::Tracked(owner) => ("tracked", Some(owner.clone())),
        Attribution::Untracked => ("untracked", None),
        Attribution::External => ("external", None),
    }
}

fn worker<'a>(
    session: &'a str,
    process: ProcessIdentity,
    cwd: &'a Path,
    attribution: Attribution<'a>,
) -> Worker<'a> {
    let bridge = match attribution {
        Attribution::Tracked(owner) => Some(owner),
        Attribution::Untracked | Attribution::External => None,
    };
    Worker { session, process, cwd, bridge }
}

/// Says of each session which other processes work on it.
fn mark_shared<'a>(
    sessions: impl IntoIterator<Item = &'a mut WorkingSession>,
    all: &[Vec<Sharer>],
) {
    if all.is_empty() {
        return;
    }
    for session in sessions {
        let pids = |sharers: &[Sharer]| -> Vec<i32> {
            sharers.iter().map(|sharer| sharer.process.pid.get()).collect()
        };
        let of_it = all.iter().map(|sharers| pids(sharers)).find(|p| p.contains(&session.pid));
        session.also_in = of_it.unwrap_or_default();
        session.also_in.retain(|pid| *pid != session.pid);
    }
}

impl SessionLists {
    /// Whether something runs that belongs to no bridge which is known.
    fn has_strangers(&self) -> bool {
        !(self.external.is_empty() && self.adoptable.is_empty() && self.unmanaged.is_empty())
    }

    fn add(
        &mut self,
        attribution: Attribution<'_>,
        projects: &Projects,
        cwd: &Path,
        session: impl FnOnce() -> Option<WorkingSession>,
    ) {
        let list = match attribution {
            Attribution::Untracked => return,
            Attribution::Tracked(owner) => self.tracked.entry(owner.to_string()),
            // A directory that two names lead to is the project of the first.
            Attribution::External => {
                let mut places = projects.iter().filter(|project| project.alias_of.is_none());
                match places.find(|project| cwd.starts_with(&project.path)) {
                    Some(project) => self.external.entry(project.name.to_string()),
                    None => return,
                }
            }
        };
        list.or_default().extend(session());
    }
}

/// Working sessions by owner and by project.
#[derive(Debug, Default)]
struct SessionLists {
    /// By instance id.
    pub tracked: BTreeMap<String, Vec<WorkingSession>>,
    /// By project.
    pub external: BTreeMap<String, Vec<WorkingSession>>,
    /// Projects with a Server Mode bridge that was started by hand.
    pub adoptable: Vec<String>,
    /// Every live Server Mode bridge without a record.
    pub unmanaged: HashMap<ProjectName, Unrecorded>,
    /// Projects with a bridge of this service that has lost its record.
    lost: Vec<Project>,
    /// Processes that work on one session, by session.
    pub shared: Vec<Vec<Sharer>>,
}
