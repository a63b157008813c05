//! The records the page shows. Folding the stream gives what the one shared function gives for
//! the same records; a test in `frame` compares.

use crate::model::external::Sessions;
use crate::model::job::Job;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use svc_shared::api::health::Health;
use svc_shared::api::instances::Instance;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::status::BridgeStatus;

/// One change of a record the page shows; a record that is gone is `None`.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A project, by name.
    Project(String, Option<Arc<Project>>),
    /// A bridge, by id.
    Instance(String, Option<Arc<Instance>>),
    /// The sessions inside a bridge, by its id.
    Tracked(String, Option<Arc<Vec<WorkingSession>>>),
    /// A background job, by id.
    Job(String, Option<Arc<Job>>),
    /// Sessions of a project that were started elsewhere, by its name.
    External(String, Option<Arc<Vec<WorkingSession>>>),
    /// Whether a project has a bridge that can be managed, by its name.
    Adoptable(String, bool),
    /// Ids of the checks that a default launch in a project fails; none when it would happen.
    Preflight(String, Vec<String>),
    /// The health report.
    Health(Option<Health>),
    /// A record the page does not show.
    Other,
}

/// Which records are no longer what they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Names.
    pub projects: Vec<String>,
    /// Ids.
    pub instances: Vec<String>,
    /// Ids of instances whose inner sessions changed.
    pub tracked: Vec<String>,
    /// Background jobs.
    pub jobs: bool,
    /// Sessions started elsewhere.
    pub external: bool,
    /// Readiness of projects.
    pub refused: bool,
    /// The health report.
    pub health: bool,
    /// Ids of bridges that settled, well or badly, in a step of the stream.
    pub settled: Vec<String>,
}

/// All records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Book {
    /// By name.
    pub projects: HashMap<String, Arc<Project>>,
    /// By id.
    pub instances: HashMap<String, Arc<Instance>>,
    /// By id of the bridge.
    pub tracked: Sessions,
    /// Background jobs by id.
    pub jobs: HashMap<String, Arc<Job>>,
    /// Sessions started elsewhere, by project.
    pub external: Sessions,
    /// Projects with a bridge that can be managed.
    pub adoptable: HashSet<String>,
    /// Projects of which a default launch would be refused, with the ids of the failing checks.
    pub refused: HashMap<String, Vec<String>>,
    /// Health report.
    pub health: Option<Health>,
}

impl Book {
    /// Applies a step.
    pub fn apply(&mut self, changes: Vec<Change>) -> Changed {
        let mut changed = Changed::default();
        for change in changes {
            match change {
                Change::Project(name, record) => {
                    changed.projects.push(name.clone());
                    put(&mut self.projects, name, record);
                }
                Change::Instance(id, record) => {
                    if record.as_ref().is_some_and(|next| self.settles(&id, next)) {
                        changed.settled.push(id.clone());
                    }
                    // Steps that came close together are applied as one.
                    if !changed.instances.contains(&id) {
                        changed.instances.push(id.clone());
                    }
                    put(&mut self.instances, id, record);
                }
                Change::Tracked(id, record) => {
                    changed.tracked.push(id.clone());
                    put(&mut self.tracked, id, record);
                }
                Change::Job(id, record) => {
                    changed.jobs = true;
                    put(&mut self.jobs, id, record);
                }
                Change::External(name, record) => {
                    changed.external = true;
                    put(&mut self.external, name, record);
                }
                Change::Adoptable(name, is) => {
                    changed.external = true;
                    if is {
                        self.adoptable.insert(name);
                    } else {
                        self.adoptable.remove(&name);
                    }
                }
                Change::Preflight(name, codes) => {
                    changed.refused = true;
                    self.refuse(name, codes);
                }
                Change::Health(record) => {
                    changed.health = true;
                    self.health = record;
                }
                Change::Other => {}
            }
        }
        changed
    }

    /// Takes what a default launch in a project fails.
    pub fn refuse(&mut self, project: String, codes: Vec<String>) {
        if codes.is_empty() {
            self.refused.remove(&project);
        } else {
            self.refused.insert(project, codes);
        }
    }

    /// Whether the bridge leaves a state in which something was awaited of it.
    fn settles(&self, id: &str, next: &Instance) -> bool {
        let Some(before) = self.instances.get(id) else {
            // A launch may fail before its record is first seen here.
            return next.status.is(&BridgeStatus::Error);
        };
        let bad = next.status.is(&BridgeStatus::Crashed) || next.status.is(&BridgeStatus::Error);
        before.status != next.status
            && (before.status.is(&BridgeStatus::Starting) || (before.is_live() && bad))
    }

    /// Takes another state, and says what is different in it.
    pub fn replace(&mut self, next: Self) -> Changed {
        let changed = Changed {
            projects: differing(&self.projects, &next.projects),
            instances: differing(&self.instances, &next.instances),
            tracked: differing(&self.tracked, &next.tracked),
            jobs: self.jobs != next.jobs,
            external: self.external != next.external || self.adoptable != next.adoptable,
            refused: self.refused != next.refused,
            health: self.health != next.health,
            settled: Vec::new(),
        };
        *self = next;
        changed
    }
}

fn put<T>(records: &mut HashMap<String, Arc<T>>, key: String, record: Option<Arc<T>>) {
    match record {
        Some(record) => drop(records.insert(key, record)),
        None => drop(records.remove(&key)),
    }
}

fn differing<T: PartialEq>(
    before: &HashMap<String, Arc<T>>,
    after: &HashMap<String, Arc<T>>,
) -> Vec<String> {
    let changed = after.iter().filter(|(key, now)| before.get(*key) != Some(*now));
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    changed.map(|(key, _)| key).chain(gone).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{bridge, project};

    fn put(row: Instance) -> Change {
        Change::Instance(row.instance_id.to_string(), Some(Arc::new(row)))
    }

    #[test]
    fn a_step_names_only_the_records_it_touched() {
        let mut book = Book::default();
        let row = bridge("api", BridgeStatus::Running);
        let id = row.instance_id.to_string();
        let web = Change::Project("web".into(), Some(Arc::new(project("web"))));
        let changed = book.apply(vec![put(row), web, Change::Other]);
        assert_eq!(changed.instances.first(), Some(&id));
        assert_eq!(changed.projects, ["web".to_owned()]);
        assert!(changed.tracked.is_empty() && !changed.health);
        let gone = book.apply(vec![Change::Instance(id.clone(), None)]);
        assert_eq!(gone.instances, [id]);
        assert!(book.instances.is_empty());
    }

    #[test]
    fn a_snapshot_touches_only_what_differs() {
        let mut book = Book::default();
        let other = bridge("other", BridgeStatus::Running);
        book.apply(vec![put(bridge("same", BridgeStatus::Running)), put(other.clone())]);
        let mut next = book.clone();
        let id = other.instance_id.to_string();
        let again = Instance { generation: 2, ..other };
        next.instances.insert(id.clone(), Arc::new(again));
        let changed = book.replace(next);
        assert_eq!(changed.instances, [id]);
        assert!(changed.projects.is_empty() && !changed.health);
        assert_eq!(book.replace(Book::default()).instances.len(), 2);
    }

    #[test]
    fn what_was_awaited_is_told_once_and_a_stop_is_not() {
        let mut book = Book::default();
        let id = bridge("api", BridgeStatus::Running).instance_id.to_string();
        let mut step = |status| book.apply(vec![put(bridge("api", status))]).settled;
        assert!(step(BridgeStatus::Starting).is_empty());
        assert_eq!(step(BridgeStatus::Running).first(), Some(&id));
        assert!(step(BridgeStatus::Running).is_empty());
        assert_eq!(step(BridgeStatus::Crashed).first(), Some(&id));
        assert!(step(BridgeStatus::Crashed).is_empty());
        assert!(step(BridgeStatus::Starting).is_empty());
        assert_eq!(step(BridgeStatus::Running), [id]);
        assert!(step(BridgeStatus::Stopped).is_empty());
    }
}
