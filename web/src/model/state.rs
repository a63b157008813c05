//! The records the page shows, folded by the same function as everywhere else.

use std::collections::BTreeMap;
use svc_shared::api::instances::Instance;
use svc_shared::internal::State;
use svc_shared::status::BridgeStatus;
use svc_shared::stream::{Op, Put, Record, apply};

/// Which records are no longer what they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Names.
    pub projects: Vec<String>,
    /// Ids.
    pub instances: Vec<String>,
    /// Ids of instances whose inner sessions changed.
    pub tracked: Vec<String>,
    /// Health or login.
    pub health: bool,
    /// Ids of bridges that settled, well or badly, in a step of the stream.
    pub settled: Vec<String>,
}

/// All records.
#[derive(Debug, Default)]
pub struct Book {
    state: State,
}

impl Book {
    /// The records.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Applies a step.
    pub fn apply(&mut self, ops: Vec<Op>) -> Changed {
        let mut changed = Changed::default();
        for op in ops {
            let (kind, id) = match &op {
                Op::Put(Put { id, record }) => {
                    if let Record::Instance(next) = record
                        && self.settles(id, next)
                    {
                        changed.settled.push(id.clone());
                    }
                    (record.kind().to_owned(), id.clone())
                }
                Op::Del { k, id } => (k.clone(), id.clone()),
            };
            match kind.as_str() {
                "project" => changed.projects.push(id),
                "instance" => changed.instances.push(id),
                "tracked" => changed.tracked.push(id),
                "health" | "login" => changed.health = true,
                _ => {}
            }
            apply(&mut self.state, op);
        }
        changed
    }

    /// Whether the bridge leaves a state in which something was awaited of it.
    fn settles(&self, id: &str, next: &Instance) -> bool {
        let Some(before) = self.state.instances.get(id) else {
            // A launch may fail before its record is first seen here.
            return next.status.is(&BridgeStatus::Error);
        };
        let bad = next.status.is(&BridgeStatus::Crashed) || next.status.is(&BridgeStatus::Error);
        before.status != next.status
            && (before.status.is(&BridgeStatus::Starting) || (before.is_live() && bad))
    }

    /// Takes another state, and says what is different in it.
    pub fn replace(&mut self, next: State) -> Changed {
        fn differing<V: PartialEq>(
            before: &BTreeMap<String, V>,
            after: &BTreeMap<String, V>,
        ) -> Vec<String> {
            let changed = after.iter().filter(|(key, now)| before.get(*key) != Some(*now));
            let gone = before.keys().filter(|key| !after.contains_key(*key));
            changed.map(|(key, _)| key).chain(gone).cloned().collect()
        }
        let before = &self.state;
        let changed = Changed {
            projects: differing(&before.projects, &next.projects),
            instances: differing(&before.instances, &next.instances),
            tracked: differing(&before.tracked, &next.tracked),
            health: before.health != next.health || before.login != next.login,
            settled: Vec::new(),
        };
        self.state = next;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{bridge, project};

    fn put(row: Instance) -> Op {
        Op::Put(Put { id: row.instance_id.to_string(), record: Record::Instance(Box::new(row)) })
    }

    #[test]
    fn a_step_names_only_the_records_it_touched() {
        let mut book = Book::default();
        let row = bridge("api", BridgeStatus::Running);
        let id = row.instance_id.to_string();
        let changed = book.apply(vec![
            put(row),
            Op::Put(Put { id: "web".into(), record: Record::Project(Box::new(project("web"))) }),
            Op::Del { k: "moon".into(), id: "full".into() },
        ]);
        assert_eq!(changed.instances.first(), Some(&id));
        assert_eq!(changed.projects, ["web".to_owned()]);
        assert!(changed.tracked.is_empty() && !changed.health);
        let gone = book.apply(vec![Op::Del { k: "instance".into(), id: id.clone() }]);
        assert_eq!(gone.instances, [id]);
        assert!(book.state().instances.is_empty());
    }

    #[test]
    fn a_snapshot_touches_only_what_differs() {
        let mut book = Book::default();
        let same = bridge("same", BridgeStatus::Running);
        let other = bridge("other", BridgeStatus::Running);
        book.apply(vec![put(same), put(other.clone())]);
        let mut next = book.state().clone();
        let id = other.instance_id.to_string();
        next.instances.insert(id.clone(), {
            let mut row = other;
            row.generation = 2;
            row
        });
        assert_eq!(book.replace(next).instances, [id]);
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
