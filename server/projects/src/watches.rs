//! Native watches on projects.
//!
//! The facts about a project change with the names in its directory. A kernel watch costs nothing while
//! nothing happens, but their number per user is limited (as low as 8,192) and shared with editors and
//! builds. So the first [`MAX_WATCHES`] projects get a watch. For the others the sweep reads one stamp
//! each.

use crate::catalog::Catalog;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_watch::{Changes, Pace, Subscription, Watcher};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Most watches: an eighth of the smallest usual limit. Most people need fewer.
const MAX_WATCHES: usize = 1024;

/// Watches that are set up at a time. Each takes a thread for a moment.
const SETUPS_AT_ONCE: usize = 8;

/// Longest time for the setup of one watch.
///
/// It takes microseconds. If it takes longer, it fails or the file system is slow.
const SETUP_LIMIT: Duration = Duration::from_millis(500);

/// Failed watches after which no further watch is tried.
///
/// The file system does not report changes, or the user has no watches left.
const MAX_FAILED: usize = 16;

/// A lost watch is given up after so many polls of its own timer (2 s each).
const MAX_LOST: u32 = 2;

/// The names in a project whose existence is a fact about the project.
const FACTS: [&str; 3] = [".git", "CLAUDE.md", ".claude"];

/// A report of one watch.
///
/// The channel holds 64 reports. When it is full the watches wait, and further changes are merged in
/// their mailboxes.
#[derive(Debug)]
struct Report {
    name: OsString,
    /// The number of the watch: the same name may have had other watches before.
    serial: u64,
    event: WatchEvent,
}

#[derive(Debug, Clone, Copy)]
enum WatchEvent {
    /// The watch works now. The project must be examined once, for earlier changes.
    Ready,
    /// A fact may have changed.
    Change,
    /// The project cannot be watched.
    Failed,
}

/// The watches on projects. Dropping it ends their tasks.
#[derive(Debug)]
pub(crate) struct Watches {
    watcher: Watcher,
    setups: Arc<Semaphore>,
    tx: mpsc::Sender<Report>,
    rx: mpsc::Receiver<Report>,
    tasks: JoinSet<()>,
    watched: HashMap<OsString, Watched>,
    failed: HashSet<OsString>,
    serial: u64,
    generation: u64,
}

#[derive(Debug)]
struct Watched {
    serial: u64,
    path: PathBuf,
    is_ready: bool,
    task: AbortHandle,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watches {
    pub(crate) fn new(watcher: Watcher) -> Self {
        let (tx, rx) = mpsc::channel(64);
        Self {
            watcher,
            setups: Arc::new(Semaphore::new(SETUPS_AT_ONCE)),
            tx,
            rx,
            tasks: JoinSet::new(),
            watched: HashMap::new(),
            failed: HashSet::new(),
            serial: 0,
            generation: 0,
        }
    }

    /// Whether a watch reports every change of a project's facts.
    pub(crate) fn is_watched(&self, name: &OsString) -> bool {
        self.watched.get(name).is_some_and(|watched| watched.is_ready)
    }

    /// Ends the watches of projects that are gone and starts those of new projects.
    pub(crate) fn follow(&mut self, catalog: &Catalog) {
        if self.generation != catalog.generation() {
            self.generation = catalog.generation();
            self.watched.clear();
            self.failed.clear();
        }
        let wanted: HashMap<&OsString, &Path> = catalog.watchable().collect();
        self.watched.retain(|name, watched| wanted.get(name) == Some(&watched.path.as_path()));
        self.failed.retain(|name| wanted.contains_key(name));
        for (name, path) in catalog.watchable() {
            let has_room = self.watched.len() < MAX_WATCHES && self.failed.len() < MAX_FAILED;
            if has_room && !self.watched.contains_key(name) && !self.failed.contains(name) {
                let subscription = self.watcher.dir(path, Pace::DIRECTORY);
                let setups = Arc::clone(&self.setups);
                self.serial = self.serial.wrapping_add(1);
                let serial = self.serial;
                let reporter = Reporter { tx: self.tx.clone(), name: name.clone(), serial };
                let task = self.tasks.spawn(follow(subscription, reporter, setups));
                let watched = Watched { serial, path: path.to_owned(), is_ready: false, task };
                self.watched.insert(name.clone(), watched);
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    /// Waits for the next report. Returns the name to examine, if any.
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn next_change(&mut self) -> Option<OsString> {
        // The channel is never closed: this value has a sender too.
        let report = self.rx.recv().await?;
        self.apply(report)
    }

    /// The names to examine in the reports that have arrived by now.
    pub(crate) fn pending_changes(&mut self) -> Vec<OsString> {
        let mut names = Vec::new();
        while let Ok(report) = self.rx.try_recv() {
            names.extend(self.apply(report));
        }
        names
    }

    fn apply(&mut self, report: Report) -> Option<OsString> {
        let watched = self.watched.get_mut(&report.name)?;
        if watched.serial != report.serial {
            return None;
        }
        match report.event {
            WatchEvent::Ready => {
                watched.is_ready = true;
                Some(report.name)
            }
            WatchEvent::Change => Some(report.name),
            WatchEvent::Failed => {
                self.watched.remove(&report.name);
                self.failed.insert(report.name);
                if self.failed.len() >= MAX_FAILED {
                    self.watched.retain(|_, watched| watched.is_ready);
                }
                None
            }
        }
    }
}

/// Sends the reports of one watch.
struct Reporter {
    tx: mpsc::Sender<Report>,
    name: OsString,
    serial: u64,
}

impl Reporter {
    /// Sends a report. Returns false if nobody receives reports any more.
    async fn send(&self, event: WatchEvent) -> bool {
        let report = Report { name: self.name.clone(), serial: self.serial, event };
        self.tx.send(report).await.is_ok()
    }
}

async fn follow(mut changes: Subscription, reporter: Reporter, setups: Arc<Semaphore>) {
    {
        // Never closed. Without a permit only the limit of setups at a time would be missed.
        let _permit = setups.acquire().await.ok();
        let _ = tokio::time::timeout(SETUP_LIMIT, changes.changed()).await;
    }
    if !changes.is_native() {
        reporter.send(WatchEvent::Failed).await;
        return;
    }
    if !reporter.send(WatchEvent::Ready).await {
        return;
    }
    let mut lost = 0;
    loop {
        let is_fact = match changes.changed().await {
            Changes::Everything => true,
            Changes::Names(names) => FACTS.iter().any(|fact| names.iter().any(|n| n == fact)),
        };
        // A replaced directory is watched anew. Until then its subscription reports by timer.
        lost = if changes.is_native() { 0 } else { lost + 1 };
        if lost > MAX_LOST {
            reporter.send(WatchEvent::Failed).await;
            return;
        }
        if is_fact && !reporter.send(WatchEvent::Change).await {
            return;
        }
    }
}
