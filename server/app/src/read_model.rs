//! What every reader sees: the folded state, its deltas and its subscribers.
//!
//! Lists, the state document and the stream are folds of the same records, made with the same
//! function ([`svc_shared::stream::apply`]), so they agree at each `seq`. Reads never touch the
//! store. A write is in the snapshot before the call that makes it returns.

mod bodies;
pub(crate) mod facts;
pub(crate) mod limits;
pub(crate) mod links;
pub(crate) mod look;
pub(crate) mod project_row;
pub(crate) mod publish;
pub(crate) mod records;
mod ring;
pub(crate) mod signs;
mod subscription;
pub(crate) mod view;

pub use bodies::{Encoded, List};
pub use subscription::{Feed, Subscription};

use bodies::Bodies;
use bytes::Bytes;
use ring::Ring;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;
use svc_shared::Timestamp;
use svc_shared::api::approvals::Approval;
use svc_shared::api::health::Health;
use svc_shared::api::instances::Instance;
use svc_shared::api::jobs::BackgroundJob;
use svc_shared::api::limits::PlanLimit;
use svc_shared::api::planned_launches::PlannedLaunch;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::events::Event;
use svc_shared::internal::metrics::Metrics;
use svc_shared::internal::{LoginStatus, PreflightSummary, State};
use svc_shared::stream::{EventFrame, Op, Put, Record, apply, counts};
use tokio::sync::{Notify, broadcast, watch};

/// Most changes in one delta.
/// A change of thousands of records becomes several frames, so that no single frame is over a
/// socket's queue limit.
const OPS_PER_DELTA: usize = 256;

/// Toasts kept for a reader that is busy.
/// Older ones are dropped (they are not part of the state).
const TOASTS: usize = 256;

/// Samples kept for a reader that is busy.
/// The next one says more than a missed one.
const SAMPLES: usize = 2;

/// The state at one `seq`, and the order in which the instances were registered.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Random per server process.
    pub boot: Arc<str>,
    /// Number of the last delta folded in; 0 before the first.
    pub seq: u64,
    /// Every record.
    pub state: Arc<State>,
    order: Arc<BTreeMap<i64, String>>,
}

/// The records, the ring of their changes, and the fan-out.
pub struct ReadModel {
    boot: Arc<str>,
    inner: Mutex<Inner>,
    bodies: Mutex<Bodies>,
    head: watch::Sender<u64>,
    changed: watch::Sender<()>,
    toasts: broadcast::Sender<Bytes>,
    samples: broadcast::Sender<Bytes>,
    /// A reader came that wants samples.
    wanted: Notify,
    /// Who else is told of events.
    listener: OnceLock<Listener>,
}

/// Is told of events, and never waits.
type Listener = Box<dyn Fn(&Event) + Send + Sync>;

impl std::fmt::Debug for ReadModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadModel").field("boot", &self.boot).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Inner {
    seq: u64,
    state: Arc<State>,
    order: Order,
    /// Counts changes of each list. An encoded list is kept while it is current.
    revisions: Revisions,
    ring: Ring,
    /// Somebody may know a position to go on from.
    /// Before that no change has to be kept.
    is_followed: bool,
}

/// The order of registration.
#[derive(Debug, Default)]
struct Order {
    ids: Arc<BTreeMap<i64, String>>,
    places: HashMap<String, i64>,
}

impl Order {
    /// Puts an instance at its place; tells whether it was elsewhere.
    fn set(&mut self, id: &str, place: i64) -> bool {
        if self.places.get(id) == Some(&place) {
            return false;
        }
        self.remove(id);
        self.places.insert(id.to_owned(), place);
        let displaced = Arc::make_mut(&mut self.ids).insert(place, id.to_owned());
        if let Some(other) = displaced {
            self.places.remove(&other);
            self.arrive(&other);
        }
        true
    }

    /// Puts a new instance at the end.
    fn arrive(&mut self, id: &str) {
        if !self.places.contains_key(id) {
            let last = self.ids.last_key_value().map_or(0, |(place, _)| *place);
            self.set(id, last.saturating_add(1));
        }
    }

    fn remove(&mut self, id: &str) {
        if let Some(place) = self.places.remove(id) {
            Arc::make_mut(&mut self.ids).remove(&place);
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Revisions {
    instances: u64,
    projects: u64,
}

impl Snapshot {
    /// The instances in registration order.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.order.values().filter_map(|id| self.state.instances.get(id)).map(Arc::as_ref)
    }

    /// The projects by name, case-insensitive, then byte for byte.
    #[must_use]
    pub fn projects(&self) -> Vec<&Project> {
        let mut projects: Vec<&Project> = self.state.projects.values().map(Arc::as_ref).collect();
        projects.sort_by_cached_key(|project| {
            (project.name.as_str().to_lowercase(), project.name.clone())
        });
        projects
    }
}

impl ReadModel {
    /// An empty model with a fresh `boot`.
    #[must_use]
    pub fn new() -> Arc<Self> {
        // The keys of a `RandomState` come from the operating system.
        let random = RandomState::new().build_hasher().finish();
        let state = State { counts: counts(std::iter::empty()), ..State::default() };
        Arc::new(Self {
            boot: format!("{random:016x}").into(),
            inner: Mutex::new(Inner {
                seq: 0,
                state: Arc::new(state),
                order: Order::default(),
                revisions: Revisions::default(),
                ring: Ring::default(),
                is_followed: false,
            }),
            bodies: Mutex::default(),
            head: watch::Sender::new(0),
            changed: watch::Sender::new(()),
            toasts: broadcast::Sender::new(TOASTS),
            samples: broadcast::Sender::new(SAMPLES),
            wanted: Notify::new(),
            listener: OnceLock::new(),
        })
    }

    /// The state now. Cheap: nothing is copied.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let inner = self.lock();
        Arc::new(self.snapshot_of(&inner))
    }

    /// Random per server process, 16 hex digits.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Number of the last delta.
    #[must_use]
    pub fn head(&self) -> u64 {
        *self.head.borrow()
    }

    /// Open subscriptions.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.head.receiver_count()
    }

    /// Tells of changes of the state. It counts as no subscription.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Sets records; those that did not change are left out.
    /// A new instance goes to the end of the list.
    pub fn put(&self, records: Vec<(String, Record)>) {
        self.write(|state| {
            records
                .into_iter()
                .filter(|(id, record)| !is_current(state, id, record))
                .map(|(id, record)| Op::Put(Put { id, record }))
                .collect()
        });
    }

    /// Removes one record, if it is there. `kind` is the word of [`Record::kind`].
    pub fn remove(&self, kind: &str, id: &str) {
        self.write(
            |state| {
                if contains(state, kind, id) { vec![delete(kind, id)] } else { Vec::new() }
            },
        );
    }

    /// Sets instances, each with its place in registration order, and removes others.
    pub fn change_instances(&self, instances: Vec<(i64, Instance)>, gone: &[String]) {
        let mut inner = self.lock();
        let removed = gone.iter().filter(|id| inner.state.instances.contains_key(*id));
        let mut ops: Vec<Op> = removed.map(|id| delete("instance", id)).collect();
        // A place can be given anew: first those that leave.
        gone.iter().for_each(|id| inner.order.remove(id));
        for (place, instance) in instances {
            let id = instance.instance_id.to_string();
            if inner.order.set(&id, place) {
                inner.revisions.instances += 1;
            }
            if inner.state.instances.get(&id).is_none_or(|shown| **shown != instance) {
                ops.push(Op::Put(Put { id, record: Record::Instance(instance.into()) }));
            }
        }
        self.commit(&mut inner, ops);
    }

    /// Sets all projects, by name.
    pub fn replace_projects(&self, projects: BTreeMap<String, Project>) {
        let projects = projects.into_iter().map(|(name, project)| (name, project.into())).collect();
        self.write(|state| diff(&state.projects, projects, "project", Record::Project));
    }

    /// Sets the readiness of all projects, by name.
    pub fn replace_preflight(&self, preflight: BTreeMap<String, PreflightSummary>) {
        self.write(|state| diff(&state.preflight, preflight, "preflight", Record::Preflight));
    }

    /// Sets the background jobs, by id.
    pub fn replace_jobs(&self, jobs: BTreeMap<String, BackgroundJob>) {
        let jobs = jobs.into_iter().map(|(id, job)| (id, job.into())).collect();
        self.write(|state| diff(&state.jobs, jobs, "job", Record::Job));
    }

    /// Sets the external sessions, by project.
    /// A project without any is left out by the caller.
    pub fn replace_external(&self, sessions: BTreeMap<String, Vec<WorkingSession>>) {
        self.write(|state| diff(&state.external, sessions, "external", Record::External));
    }

    /// Sets the tracked sessions, by instance id.
    pub fn replace_tracked(&self, sessions: BTreeMap<String, Vec<WorkingSession>>) {
        self.write(|state| diff(&state.tracked, sessions, "tracked", Record::Tracked));
    }

    /// Sets the names of the projects that have an adoptable bridge.
    pub fn replace_adoptable(&self, names: impl IntoIterator<Item = String>) {
        let wanted: BTreeMap<String, bool> = names.into_iter().map(|name| (name, true)).collect();
        self.write(|state| {
            let before = state.adoptable.iter().map(|name| (name.clone(), true)).collect();
            diff(&before, wanted, "adoptable", Record::Adoptable)
        });
    }

    /// Sets what sessions that nobody manages ask, by the name of the request.
    pub fn replace_questions(&self, questions: BTreeMap<String, Approval>) {
        let record = |asked| Record::Question(Box::new(asked));
        self.write(|state| diff(&state.questions, questions, "question", record));
    }

    /// Sets the launches that wait for a plan limit, by id, and the limit.
    pub fn replace_launches(
        &self,
        launches: BTreeMap<String, PlannedLaunch>,
        limit: Option<PlanLimit>,
    ) {
        let record = |launch| Record::Launch(Box::new(launch));
        self.write(|state| diff(&state.launches, launches, "launch", record));
        match limit {
            Some(limit) => self.put(vec![("now".into(), Record::PlanLimit(limit.into()))]),
            None => self.remove("plan_limit", "now"),
        }
    }

    /// Sets the health report.
    pub fn set_health(&self, health: Health) {
        self.put(vec![("health".into(), Record::Health(health.into()))]);
    }

    /// Sets the login facts.
    pub fn set_login(&self, login: LoginStatus) {
        self.put(vec![("login".into(), Record::Login(login))]);
    }

    /// Tells who listens now that something happened; nothing is kept.
    /// The one place that events pass on their way out.
    pub fn happened(&self, event: &Event) {
        let (name, data) = (event.name().as_str().into(), event.for_page());
        self.toast(&EventFrame::Event { time: now(), name, data });
        if let Some(listener) = self.listener.get() {
            listener(event);
        }
    }

    /// Has events told to somebody else too. Only the first one is kept.
    pub(crate) fn tell(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener)); // called once, where all is put together
    }

    /// Tells who listens now something the operator should know.
    /// `level` is `info`, `warn` or `error`.
    pub fn notice(&self, level: &str, code: &str, text: &str) {
        self.toast(&EventFrame::Notice {
            level: level.into(),
            code: code.into(),
            text: text.into(),
        });
    }

    /// Whether a reader wants samples.
    #[must_use]
    pub fn are_samples_wanted(&self) -> bool {
        self.samples.receiver_count() > 0
    }

    /// Waits for a reader that wants samples and came after the last such wait.
    /// For one caller.
    pub async fn samples_wanted(&self) {
        self.wanted.notified().await;
    }

    /// A place among those who want samples.
    fn sample_feed(&self) -> broadcast::Receiver<Bytes> {
        let feed = self.samples.subscribe();
        self.wanted.notify_one();
        feed
    }

    /// Tells who wants it what was measured, by instance id.
    /// Nothing is kept, and nothing is done when nobody wants it.
    pub fn sampled(&self, time: Timestamp, metrics: impl FnOnce() -> BTreeMap<String, Metrics>) {
        if self.are_samples_wanted() {
            let metrics = metrics();
            let _ = self.samples.send(encode(&EventFrame::Sample { time, metrics }));
        }
    }

    fn toast(&self, frame: &EventFrame) {
        // No receiver is fine: a toast without a viewer is nobody's loss.
        let _ = self.toasts.send(encode(frame));
    }

    fn write(&self, change: impl FnOnce(&State) -> Vec<Op>) {
        let mut inner = self.lock();
        let ops = change(&inner.state);
        self.commit(&mut inner, ops);
    }

    /// Folds the changes in and hands them to the readers, all under the caller's lock.
    fn commit(&self, inner: &mut Inner, ops: Vec<Op>) {
        if ops.is_empty() {
            return;
        }
        let time = now();
        let mut ops = ops.into_iter().peekable();
        while ops.peek().is_some() {
            let part: Vec<Op> = ops.by_ref().take(OPS_PER_DELTA).collect();
            inner.fold(&part);
            // A start sets every record there is, and nobody listens yet.
            if inner.is_followed {
                let frame = encode(&EventFrame::Delta { seq: inner.seq, time, ops: part });
                inner.ring.push(inner.seq, frame);
            }
        }
        self.head.send_replace(inner.seq);
        self.changed.send_replace(());
    }

    fn snapshot_of(&self, inner: &Inner) -> Snapshot {
        Snapshot {
            boot: Arc::clone(&self.boot),
            seq: inner.seq,
            state: Arc::clone(&inner.state),
            order: Arc::clone(&inner.order.ids),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while holding it leaves whole records behind: `apply` replaces, never edits.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn fold(&mut self, ops: &[Op]) {
        self.seq += 1;
        // Copies the maps only while somebody still reads the previous snapshot.
        let state = Arc::make_mut(&mut self.state);
        for op in ops {
            match op {
                Op::Put(Put { id, record: Record::Instance(_) }) => {
                    self.revisions.instances += 1;
                    self.order.arrive(id);
                }
                Op::Del { k, id } if k == "instance" => {
                    self.revisions.instances += 1;
                    self.order.remove(id);
                }
                Op::Put(Put { record: Record::Project(_), .. }) => self.revisions.projects += 1,
                Op::Del { k, .. } if k == "project" => self.revisions.projects += 1,
                Op::Put(_) | Op::Del { .. } => {}
            }
            apply(state, op.clone());
        }
    }
}

fn encode(frame: &EventFrame) -> Bytes {
    bodies::json(frame)
}

fn delete(kind: &str, id: &str) -> Op {
    Op::Del { k: kind.to_owned(), id: id.to_owned() }
}

fn diff<T: PartialEq>(
    before: &BTreeMap<String, T>,
    wanted: BTreeMap<String, T>,
    kind: &str,
    record: impl Fn(T) -> Record,
) -> Vec<Op> {
    let kept: BTreeSet<&String> = before.keys().filter(|id| wanted.contains_key(*id)).collect();
    let mut ops: Vec<Op> =
        before.keys().filter(|id| !kept.contains(id)).map(|id| delete(kind, id)).collect();
    for (id, value) in wanted {
        if before.get(&id) != Some(&value) {
            ops.push(Op::Put(Put { id, record: record(value) }));
        }
    }
    ops
}

fn is_current(state: &State, id: &str, record: &Record) -> bool {
    match record {
        Record::Project(v) => state.projects.get(id) == Some(v),
        Record::Instance(v) => state.instances.get(id) == Some(v),
        Record::Job(v) => state.jobs.get(id) == Some(v),
        Record::External(v) => state.external.get(id) == Some(v),
        Record::Tracked(v) => state.tracked.get(id) == Some(v),
        Record::Adoptable(_) => contains(state, "adoptable", id),
        Record::Question(v) => state.questions.get(id) == Some(v),
        Record::Launch(v) => state.launches.get(id) == Some(v),
        Record::PlanLimit(v) => state.plan_limit.as_ref() == Some(v),
        Record::Clone(v) => state.clones.get(id) == Some(v),
        Record::Preflight(v) => state.preflight.get(id) == Some(v),
        Record::Health(v) => state.health.as_ref() == Some(v),
        Record::Login(v) => state.login.as_ref() == Some(v),
        Record::Shepherd(v) => state.shepherd.as_ref() == Some(v),
        Record::Restore(v) => state.restore.as_ref() == Some(v),
        Record::Other => true,
    }
}

fn contains(state: &State, kind: &str, id: &str) -> bool {
    match kind {
        "project" => state.projects.contains_key(id),
        "instance" => state.instances.contains_key(id),
        "job" => state.jobs.contains_key(id),
        "external" => state.external.contains_key(id),
        "tracked" => state.tracked.contains_key(id),
        "adoptable" => state.adoptable.iter().any(|name| name == id),
        "question" => state.questions.contains_key(id),
        "launch" => state.launches.contains_key(id),
        "plan_limit" => state.plan_limit.is_some(),
        "clone" => state.clones.contains_key(id),
        "preflight" => state.preflight.contains_key(id),
        "health" => state.health.is_some(),
        "login" => state.login.is_some(),
        "shepherd" => state.shepherd.is_some(),
        "restore" => state.restore.is_some(),
        _ => false,
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
