//! What this process knows of the rows: a copy that is never trusted for a decision.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_domain::bridge::Bridge;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_store::{Changes, Content, Stored};
use tokio::sync::watch;

/// A readable row and its place in the order of registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub number: i64,
    pub bridge: Bridge,
}

/// Copies of all rows, and the crash counters.
#[derive(Debug)]
pub(crate) struct Registry {
    rows: Mutex<BTreeMap<i64, Stored>>,
    crashes: Mutex<HashMap<ProjectName, u64>>,
    changes: watch::Sender<u64>,
}

impl Default for Registry {
    fn default() -> Self {
        let changes = watch::Sender::new(0);
        Self { rows: Mutex::default(), crashes: Mutex::default(), changes }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id_of(stored: &Stored) -> &str {
    match &stored.content {
        Content::Bridge(bridge) => bridge.id.as_str(),
        Content::Corrupt { id, .. } => id,
    }
}

impl Registry {
    /// Takes over one row as read or written; an older copy than the known one is ignored.
    pub fn learn(&self, stored: Stored) -> Option<Known> {
        let known =
            stored.bridge().map(|bridge| Known { number: stored.number, bridge: bridge.clone() });
        let mut rows = lock(&self.rows);
        match rows.get(&stored.number) {
            Some(old) if old.revision >= stored.revision => {}
            Some(_) | None => {
                rows.insert(stored.number, stored);
                self.changes.send_modify(|count| *count += 1);
            }
        }
        known
    }

    /// Takes over a complete reading; tells whether anything differs.
    pub fn replace(&self, all: Vec<Stored>) -> bool {
        let fresh: BTreeMap<i64, Stored> =
            all.into_iter().map(|stored| (stored.number, stored)).collect();
        let mut rows = lock(&self.rows);
        // A row written by this process while the reading was under way is newer than the reading.
        let merged: BTreeMap<i64, Stored> = fresh
            .into_iter()
            .map(|(number, stored)| match rows.get(&number) {
                Some(old) if old.revision > stored.revision => (number, old.clone()),
                Some(_) | None => (number, stored),
            })
            .collect();
        let differs = *rows != merged;
        if differs {
            *rows = merged;
            self.changes.send_modify(|count| *count += 1);
        }
        differs
    }

    /// Revisions of the known rows by number.
    pub fn revisions(&self) -> BTreeMap<i64, i64> {
        lock(&self.rows).iter().map(|(number, stored)| (*number, stored.revision)).collect()
    }

    /// Takes over what differs from [`Registry::revisions`]; tells whether anything did.
    pub fn take(&self, read: Changes) -> bool {
        let mut rows = lock(&self.rows);
        let mut differs = false;
        for number in read.gone {
            differs |= rows.remove(&number).is_some();
        }
        for stored in read.changed {
            // This process may have written it while the reading was under way.
            if rows.get(&stored.number).is_none_or(|old| old.revision < stored.revision) {
                rows.insert(stored.number, stored);
                differs = true;
            }
        }
        if differs {
            self.changes.send_modify(|count| *count += 1);
        }
        differs
    }

    /// Drops a row that is gone.
    pub fn forget(&self, id: &InstanceId) {
        lock(&self.rows).retain(|_, stored| id_of(stored) != id.as_str());
        self.changes.send_modify(|count| *count += 1);
    }

    /// Counts up whenever any row changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Copies of all rows in the order of registration.
    pub fn rows(&self) -> Vec<Stored> {
        lock(&self.rows).values().cloned().collect()
    }

    /// Copies of all readable rows in the order of registration.
    pub fn bridges(&self) -> Vec<Bridge> {
        lock(&self.rows).values().filter_map(|stored| stored.bridge().cloned()).collect()
    }

    /// Copy of one readable row.
    pub fn bridge(&self, id: &InstanceId) -> Option<Bridge> {
        lock(&self.rows).values().filter_map(Stored::bridge).find(|b| &b.id == id).cloned()
    }

    /// Counts a crash since the start of this process.
    pub fn count_crash(&self, project: &ProjectName) {
        *lock(&self.crashes).entry(project.clone()).or_default() += 1;
    }

    /// Crashes since the start of this process, by project.
    pub fn crashes(&self) -> BTreeMap<String, u64> {
        let crashes = lock(&self.crashes);
        crashes.iter().map(|(project, count)| (project.to_string(), *count)).collect()
    }
}
