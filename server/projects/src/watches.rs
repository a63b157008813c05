//! Native watches on projects, as many as are fair, and who is without one.
//!
//! What is worth knowing of a project changes with the names in its directory. A kernel watch costs
//! nothing while nothing happens, but their number per user is limited (as low as 8,192) and shared
//! with editors and builds. So the first [`MAX_WATCHES`] projects get one; for the others the
//! sweep looks at one stamp each.

use crate::catalog::Catalog;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_watch::{Changes, Pace, Subscription, Watcher};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Most people have fewer projects; an eighth of the smallest usual limit.
const MAX_WATCHES: usize = 1024;

/// Arming takes a thread each for a moment.
const ARMING_AT_ONCE: usize = 8;

/// Arming takes microseconds; longer means that it fails or that the file system is slow.
const ARMING_LIMIT: Duration = Duration::from_millis(500);

/// After so many directories that cannot be watched, no further one is tried: the file system does
/// not report changes, or the user is out of watches.
const MAX_DEAF: usize = 16;

/// A watch that stays lost for so many looks of its own timer (2 s each) is given up.
const MAX_LOST: u32 = 2;

/// Names in a project that are facts about it.
const FACTS: [&str; 3] = [".git", "CLAUDE.md", ".claude"];

/// What a watch tells. The channel holds 64; when it is full the watches wait, and what happens
/// meanwhile collapses in their mailboxes.
#[derive(Debug)]
struct Heard {
    name: OsString,
    /// Which watch says it: a name may have had others.
    serial: u64,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// The watch stands; look once more, for what happened before.
    Stands,
    /// A fact may have changed.
    Change,
    /// It cannot be watched.
    Deaf,
}

/// Ends with its tasks when dropped.
#[derive(Debug)]
pub(crate) struct Watches {
    watcher: Watcher,
    arming: Arc<Semaphore>,
    tx: mpsc::Sender<Heard>,
    rx: mpsc::Receiver<Heard>,
    tasks: JoinSet<()>,
    watched: HashMap<OsString, Watched>,
    deaf: HashSet<OsString>,
    serial: u64,
    generation: u64,
}

#[derive(Debug)]
struct Watched {
    serial: u64,
    path: PathBuf,
    stands: bool,
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
            arming: Arc::new(Semaphore::new(ARMING_AT_ONCE)),
            tx,
            rx,
            tasks: JoinSet::new(),
            watched: HashMap::new(),
            deaf: HashSet::new(),
            serial: 0,
            generation: 0,
        }
    }

    /// Whether every change of a project's facts is reported.
    pub(crate) fn is_watched(&self, name: &OsString) -> bool {
        self.watched.get(name).is_some_and(|watched| watched.stands)
    }

    /// Ends the watches of what is gone and starts those of what is new.
    pub(crate) fn follow(&mut self, catalog: &Catalog) {
        if self.generation != catalog.generation() {
            self.generation = catalog.generation();
            self.watched.clear();
            self.deaf.clear();
        }
        let wanted: HashMap<&OsString, &Path> = catalog.watchable().collect();
        self.watched.retain(|name, watched| wanted.get(name) == Some(&watched.path.as_path()));
        self.deaf.retain(|name| wanted.contains_key(name));
        for (name, path) in catalog.watchable() {
            let has_room = self.watched.len() < MAX_WATCHES && self.deaf.len() < MAX_DEAF;
            if has_room && !self.watched.contains_key(name) && !self.deaf.contains(name) {
                let subscription = self.watcher.dir(path, Pace::DIRECTORY);
                let arming = Arc::clone(&self.arming);
                self.serial = self.serial.wrapping_add(1);
                let serial = self.serial;
                let teller = Teller { tx: self.tx.clone(), name: name.clone(), serial };
                let task = self.tasks.spawn(listen(subscription, teller, arming));
                let watched = Watched { serial, path: path.to_owned(), stands: false, task };
                self.watched.insert(name.clone(), watched);
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    /// The next name to look at, if any in what was heard. Losing the future loses nothing.
    pub(crate) async fn heard(&mut self) -> Option<OsString> {
        // The channel is never closed: one sender is our own.
        let heard = self.rx.recv().await?;
        self.take_in(heard)
    }

    /// What else was heard by now.
    pub(crate) fn heard_by_now(&mut self) -> Vec<OsString> {
        let mut names = Vec::new();
        while let Ok(heard) = self.rx.try_recv() {
            names.extend(self.take_in(heard));
        }
        names
    }

    fn take_in(&mut self, heard: Heard) -> Option<OsString> {
        let watched = self.watched.get_mut(&heard.name)?;
        if watched.serial != heard.serial {
            return None;
        }
        match heard.what {
            What::Stands => {
                watched.stands = true;
                Some(heard.name)
            }
            What::Change => Some(heard.name),
            What::Deaf => {
                self.watched.remove(&heard.name);
                self.deaf.insert(heard.name);
                if self.deaf.len() >= MAX_DEAF {
                    self.watched.retain(|_, watched| watched.stands);
                }
                None
            }
        }
    }
}

/// One watch's end of the channel.
struct Teller {
    tx: mpsc::Sender<Heard>,
    name: OsString,
    serial: u64,
}

impl Teller {
    /// False when nobody follows the projects any more.
    async fn tell(&self, what: What) -> bool {
        let heard = Heard { name: self.name.clone(), serial: self.serial, what };
        self.tx.send(heard).await.is_ok()
    }
}

async fn listen(mut changes: Subscription, teller: Teller, arming: Arc<Semaphore>) {
    {
        // Never closed; and without a permit it would only be less fair.
        let _permit = arming.acquire().await.ok();
        let _ = tokio::time::timeout(ARMING_LIMIT, changes.changed()).await;
    }
    if !changes.is_native() {
        teller.tell(What::Deaf).await;
        return;
    }
    if !teller.tell(What::Stands).await {
        return;
    }
    let mut lost = 0;
    loop {
        let is_fact = match changes.changed().await {
            Changes::Everything => true,
            Changes::Names(names) => FACTS.iter().any(|fact| names.iter().any(|n| n == fact)),
        };
        // A directory that was replaced is watched anew; until then its subscription asks for
        // a look by timer.
        lost = if changes.is_native() { 0 } else { lost + 1 };
        if lost > MAX_LOST {
            teller.tell(What::Deaf).await;
            return;
        }
        if is_fact && !teller.tell(What::Change).await {
            return;
        }
    }
}
