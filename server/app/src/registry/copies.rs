//! Copies of all rows in memory.
//! Whoever decides by them first brings them up to date with what other processes wrote; the
//! database compares revisions all the same.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_domain::announce::end_between;
use svc_domain::bridge::Bridge;
use svc_domain::effect::Lifecycle;
use svc_domain::identity::LaunchId;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_store::{Changes, ForeignWrites, Stored};
use tokio::sync::watch;

/// Most rows of a whole look that are shown at once.
/// Who publishes one change in between does not wait for ten thousand.
const PART: usize = 256;
/// Most rows of a project that are published at once with a start or an end.
/// So both cost the same whatever the length of the history; longer ones follow soon.
const NEIGHBOURS: usize = 64;

/// How current the copies are.
#[derive(Debug, Default)]
struct Seen {
    /// What others had written when the rows were last read.
    foreign: Option<ForeignWrites>,
    /// Counts what makes a read that is under way older than the copies.
    invalidations: u64,
}

/// A reading of the rows that begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    invalidations: u64,
}

/// A readable row and its place in the order of registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub number: i64,
    pub bridge: Bridge,
}

/// Copies of all rows, crash counters, and the launches of this process.
#[derive(Debug)]
pub(crate) struct Copies {
    rows: Mutex<Rows>,
    crashes: Mutex<HashMap<String, u64>>,
    restarts: Mutex<HashMap<String, u64>>,
    seen: Mutex<Seen>,
    changes: watch::Sender<u64>,
}

/// The rows, found by what is asked for, and what of them was not shown yet.
#[derive(Debug, Default)]
struct Rows {
    by_number: BTreeMap<i64, Arc<Stored>>,
    numbers: HashMap<String, i64>,
    of_project: HashMap<String, BTreeSet<i64>>,
    live: BTreeSet<i64>,
    /// Live rows that occupy their project, by project.
    occupying: HashMap<String, u32>,
    /// Rows that changed.
    changed: BTreeSet<i64>,
    /// Projects that were occupied or left.
    /// That decides whether their other rows can be resumed.
    disturbed: HashSet<String>,
    /// Those projects that have too many rows to be shown at once.
    long_histories: HashSet<String>,
    /// Ids of rows that went.
    gone: BTreeSet<String>,
    /// Launches that this process began, by row, while they last.
    own: HashMap<InstanceId, LaunchId>,
    /// Rows that must be shown again because of their surroundings.
    to_recheck: BTreeSet<i64>,
    /// Ends that other processes recorded, by row.
    /// At most one for a row: a later generation replaces an earlier one.
    foreign_ends: BTreeMap<i64, (Bridge, Lifecycle)>,
}

/// Who wrote a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// This process. What follows from the change is done where it is made.
    Us,
    /// Perhaps another one.
    Anybody,
}

/// Rows to be shown, and what decides about them.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub rows: Vec<Arc<Stored>>,
    pub gone: Vec<String>,
    pub occupied: HashSet<ProjectName>,
}

/// Most projects whose crashes are counted one by one.
///
/// Each is a series of the monitoring system for as long as this process runs.
const CRASHED: usize = 1_000;
/// Name of the count of all further projects. No project has it.
const OTHERS: &str = "";

impl Default for Copies {
    fn default() -> Self {
        let changes = watch::Sender::new(0);
        Self {
            rows: Mutex::default(),
            crashes: Mutex::default(),
            restarts: Mutex::default(),
            seen: Mutex::default(),
            changes,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rows {
    fn set(&mut self, stored: Stored, by: By) {
        let number = stored.number;
        let before = self.by_number.get(&number).and_then(|old| old.bridge());
        if by == By::Anybody
            && let (Some(before), Some(after)) = (before, stored.bridge())
            && let Some(event) = end_between(before, after)
        {
            self.foreign_ends.insert(number, (after.clone(), event));
        }
        // First the new one: a row that goes on to occupy its project disturbs nobody.
        self.occupy(&stored, 1);
        self.unlink(number);
        let (id, project) = (stored.id().to_owned(), stored.project().to_owned());
        self.gone.remove(&id);
        self.numbers.insert(id, number);
        self.of_project.entry(project).or_default().insert(number);
        self.changed.insert(number);
        if stored.bridge().is_some_and(Bridge::is_live) {
            self.live.insert(number);
        } else if let Some(ended) = stored.bridge()
            && self.owns(ended)
        {
            // Only this launch is over: the next one of the row may have begun.
            self.own.remove(&ended.id);
        }
        self.by_number.insert(number, Arc::new(stored));
    }

    fn remove(&mut self, number: i64) -> bool {
        let Some(old) = self.unlink(number) else { return false };
        if let Some(bridge) = old.bridge() {
            self.own.remove(&bridge.id);
        }
        true
    }

    fn owns(&self, bridge: &Bridge) -> bool {
        bridge.launch.as_ref().is_some_and(|launch| self.own.get(&bridge.id) == Some(&launch.id))
    }

    fn unlink(&mut self, number: i64) -> Option<Arc<Stored>> {
        let old = self.by_number.remove(&number)?;
        let (id, project) = (old.id(), old.project());
        self.numbers.remove(id);
        if let Some(numbers) = self.of_project.get_mut(project) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.of_project.remove(project);
            }
        }
        self.live.remove(&number);
        self.changed.remove(&number);
        self.occupy(&old, -1);
        self.gone.insert(id.to_owned());
        Some(old)
    }

    /// Counts a row that comes or goes among those that occupy its project.
    fn occupy(&mut self, stored: &Stored, more: i32) {
        if !stored.bridge().is_some_and(|bridge| bridge.is_live() && bridge.occupies_project()) {
            return;
        }
        let project = stored.project();
        let before = self.occupying.get(project).copied().unwrap_or_default();
        let after = before.saturating_add_signed(more);
        match after {
            0 => drop(self.occupying.remove(project)),
            _ => drop(self.occupying.insert(project.to_owned(), after)),
        }
        if (before == 0) != (after == 0) {
            self.disturbed.insert(project.to_owned());
        }
    }

    fn live(&self) -> impl Iterator<Item = &Bridge> {
        let rows = self.live.iter().filter_map(|number| self.by_number.get(number));
        rows.filter_map(|stored| stored.bridge())
    }

    /// These rows with what decides about them.
    fn part(&self, numbers: &BTreeSet<i64>, gone: Vec<String>) -> Part {
        let rows = numbers.iter().filter_map(|number| self.by_number.get(number)).cloned();
        let occupied = self.live().filter(|bridge| bridge.occupies_project());
        Part {
            rows: rows.collect(),
            gone,
            occupied: occupied.map(|bridge| bridge.project.clone()).collect(),
        }
    }
}

impl Copies {
    /// Takes over one row as read.
    /// An older copy than the known one is ignored.
    pub fn learn(&self, stored: Stored) -> Option<Known> {
        self.take_over(stored, By::Anybody)
    }

    /// Takes over one row as this process wrote it.
    pub fn wrote(&self, stored: Stored) -> Option<Known> {
        self.take_over(stored, By::Us)
    }

    /// Ends that other processes recorded since the last call.
    ///
    /// In the order of registration.
    pub fn take_foreign_ends(&self) -> Vec<(Bridge, Lifecycle)> {
        std::mem::take(&mut lock(&self.rows).foreign_ends).into_values().collect()
    }

    fn take_over(&self, stored: Stored, by: By) -> Option<Known> {
        let known =
            stored.bridge().map(|bridge| Known { number: stored.number, bridge: bridge.clone() });
        let mut rows = lock(&self.rows);
        match rows.by_number.get(&stored.number) {
            Some(old) if old.revision >= stored.revision => {}
            Some(_) | None => {
                rows.set(stored, by);
                self.changes.send_modify(|count| *count += 1);
            }
        }
        known
    }

    /// Takes over a complete reading; tells whether anything differs.
    pub fn replace(&self, all: Vec<Stored>) -> bool {
        let mut rows = lock(&self.rows);
        let read: HashSet<i64> = all.iter().map(|stored| stored.number).collect();
        let gone: Vec<i64> =
            rows.by_number.keys().filter(|number| !read.contains(number)).copied().collect();
        let mut differs = !gone.is_empty();
        for number in gone {
            rows.remove(number);
        }
        for stored in all {
            match rows.by_number.get(&stored.number) {
                // A row written by this process while the reading was under way is newer than it.
                Some(old) if old.revision > stored.revision || **old == stored => {}
                Some(_) | None => {
                    rows.set(stored, By::Anybody);
                    differs = true;
                }
            }
        }
        if differs {
            self.changes.send_modify(|count| *count += 1);
        }
        differs
    }

    /// Whether the rows were read since others had last written.
    /// Never, where that is not known.
    pub fn has_seen(&self, foreign: Option<ForeignWrites>) -> bool {
        foreign.is_some() && lock(&self.seen).foreign == foreign
    }

    /// Makes the next caller that needs the rows read them again.
    pub fn invalidate(&self) {
        let mut seen = lock(&self.seen);
        *seen = Seen { foreign: None, invalidations: seen.invalidations + 1 };
    }

    /// Begins a reading. First of all: what happens from now on may be missing in it.
    pub fn begin_reading(&self) -> Reading {
        Reading { invalidations: lock(&self.seen).invalidations }
    }

    /// Ends a read that began when others had written this much.
    /// A read that overlapped a deletion does not count: it may contain the deleted row.
    pub fn end_reading(&self, reading: Reading, foreign: Option<ForeignWrites>) {
        let mut seen = lock(&self.seen);
        if foreign.is_some() && seen.invalidations == reading.invalidations {
            seen.foreign = foreign;
        }
    }

    /// Revisions of the known rows by number.
    pub fn revisions(&self) -> BTreeMap<i64, i64> {
        let rows = lock(&self.rows);
        rows.by_number.iter().map(|(number, stored)| (*number, stored.revision)).collect()
    }

    /// Takes over what differs from [`Copies::revisions`]; tells whether anything did.
    pub fn take(&self, read: Changes) -> bool {
        let mut rows = lock(&self.rows);
        let mut differs = false;
        for number in read.gone {
            differs |= rows.remove(number);
        }
        for stored in read.changed {
            // This process may have written it while the reading was under way.
            if rows.by_number.get(&stored.number).is_none_or(|old| old.revision < stored.revision) {
                rows.set(stored, By::Anybody);
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
        let mut rows = lock(&self.rows);
        if let Some(number) = rows.numbers.get(id.as_str()).copied() {
            rows.remove(number);
        }
        self.invalidate();
        self.changes.send_modify(|count| *count += 1);
    }

    /// Remembers that a launch belongs to this process.
    pub fn own(&self, id: &InstanceId, launch: &LaunchId) {
        lock(&self.rows).own.insert(id.clone(), launch.clone());
    }

    /// Whether this process launched it.
    pub fn owns(&self, bridge: &Bridge) -> bool {
        lock(&self.rows).owns(bridge)
    }

    /// Drops what is remembered of a launch that never came to be.
    pub fn disown(&self, id: &InstanceId) {
        lock(&self.rows).own.remove(id);
    }

    #[cfg(test)]
    pub fn owns_nothing(&self) -> bool {
        lock(&self.rows).own.is_empty()
    }

    /// Counts up whenever any row changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Has the rows of these projects shown again, because of what surrounds them.
    pub fn recheck_projects(&self, projects: impl IntoIterator<Item = ProjectName>) {
        let mut rows = lock(&self.rows);
        rows.disturbed.extend(projects.into_iter().map(|project| project.to_string()));
    }

    /// Has the rows looked at that [`Copies::take_changed`] left out.
    /// Tells whether there are any.
    pub fn recheck_neighbours(&self) -> bool {
        let rows = &mut *lock(&self.rows);
        for project in rows.long_histories.drain() {
            rows.to_recheck.extend(rows.of_project.get(&project).into_iter().flatten());
        }
        !rows.to_recheck.is_empty()
    }

    /// How many rows wait for [`Copies::recheck_neighbours`].
    pub fn waiting_neighbours(&self) -> usize {
        let rows = lock(&self.rows);
        rows.long_histories
            .iter()
            .filter_map(|project| rows.of_project.get(project))
            .map(BTreeSet::len)
            .sum()
    }

    /// Has rows shown again because of what is shown beside them.
    pub fn touch(&self, ids: &[String]) {
        let rows = &mut *lock(&self.rows);
        let numbers = ids.iter().filter_map(|id| rows.numbers.get(id));
        rows.changed.extend(numbers);
    }

    /// Has all rows looked at again, because of what surrounds them.
    pub fn recheck_all(&self) {
        let mut rows = lock(&self.rows);
        rows.to_recheck = rows.by_number.keys().copied().collect();
    }

    /// Whether there are rows to show.
    /// [`Copies::take_changed`] or [`Copies::recheck_neighbours`] has them.
    pub fn have_changed(&self) -> bool {
        let rows = lock(&self.rows);
        !(rows.changed.is_empty()
            && rows.disturbed.is_empty()
            && rows.gone.is_empty()
            && rows.long_histories.is_empty())
    }

    /// Some of the rows that changed, and their neighbours where that matters.
    /// At a start that is all of them.
    pub fn take_changed(&self) -> Option<Part> {
        let rows = &mut *lock(&self.rows);
        let gone: Vec<String> = std::mem::take(&mut rows.gone).into_iter().collect();
        if rows.changed.is_empty() && rows.disturbed.is_empty() && gone.is_empty() {
            return None;
        }
        let mut numbers: BTreeSet<i64> =
            (0..PART).map_while(|_| rows.changed.pop_first()).collect();
        while numbers.len() < PART
            && let Some(project) = rows.disturbed.iter().next().cloned()
        {
            rows.disturbed.remove(&project);
            match rows.of_project.get(&project) {
                Some(all) if all.len() > NEIGHBOURS => drop(rows.long_histories.insert(project)),
                Some(all) => numbers.extend(all),
                None => {}
            }
        }
        rows.to_recheck.retain(|number| !numbers.contains(number));
        Some(rows.part(&numbers, gone))
    }

    /// Some of the rows that wait for a look since [`Copies::recheck_all`].
    pub fn take_rechecked(&self) -> Option<Part> {
        let mut rows = lock(&self.rows);
        let part: BTreeSet<i64> = (0..PART).map_while(|_| rows.to_recheck.pop_first()).collect();
        (!part.is_empty()).then(|| rows.part(&part, Vec::new()))
    }

    /// The projects with a live Server Mode bridge.
    pub fn occupied(&self) -> HashSet<ProjectName> {
        let rows = lock(&self.rows);
        let occupying = rows.live().filter(|bridge| bridge.occupies_project());
        occupying.map(|bridge| bridge.project.clone()).collect()
    }

    /// Copies of all rows in the order of registration.
    pub fn rows(&self) -> Vec<Arc<Stored>> {
        lock(&self.rows).by_number.values().cloned().collect()
    }

    /// Copies of all readable rows in the order of registration.
    pub fn bridges(&self) -> Vec<Bridge> {
        let rows = lock(&self.rows);
        rows.by_number.values().filter_map(|stored| stored.bridge().cloned()).collect()
    }

    /// Copies of the live bridges in the order of registration.
    pub fn live(&self) -> Vec<Bridge> {
        lock(&self.rows).live().cloned().collect()
    }

    /// Copy of the first bridge in the order of registration that fits.
    pub fn find(&self, fits: impl Fn(&Bridge) -> bool) -> Option<Bridge> {
        let rows = lock(&self.rows);
        rows.by_number
            .values()
            .filter_map(|stored| stored.bridge())
            .find(|bridge| fits(bridge))
            .cloned()
    }

    /// Shows every readable row, in the order of registration, without copying it.
    pub fn each(&self, mut see: impl FnMut(&Bridge)) {
        let rows = lock(&self.rows);
        rows.by_number.values().filter_map(|stored| stored.bridge()).for_each(&mut see);
    }

    /// How many bridges fit.
    pub fn count(&self, fits: impl Fn(&Bridge) -> bool) -> usize {
        let rows = lock(&self.rows);
        rows.by_number
            .values()
            .filter_map(|stored| stored.bridge())
            .filter(|bridge| fits(bridge))
            .count()
    }

    /// How many bridges are live.
    pub fn live_count(&self) -> usize {
        lock(&self.rows).live.len()
    }

    /// How many of the live bridges fit.
    pub fn count_live(&self, fits: impl Fn(&Bridge) -> bool) -> usize {
        lock(&self.rows).live().filter(|bridge| fits(bridge)).count()
    }

    /// The live rows with their generations, without copies of the rows.
    pub fn live_generations(&self) -> HashMap<InstanceId, u32> {
        let rows = lock(&self.rows);
        rows.live().map(|bridge| (bridge.id.clone(), bridge.generation)).collect()
    }

    /// Copy of one row with its revision.
    pub fn stored(&self, id: &InstanceId) -> Option<Stored> {
        let rows = lock(&self.rows);
        let number = rows.numbers.get(id.as_str())?;
        rows.by_number.get(number).map(|stored| Stored::clone(stored))
    }

    /// Copy of one readable row.
    pub fn bridge(&self, id: &InstanceId) -> Option<Bridge> {
        let rows = lock(&self.rows);
        let number = rows.numbers.get(id.as_str())?;
        rows.by_number.get(number)?.bridge().cloned()
    }

    /// Counts a crash since the start of this process.
    pub fn count_crash(&self, project: &ProjectName) {
        count(&self.crashes, project);
    }

    /// Counts an automatic restart since the start of this process.
    pub fn count_restart(&self, project: &ProjectName) {
        count(&self.restarts, project);
    }

    /// Crashes since the start of this process, by project.
    pub fn crashes(&self) -> BTreeMap<String, u64> {
        lock(&self.crashes).iter().map(|(project, count)| (project.clone(), *count)).collect()
    }

    /// Automatic restarts since the start of this process, by project.
    pub fn restarts(&self) -> BTreeMap<String, u64> {
        lock(&self.restarts).iter().map(|(project, count)| (project.clone(), *count)).collect()
    }
}

fn count(counts: &Mutex<HashMap<String, u64>>, project: &ProjectName) {
    let mut counts = lock(counts);
    let is_known = counts.contains_key(project.as_str());
    let name = if is_known || counts.len() < CRASHED { project.as_str() } else { OTHERS };
    *counts.entry(name.to_owned()).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Projects come and go, and each that crashed once would be a series for ever.
    #[test]
    fn h81_crashes_of_projects_without_end_are_a_bounded_number_of_series() {
        let copies = Copies::default();
        for round in 0..3_u64 {
            for n in 0..5_000 {
                copies.count_crash(&format!("project-{n}").parse().unwrap());
            }
            let counted = copies.crashes();
            assert_eq!(counted.len(), CRASHED + 1);
            assert_eq!(counted["project-0"], round + 1);
            assert_eq!(counted.values().sum::<u64>(), 5_000 * (round + 1), "none is lost");
        }
    }
}
