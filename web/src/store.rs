//! The records of the page.
//!
//! Each record has its own signal, so a change touches only its row. Only the connection in `live`
//! writes here.

use crate::browser;
use crate::model::external::{self, Sessions};
use crate::model::inbox::RequestRef;
use crate::model::job::{self, Group, Job};
use crate::model::prefs::FAVOURITES;
use crate::model::sections::{self, ListEntry, Only, Section};
use crate::model::state::{self, Changed};
use crate::model::usage::{Curve, Kept, Use};
use crate::model::{link, planned, projects};
use crate::prefs;
use crate::reactive::memo;
use leptos::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use svc_shared::api::approvals::Approval;
use svc_shared::api::health::Health;
use svc_shared::api::instances::{Instance, PendingPermission};
use svc_shared::api::limits::PlanLimit;
use svc_shared::api::planned_launches::PlannedLaunch;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::internal::State;
use svc_shared::internal::agent_sign_in::SignInRecord;
use svc_shared::internal::clones::CloneJob;
use svc_shared::internal::restore::RestoreJob;
use svc_shared::stream::Op;

/// Before the id in the key of a job's row.
pub const JOB: &str = "job:";
/// Before the project in the key of a row of external sessions.
pub const EXTERNAL: &str = "external:";
/// Before the id in the key of a launch that waits.
pub const PLANNED: &str = "planned:";

/// Where this browser keeps what was dismissed.
const DISMISSED: &str = "svc.dismissed";
/// As many are kept.
const MOST_DISMISSED: usize = 200;
/// Reads all projects.
type Around<'a, R> = &'a dyn Fn(&mut dyn Iterator<Item = &Project>, &projects::Around<'_>) -> R;

/// A question of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The session that asks; `None` where nobody manages it.
    pub id: Option<String>,
    /// Its project.
    pub project: String,
    /// Its conversation, where no session is known.
    pub conversation: Option<String>,
    /// What it asks.
    pub asked: PendingPermission,
}

impl Asked {
    /// What a session of the list asks.
    pub fn of(row: &Instance, asked: &PendingPermission) -> Self {
        Self {
            id: Some(row.instance_id.to_string()),
            project: row.project.clone(),
            conversation: None,
            asked: asked.clone(),
        }
    }

    /// Its place in the inbox.
    pub fn place(&self) -> RequestRef {
        RequestRef { session: self.id.clone(), request: self.asked.request_id.clone() }
    }

    /// What a session asks that nobody manages.
    fn unmanaged(one: &Approval) -> Self {
        let asked = PendingPermission {
            request_id: one.request_id.clone(),
            subtype: one.subtype.clone(),
            since: one.since,
            tool: one.tool.clone(),
            summary: one.summary.clone(),
            truncated: one.truncated,
            expires_at: one.expires_at,
            session_rules: one.session_rules.clone(),
        };
        let conversation = one.conversation.as_ref().map(ToString::to_string);
        Self { id: None, project: one.project.clone(), conversation, asked }
    }
}

type Records<T> = StoredValue<HashMap<String, ArcRwSignal<Arc<T>>>>;

/// Every record of the page.
#[derive(Clone, Copy)]
pub struct Store {
    state: StoredValue<State>,
    instances: Records<Instance>,
    projects: Records<Project>,
    tracked: Records<Vec<WorkingSession>>,
    /// What orders and counts bridges, in no order.
    pub places: RwSignal<Vec<ListEntry>>,
    /// One more whenever a project came, went or changed.
    projects_step: RwSignal<u64>,
    jobs: RwSignal<BTreeMap<String, Arc<Job>>>,
    external: RwSignal<(Sessions, Vec<String>)>,
    /// Clones that run or have just ended, by job.
    pub clones: RwSignal<BTreeMap<String, CloneJob>>,
    /// The sign-in of the agent that is under way.
    pub sign_in: RwSignal<Option<SignInRecord>>,
    /// What agents ask, the oldest first.
    pub questions: RwSignal<Vec<Asked>>,
    /// Launches that wait for the reset of a plan limit, or did not start, by id.
    pub launches: RwSignal<BTreeMap<String, PlannedLaunch>>,
    /// The plan limit that a launch of now would run into.
    pub plan_limit: RwSignal<Option<PlanLimit>>,
    /// Health report.
    pub health: RwSignal<Option<Health>>,
    /// The restore after a restart of the machine that runs or ran last.
    pub restore: RwSignal<Option<RestoreJob>>,
    /// The first state is there.
    pub is_loaded: RwSignal<bool>,
    /// What live bridges use.
    pub curves: RwSignal<HashMap<String, Arc<Curve>>>,
    /// Bridges that failed while nobody looked.
    pub unseen: RwSignal<HashSet<String>>,
    /// Keys of the rows that are selected, the last one last.
    pub selected: RwSignal<Vec<String>>,
    /// Ids of what was removed and may be taken back.
    hidden: RwSignal<HashSet<String>>,
    /// Bad ends that were put away, newest last.
    dismissed: RwSignal<Vec<String>>,
    /// When each project was last used, milliseconds.
    ///
    /// The project list reads it from the history.
    pub used: RwSignal<Arc<HashMap<String, i64>>>,
    /// Failing checks of projects whose launch would be refused.
    refused: RwSignal<Arc<HashMap<String, Vec<String>>>>,
    /// Bridges and jobs per project.
    pub rollups: Memo<Arc<HashMap<String, projects::Rollup>>>,
}

impl Store {
    /// An empty store.
    pub fn new() -> Self {
        let places: RwSignal<Vec<ListEntry>> = RwSignal::new(Vec::new());
        let hidden = RwSignal::new(HashSet::<String>::new());
        let kept = browser::stored(DISMISSED).unwrap_or_default();
        let jobs: RwSignal<BTreeMap<String, Arc<Job>>> = RwSignal::new(BTreeMap::new());
        Self {
            state: StoredValue::new(State::default()),
            instances: StoredValue::new(HashMap::new()),
            projects: StoredValue::new(HashMap::new()),
            tracked: StoredValue::new(HashMap::new()),
            places,
            projects_step: RwSignal::new(0),
            jobs,
            used: RwSignal::new(Arc::default()),
            external: RwSignal::new(Default::default()),
            refused: RwSignal::new(Arc::default()),
            clones: RwSignal::new(BTreeMap::new()),
            sign_in: RwSignal::new(None),
            questions: RwSignal::new(Vec::new()),
            launches: RwSignal::new(BTreeMap::new()),
            plan_limit: RwSignal::new(None),
            health: RwSignal::new(None),
            restore: RwSignal::new(None),
            is_loaded: RwSignal::new(false),
            curves: RwSignal::new(HashMap::new()),
            unseen: RwSignal::new(HashSet::new()),
            selected: RwSignal::new(Vec::new()),
            hidden,
            dismissed: RwSignal::new(kept.split_whitespace().map(str::to_owned).collect()),
            rollups: memo(move || {
                jobs.with(|jobs| {
                    let hidden = hidden.get();
                    let jobs = jobs.values().filter(|job| !hidden.contains(job.id.as_str()));
                    let jobs = jobs.map(|job| &**job);
                    places.with(|places| {
                        let shown = places.iter().filter(|place| !hidden.contains(&place.id));
                        Arc::new(projects::rollups(shown, jobs))
                    })
                })
            }),
        }
    }

    /// Applies a step of the stream; returns the bridges that settled in it.
    pub fn apply(self, ops: Vec<Op>) -> Vec<Arc<Instance>> {
        let Some(changed) = self.state.try_update_value(|now| state::apply(now, ops)) else {
            return Vec::new();
        };
        self.publish(&changed);
        changed
            .settled
            .iter()
            .filter_map(|id| self.instance(id))
            .map(|signal| signal.get_untracked())
            .collect()
    }

    /// Takes a whole state.
    pub fn replace(self, next: State) {
        if let Some(changed) = self.state.try_update_value(|now| state::replace(now, next)) {
            self.publish(&changed);
        }
        self.is_loaded.set(true);
    }

    fn publish(self, changed: &Changed) {
        self.state.with_value(|state| {
            refresh(self.projects, &changed.projects, &state.projects);
            for id in &changed.tracked {
                // Never taken away: a row keeps its signal from before the first session inside
                // until after the last.
                self.inside(id).set(Arc::new(state.tracked.get(id).cloned().unwrap_or_default()));
            }
            refresh(self.instances, &changed.instances, &state.instances);
            if changed.jobs {
                self.jobs.set(state.jobs.clone());
            }
            if changed.external {
                self.external.set((state.external.clone(), state.adoptable.clone()));
            }
            if changed.launches {
                self.launches.set(state.launches.clone());
                self.plan_limit.set(state.plan_limit.clone());
            }
            if changed.refused {
                let refused = state.preflight.iter().filter(|(_, found)| !found.ok);
                let codes = refused.map(|(name, found)| (name.clone(), found.codes.clone()));
                self.refused.set(Arc::new(codes.collect()));
            }
            if changed.clones {
                self.clones.set(state.clones.clone());
            }
            if changed.sign_in {
                self.sign_in.set(state.shepherd.clone());
            }
            if changed.health {
                self.health.set(state.health.clone());
            }
            if changed.restore {
                self.restore.set(state.restore.clone());
            }
            self.place(&changed.instances, &state.instances);
            if changed.questions || !changed.instances.is_empty() {
                self.ask(state);
            }
            self.forget_selected(|key| match key.strip_prefix(JOB) {
                Some(id) => state.jobs.contains_key(id),
                None => state.instances.contains_key(key),
            });
            // What runs again or is gone has nothing left to be seen.
            if !self.unseen.with_untracked(HashSet::is_empty) {
                let ended = |id: &String| state.instances.get(id).is_some_and(|b| !b.is_live());
                self.unseen.update(|unseen| unseen.retain(ended));
            }
        });
        if !changed.projects.is_empty() {
            self.projects_step.update(|step| *step += 1);
        }
    }

    fn ask(self, state: &State) {
        let rows = state.instances.values();
        let mut all: Vec<Asked> = rows
            .flat_map(|row| row.pending_permissions.iter().map(|asked| Asked::of(row, asked)))
            .chain(state.questions.values().map(Asked::unmanaged))
            .collect();
        all.sort_by_key(|one| one.asked.since);
        if self.questions.with_untracked(|known| *known != all) {
            self.questions.set(all);
        }
    }

    fn place(self, ids: &[String], rows: &BTreeMap<String, Arc<Instance>>) {
        let moved: Vec<(&String, Option<ListEntry>)> = self.places.with_untracked(|places| {
            let known: HashMap<&str, &ListEntry> =
                places.iter().map(|p| (p.id.as_str(), p)).collect();
            ids.iter()
                .map(|id| (id, rows.get(id).map(|bridge| sections::place(bridge))))
                .filter(|(id, next)| known.get(id.as_str()).copied() != next.as_ref())
                .collect()
        });
        if !moved.is_empty() {
            self.places.update(|places| {
                places.retain(|p| !moved.iter().any(|(id, _)| **id == p.id));
                places.extend(moved.into_iter().filter_map(|(_, next)| next));
            });
        }
    }

    /// Takes measurements. Curves of what has ended go.
    pub fn measured(self, at: i64, all: Vec<(String, Use)>) {
        self.curves.update(|curves| {
            self.state.with_value(|state| {
                curves.retain(|id, _| state.instances.get(id).is_some_and(|b| b.is_live()));
            });
            for (id, now) in all {
                Arc::make_mut(curves.entry(id).or_default()).add(at, now);
            }
        });
    }

    /// Takes what was measured before.
    pub fn measured_before(self, kept: Kept) {
        self.curves.update(|curves| {
            curves.extend(kept.0.into_iter().map(|(id, curve)| (id, Arc::new(curve))));
        });
    }

    /// The record of a bridge.
    pub fn instance(self, id: &str) -> Option<ArcRwSignal<Arc<Instance>>> {
        self.instances.with_value(|all| all.get(id).cloned())
    }

    /// The record of a project.
    pub fn project(self, name: &str) -> Option<ArcRwSignal<Arc<Project>>> {
        self.projects.with_value(|all| all.get(name).cloned())
    }

    /// The sessions inside a bridge; the signal exists before the first of them does.
    pub fn inside(self, id: &str) -> ArcRwSignal<Arc<Vec<WorkingSession>>> {
        if let Some(signal) = self.tracked.with_value(|all| all.get(id).cloned()) {
            return signal;
        }
        let signal = ArcRwSignal::new(Arc::default());
        self.tracked.update_value(|all| drop(all.insert(id.to_owned(), signal.clone())));
        signal
    }

    /// A background job. Tracked.
    pub fn job(self, id: &str) -> Option<Arc<Job>> {
        self.jobs.with(|jobs| jobs.get(id).cloned())
    }

    /// All jobs, or those of one project. Tracked.
    pub fn all_jobs(self, project: Option<&str>) -> Vec<Arc<Job>> {
        let is_wanted =
            |job: &&Arc<Job>| project.is_none_or(|name| job.project.as_deref() == Some(name));
        self.jobs.with(|jobs| jobs.values().filter(is_wanted).cloned().collect())
    }

    /// Keys of rows of the jobs of these groups, in order. Tracked.
    pub fn jobs_of(self, groups: &[Group]) -> Vec<String> {
        self.jobs.with(|jobs| {
            let of = |group: &Group| job::ids_of(jobs.values().map(|job| &**job), *group);
            let keys = groups.iter().flat_map(of).map(|id| format!("{JOB}{id}")).collect();
            self.without_hidden(keys)
        })
    }

    /// Keys of rows of launches that wait, in order, of one project or of all. Tracked.
    pub fn planned_of(self, project: Option<&str>) -> Vec<String> {
        self.launches.with(|all| {
            planned::ids(all, project).into_iter().map(|id| format!("{PLANNED}{id}")).collect()
        })
    }

    /// Sessions of a project that were started elsewhere.
    ///
    /// The flag says whether its bridge can be adopted. Tracked.
    pub fn external_of(self, project: &str) -> (Arc<Vec<WorkingSession>>, bool) {
        self.external.with(|(sessions, adoptable)| {
            let sessions = Arc::new(sessions.get(project).cloned().unwrap_or_default());
            (sessions, adoptable.iter().any(|name| name == project))
        })
    }

    /// Keys of rows of the projects with such sessions, in order. Tracked.
    pub fn externals(self) -> Vec<String> {
        self.external.with(|(sessions, adoptable)| {
            let names = external::projects(sessions, adoptable);
            names.into_iter().map(|name| format!("{EXTERNAL}{name}")).collect()
        })
    }

    /// Ids of one section of Home, in order. Tracked.
    pub fn section(self, section: Section) -> Vec<String> {
        let dismissed = self.dismissed.get();
        self.without_hidden(
            self.places.with(|places| sections::ids_of(&mut places.iter(), section, &dismissed)),
        )
    }

    fn without_hidden(self, mut keys: Vec<String>) -> Vec<String> {
        self.hidden.with(|hidden| {
            if !hidden.is_empty() {
                keys.retain(|key| !hidden.contains(key.trim_start_matches(JOB)));
            }
        });
        keys
    }

    /// Takes a row out of every list.
    pub fn hide(self, id: &str) {
        self.hidden.update(|hidden| _ = hidden.insert(id.to_owned()));
        self.unseen.update(|unseen| _ = unseen.remove(id));
        self.forget_selected(|key| key.trim_start_matches(JOB) != id);
    }

    fn forget_selected(self, keep: impl Fn(&str) -> bool) {
        if !self.selected.with_untracked(Vec::is_empty) {
            self.selected.update(|all| all.retain(|key| keep(key)));
        }
    }

    /// The opposite.
    pub fn show_again(self, id: &str) {
        if self.hidden.with_untracked(|hidden| hidden.contains(id)) {
            self.hidden.update(|hidden| _ = hidden.remove(id));
        }
    }

    /// Puts a bad end away, or brings it back.
    pub fn dismiss(self, seen: &str, is: bool) {
        self.dismissed.update(|all| {
            // Another tab may have put something away meanwhile.
            if let Some(kept) = browser::stored(DISMISSED) {
                *all = kept.split_whitespace().map(str::to_owned).collect();
            }
            all.retain(|one| one != seen);
            if is {
                all.push(seen.to_owned());
            }
            let many = all.len().saturating_sub(MOST_DISMISSED);
            all.drain(..many);
            browser::store(DISMISSED, Some(&all.join(" ")));
        });
        let id = seen.split(':').next().unwrap_or_default();
        self.unseen.update(|unseen| _ = unseen.remove(id));
    }

    /// Keys of rows of one project, bridges before jobs, in order. Tracked.
    pub fn rows_of(
        self,
        project: &str,
        section: Option<Section>,
        group: Option<Group>,
    ) -> Vec<String> {
        let mut keys = section.map_or_else(Vec::new, |section| {
            self.places.with(|places| {
                let mut ours = places.iter().filter(|p| p.project == project);
                self.without_hidden(sections::ids_of(&mut ours, section, &[]))
            })
        });
        let mut jobs = group.map_or_else(Vec::new, |group| self.jobs_of(&[group]));
        jobs.retain(|key| {
            let job = self.job(key.trim_start_matches(JOB));
            job.is_some_and(|job| job.project.as_deref() == Some(project))
        });
        keys.append(&mut jobs);
        keys
    }

    /// Whether there is such a project. Tracked.
    pub fn has_project(self, name: &str) -> bool {
        self.projects_step.track();
        self.project(name).is_some()
    }

    /// Another live bridge of the project. Tracked.
    pub fn live_sibling(self, of: &Instance) -> Option<String> {
        self.live_of(&of.project).filter(|id| id != of.instance_id.as_str())
    }

    /// The live Server Mode bridge of a project. Tracked.
    pub fn live_of(self, project: &str) -> Option<String> {
        self.places.with(|places| {
            let mut all = places.iter().filter(|p| p.project == project && p.kind == Only::Server);
            all.find(|p| p.section == Section::Live).map(|p| p.id.clone())
        })
    }

    /// How many live bridges work on the files of a project itself. Tracked.
    pub fn live_beside(self, project: &str) -> usize {
        self.places.with(|places| {
            let live = places.iter().filter(|p| p.project == project && p.is_same_dir);
            live.filter(|p| matches!(p.section, Section::Live | Section::Waiting)).count()
        })
    }

    /// Ids of the bridges that ended with their machine, sorted. Tracked.
    pub fn ended_with_machine(self) -> Vec<String> {
        self.places.with(|places| {
            let mut ids: Vec<String> =
                places.iter().filter(|p| p.ended_with_machine).map(|p| p.id.clone()).collect();
            ids.sort();
            ids
        })
    }

    /// The keys that belong to a kind of rows. Tracked.
    pub fn of_kind(self, only: Only, mut keys: Vec<String>) -> Vec<String> {
        self.places.with(|places| keys.retain(|key| only.takes(key, places)));
        keys
    }

    /// Whether there is a Direct Session. Tracked.
    pub fn has_direct(self) -> bool {
        self.places.with(|places| places.iter().any(|place| place.kind == Only::Direct))
    }

    /// What a reference in an address means. Tracked.
    pub fn find(self, reference: &str) -> link::Found {
        self.places.with(|places| link::find(reference, places.iter().map(|p| p.id.as_str())))
    }

    /// What the model makes of all projects and what is known around them. Tracked.
    fn around<R>(self, with_favourites: bool, by_use: bool, make: Around<'_, R>) -> R {
        self.projects_step.track();
        let rollups = self.rollups.get();
        let used = if by_use { self.used.get() } else { Arc::default() };
        let favourites = match with_favourites {
            true => prefs::look(|prefs| prefs.items(FAVOURITES).map(str::to_owned).collect()),
            false => HashSet::new(),
        };
        let around = projects::Around { rollups: &rollups, used: &used, favourites: &favourites };
        self.state.with_value(|state| {
            make(&mut state.projects.values().map(|project| &**project), &around)
        })
    }

    /// Names of projects for a query. Tracked.
    pub fn list_projects(self, query: &projects::Query) -> Vec<String> {
        let by_use = query.sort == projects::Sort::Used;
        let with_favourites = query.favourites_first || query.show == projects::Show::Favourites;
        self.around(with_favourites, by_use, &|all, around| projects::list(all, around, query))
    }

    /// How many projects a filter shows. Tracked.
    pub fn count_shown(self, show: projects::Show) -> usize {
        let with_favourites = show == projects::Show::Favourites;
        self.around(with_favourites, false, &|all, around| projects::count(all, around, show))
    }

    /// When a project was last used, milliseconds; `None` for never. Tracked.
    pub fn last_used(self, project: &str) -> Option<i64> {
        let favourites = HashSet::new();
        self.rollups.with(|rollups| {
            self.used.with(|used| {
                projects::Around { rollups, used, favourites: &favourites }.last_used(project)
            })
        })
    }

    /// Ids of the checks that fail for a default launch in a project. Tracked.
    pub fn refused(self, project: &str) -> Vec<String> {
        self.refused.with(|all| all.get(project).cloned().unwrap_or_default())
    }

    /// How many projects there are. Tracked.
    pub fn count_projects(self) -> usize {
        self.projects_step.track();
        self.state.with_value(|state| state.projects.len())
    }
}

/// Brings the signals of these records up to date.
fn refresh<T: Send + Sync + 'static>(
    signals: Records<T>,
    keys: &[String],
    records: &BTreeMap<String, Arc<T>>,
) {
    for key in keys {
        let known = signals.with_value(|all| all.get(key).cloned());
        match (records.get(key).cloned(), known) {
            (Some(next), Some(signal)) => signal.set(next),
            (Some(next), None) => {
                let signal = ArcRwSignal::new(next);
                signals.update_value(|all| drop(all.insert(key.clone(), signal)));
            }
            // Whoever still shows it keeps the last record until its row is taken away.
            (None, _) => signals.update_value(|all| drop(all.remove(key))),
        }
    }
}
