//! The one store: a signal per record, so that a change touches only its row. Its only writer is
//! the connection in `live`.

use crate::dom::prelude::*;
use crate::model::external::{self, Sessions};
use crate::model::job::{self, Group, Job};
use crate::model::sections::{self, Place, Section};
use crate::model::state::{Book, Change, Changed};
use crate::model::{link, projects};
use crate::parts::reactive::{Cached, Held, memo};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use svc_shared::api::health::Health;
use svc_shared::api::instances::Instance;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;

/// Before the id in the key of a job's row.
pub const JOB: &str = "job:";
/// Before the project in the key of a row of external sessions.
pub const EXTERNAL: &str = "external:";

type Records<T> = StoredValue<HashMap<String, ArcRwSignal<Arc<T>>>>;

/// Every record of the page.
#[derive(Clone, Copy)]
pub struct Store {
    book: StoredValue<Book>,
    instances: Records<Instance>,
    projects: Records<Project>,
    tracked: Records<Vec<WorkingSession>>,
    /// What orders and counts bridges, in no order.
    pub places: RwSignal<Vec<Place>>,
    /// One more whenever a project came, went or changed.
    projects_step: RwSignal<u64>,
    jobs: Held<HashMap<String, Arc<Job>>>,
    external: Held<(Sessions, HashSet<String>)>,
    /// Health report.
    pub health: Held<Option<Health>>,
    /// The first state is there.
    pub is_loaded: RwSignal<bool>,
    /// Bridges that failed while nobody looked.
    pub unseen: Held<HashSet<String>>,
    /// Bridges per project.
    pub rollups: Cached<Arc<HashMap<String, projects::Rollup>>>,
}

impl Store {
    /// An empty store.
    pub fn new() -> Self {
        let places: RwSignal<Vec<Place>> = RwSignal::new(Vec::new());
        Self {
            book: StoredValue::new(Book::default()),
            instances: StoredValue::new(HashMap::new()),
            projects: StoredValue::new(HashMap::new()),
            tracked: StoredValue::new(HashMap::new()),
            places,
            projects_step: RwSignal::new(0),
            jobs: Held::new(HashMap::new()),
            external: Held::new(Default::default()),
            health: Held::new(None),
            is_loaded: RwSignal::new(false),
            unseen: Held::new(HashSet::new()),
            rollups: memo(move || Arc::new(places.with(|places| projects::rollups(places.iter())))),
        }
    }

    /// Applies a step of the stream; returns the bridges that settled in it.
    pub fn apply(self, changes: Vec<Change>) -> Vec<Arc<Instance>> {
        let Some(changed) = self.book.try_update_value(|book| book.apply(changes)) else {
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
    pub fn replace(self, next: Book) {
        if let Some(changed) = self.book.try_update_value(|book| book.replace(next)) {
            self.publish(&changed);
        }
        self.is_loaded.set(true);
    }

    fn publish(self, changed: &Changed) {
        self.book.with_value(|book| {
            refresh(self.projects, &changed.projects, &book.projects);
            for id in &changed.tracked {
                // Never taken away: a row keeps its signal from before the first session inside
                // until after the last.
                self.inside(id).set(book.tracked.get(id).cloned().unwrap_or_default());
            }
            refresh(self.instances, &changed.instances, &book.instances);
            if changed.jobs {
                self.jobs.set(book.jobs.clone());
            }
            if changed.external {
                self.external.set((book.external.clone(), book.adoptable.clone()));
            }
            if changed.health {
                self.health.set(book.health.clone());
            }
            self.place(&changed.instances, &book.instances);
        });
        if !changed.projects.is_empty() {
            self.projects_step.update(|step| *step += 1);
        }
    }

    fn place(self, ids: &[String], rows: &HashMap<String, Arc<Instance>>) {
        for id in ids {
            let next = rows.get(id).map(|bridge| sections::place(bridge));
            let is_same = self
                .places
                .with_untracked(|places| places.iter().find(|p| p.id == *id) == next.as_ref());
            if !is_same {
                self.places.update(|places| {
                    places.retain(|p| p.id != *id);
                    places.extend(next);
                });
            }
        }
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

    /// Keys of rows of the jobs of these groups, in order. Tracked.
    pub fn jobs_of(self, groups: &[Group]) -> Vec<String> {
        self.jobs.with(|jobs| {
            let of = |group: &Group| job::ids_of(jobs.values().map(|job| &**job), *group);
            groups.iter().flat_map(of).map(|id| format!("{JOB}{id}")).collect()
        })
    }

    /// Sessions in a project that were started elsewhere, and whether its bridge can be managed.
    /// Tracked.
    pub fn external_of(self, project: &str) -> (Arc<Vec<WorkingSession>>, bool) {
        self.external.with(|(sessions, adoptable)| {
            (sessions.get(project).cloned().unwrap_or_default(), adoptable.contains(project))
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
        self.places.with(|places| sections::ids_of(&mut places.iter(), section))
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
                sections::ids_of(&mut ours, section)
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
        let own = of.instance_id.as_str();
        self.places.with(|places| {
            let mut others = places.iter().filter(|p| p.project == of.project && p.id != own);
            others.find(|p| p.section == Section::Live).map(|p| p.id.clone())
        })
    }

    /// The live bridge of a project. Tracked.
    pub fn live_of(self, project: &str) -> Option<String> {
        self.places.with(|places| {
            let mut all = places.iter();
            all.find(|p| p.project == project && p.section == Section::Live).map(|p| p.id.clone())
        })
    }

    /// What a reference in an address means. Tracked.
    pub fn find(self, reference: &str) -> link::Found {
        self.places.with(|places| link::find(reference, places.iter().map(|p| p.id.as_str())))
    }

    /// Names of projects for a query. Tracked.
    pub fn list_projects(self, query: &projects::Query) -> Vec<String> {
        self.projects_step.track();
        let rollups = self.rollups.get();
        self.book.with_value(|book| {
            projects::list(book.projects.values().map(|project| &**project), &rollups, query)
        })
    }

    /// How many projects there are. Tracked.
    pub fn count_projects(self) -> usize {
        self.projects_step.track();
        self.book.with_value(|book| book.projects.len())
    }
}

/// Brings the signals of these records up to date.
fn refresh<T: Send + Sync + 'static>(
    signals: Records<T>,
    keys: &[String],
    records: &HashMap<String, Arc<T>>,
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
