//! Keeps the list of projects up to date and announces its changes.

use crate::catalog::Catalog;
use crate::examine::Rules;
use crate::project::Projects;
use crate::watches::Watches;
use arc_swap::ArcSwap;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_watch::{Changes, Pace, Subscription, Watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Changes within this time are handled together: a clone makes many of them.
const GATHER: Duration = Duration::from_millis(50);

/// How long the start waits for the watch on the root, to read the root only once.
const ROOT_WATCH_WAIT: Duration = Duration::from_millis(250);

/// Pause between two steps of a long sweep.
///
/// It has four steps, so a change is seen within five seconds (H125).
const LONG_STEP: Duration = Duration::from_secs(1);
const LONG_STEPS: usize = 4;

/// A sweep of at most this many entries takes one step (`agent-cli` §8.1).
const SHORT: usize = 256;
const SHORT_PAUSE: Duration = Duration::from_secs(2);

/// The projects, kept up to date. Ends when dropped.
#[derive(Debug)]
pub struct Discovery {
    view: Arc<View>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct View {
    current: ArcSwap<Projects>,
    version: watch::Sender<u64>,
}

impl View {
    fn publish(&self, projects: Projects) {
        if **self.current.load() != projects {
            self.current.store(Arc::new(projects));
            self.version.send_modify(|version| *version = version.wrapping_add(1));
        }
    }
}

impl Discovery {
    /// Reads all projects, then follows their changes.
    pub async fn start(rules: Rules, watcher: &Watcher) -> Self {
        let mut root = RootWatch::new(&rules.root, watcher.clone());
        let _ = timeout(ROOT_WATCH_WAIT, root.changed()).await;
        let catalog = Arc::new(Mutex::new(Catalog::new(rules)));
        let view = Arc::new(View { current: ArcSwap::default(), version: watch::Sender::new(0) });
        let mut driver = Driver {
            watches: Watches::new(watcher.clone()),
            sweep: Sweep::default(),
            root,
            catalog,
            view: Arc::clone(&view),
        };
        driver.read(Work::List).await;
        let mut tasks = JoinSet::new();
        tasks.spawn(driver.run());
        Self { view, _tasks: tasks }
    }

    /// The projects as known now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Projects> {
        self.view.current.load_full()
    }

    /// A channel whose value changes with the snapshot. Closed when discovery ends.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.view.version.subscribe()
    }
}

/// What to read.
#[derive(Debug)]
enum Work {
    List,
    Names(BTreeSet<OsString>),
    Sweep(Vec<OsString>),
}

struct Driver {
    catalog: Arc<Mutex<Catalog>>,
    root: RootWatch,
    watches: Watches,
    sweep: Sweep,
    view: Arc<View>,
}

/// What woke the driver.
enum Woken {
    Root(Changes),
    Project(Option<OsString>),
    Sweep,
}

impl Driver {
    async fn run(mut self) {
        loop {
            let woken = tokio::select! {
                changes = self.root.changed() => Woken::Root(changes),
                name = self.watches.next_change() => Woken::Project(name),
                () = self.sweep.due() => Woken::Sweep,
            };
            let work = match woken {
                Woken::Sweep => Work::Sweep(self.sweep.step()),
                Woken::Root(Changes::Everything) => Work::List,
                Woken::Root(Changes::Names(names)) => self.gather(names).await,
                Woken::Project(Some(name)) => self.gather(BTreeSet::from([name])).await,
                Woken::Project(None) => Work::Names(BTreeSet::new()),
            };
            self.read(work).await;
        }
    }

    async fn gather(&mut self, mut names: BTreeSet<OsString>) -> Work {
        tokio::time::sleep(GATHER).await;
        names.extend(self.watches.pending_changes());
        match timeout(Duration::ZERO, self.root.changed()).await {
            Ok(Changes::Names(more)) => names.extend(more),
            // The names must still be examined: a listing examines only new names. It comes next.
            Ok(Changes::Everything) => self.root.report_everything_next(),
            Err(_) => {}
        }
        Work::Names(names)
    }

    async fn read(&mut self, work: Work) {
        let (catalog, view) = (Arc::clone(&self.catalog), Arc::clone(&self.view));
        let read = tokio::task::spawn_blocking(move || {
            let mut catalog = catalog.lock().unwrap_or_else(PoisonError::into_inner);
            match work {
                Work::List => catalog.list(),
                Work::Names(names) => catalog.examine_changed(names),
                Work::Sweep(names) => catalog.sweep(names),
            }
            let changed = catalog.take_changed();
            if changed {
                view.publish(catalog.assemble());
            }
            (changed, catalog.root().map(Path::to_owned))
        });
        let (changed, root) = match read.await {
            Ok(read) => read,
            Err(error) if error.is_panic() => {
                tracing::error!(error = %error, "reading the projects failed; going on");
                (true, None)
            }
            // The runtime shuts down, and this task with it.
            Err(_) => return future::pending().await,
        };
        if let Some(root) = root {
            self.root.follow(root);
        }
        let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if changed {
            self.watches.follow(&catalog);
        }
        self.sweep.follow(|| catalog.unwatched(|name| self.watches.is_watched(name)));
    }
}

/// The watch on the root: on its real directory, and on the link to it.
struct RootWatch {
    watcher: Watcher,
    path: PathBuf,
    dir: Subscription,
    /// The watch before `dir`, kept because both may be of the same directory.
    /// The kernel watches a directory once for all of its names: ending this would end that.
    before: Option<Subscription>,
    link: Option<Subscription>,
    everything_next: bool,
}

impl RootWatch {
    fn new(configured: &Path, watcher: Watcher) -> Self {
        let is_link = configured.is_symlink();
        Self {
            dir: watcher.dir(configured, Pace::DIRECTORY),
            before: None,
            link: is_link.then(|| watcher.file(configured, Pace::DIRECTORY)),
            path: configured.to_owned(),
            everything_next: false,
            watcher,
        }
    }

    fn follow(&mut self, real: PathBuf) {
        if self.path != real {
            let dir = self.watcher.dir(&real, Pace::DIRECTORY);
            self.before = Some(std::mem::replace(&mut self.dir, dir));
            self.path = real;
        }
    }

    fn report_everything_next(&mut self) {
        self.everything_next = true;
    }

    async fn changed(&mut self) -> Changes {
        if std::mem::take(&mut self.everything_next) {
            return Changes::Everything;
        }
        let link = async {
            match &mut self.link {
                Some(link) => link.changed().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            changes = self.dir.changed() => changes,
            _ = link => Changes::Everything,
        }
    }
}

/// The slow round over entries that no watch reports. Pauses if there are none.
#[derive(Debug, Default)]
struct Sweep {
    /// Entries left in this round.
    round: VecDeque<OsString>,
    per_step: usize,
    next: Option<Instant>,
}

impl Sweep {
    async fn due(&self) {
        match self.next {
            Some(at) => tokio::time::sleep_until(at).await,
            None => future::pending().await,
        }
    }

    fn step(&mut self) -> Vec<OsString> {
        self.next = None;
        let most = self.per_step.min(self.round.len());
        self.round.drain(..most).collect()
    }

    /// Plans the next step. An entry that is gone meanwhile costs one read.
    fn follow(&mut self, unwatched: impl FnOnce() -> Vec<OsString>) {
        if self.next.is_some() && !self.round.is_empty() {
            return;
        }
        let pause = if self.round.is_empty() {
            self.round = unwatched().into();
            let is_short = self.round.len() <= SHORT;
            self.per_step = if is_short { SHORT } else { self.round.len().div_ceil(LONG_STEPS) };
            if is_short { SHORT_PAUSE } else { LONG_STEP }
        } else {
            LONG_STEP
        };
        self.next = (!self.round.is_empty()).then(|| Instant::now() + pause);
    }
}
