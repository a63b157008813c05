//! The native watcher and the listeners of each directory.

use crate::fallback::{Pace, reports_changes};
use crate::post::{Herald, Post};
use crate::slot::{Changes, Slot};
use notify::event::{ModifyKind, RemoveKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Between two attempts to arm a watch that failed.
const REARM: Duration = Duration::from_secs(2);

/// Between two looks for a missing directory whose making will be reported: what is mounted over its
/// place is not.
const VIGIL: Duration = Duration::from_secs(10);

/// Directories are watched once however many listen. Cheap to clone; ends with the last clone and
/// the last subscription.
#[derive(Debug, Clone)]
pub struct Watcher {
    hub: Arc<Hub>,
}

pub(crate) struct Hub {
    /// `None` where the platform has no watcher or it could not be created: timers only.
    ///
    /// `dirs` is never held while arming: that waits for the watcher's thread, which needs `dirs`.
    native: Mutex<Option<RecommendedWatcher>>,
    pub(crate) dirs: Arc<Mutex<Dirs>>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

pub(crate) type Dirs = HashMap<PathBuf, Vec<Weak<Slot>>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A standing interest in one directory, or in one name in it.
#[derive(Debug)]
pub struct Subscription {
    post: Post,
    /// While the directory is missing: hears of its making, in the nearest directory above.
    herald: Arc<Herald>,
    pace: Pace,
    since: Instant,
    last_attempt: Option<Instant>,
    /// When to look without being told. Outlives a lost future: a listener that waits for other
    /// things too would otherwise put the look off each time one of them comes first.
    look_at: Option<Instant>,
    arming: Arc<AtomicBool>,
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Watcher {
    /// With the platform's watcher; without one (reported in the log) by timer.
    #[must_use]
    pub fn new() -> Self {
        let dirs = Arc::new(Mutex::new(Dirs::new()));
        let heard = Arc::clone(&dirs);
        let native = notify::recommended_watcher(move |event| dispatch(&heard, event));
        let native = native
            .inspect_err(|error| {
                tracing::warn!(
                    error = %error,
                    "cannot watch files on this system, looking at them by timer instead"
                );
            })
            .ok();
        Self::with(native, dirs)
    }

    /// By timer only; the way of systems without file notification.
    #[must_use]
    pub fn by_timer() -> Self {
        Self::with(None, Arc::default())
    }

    fn with(native: Option<RecommendedWatcher>, dirs: Arc<Mutex<Dirs>>) -> Self {
        let native = Mutex::new(native);
        Self { hub: Arc::new(Hub { native, dirs }) }
    }

    /// Listens to the entries of a directory, not to what lies below them.
    ///
    /// The directory may be missing: it is watched as soon as it is there. Does not block.
    #[must_use]
    pub fn dir(&self, dir: &Path, pace: Pace) -> Subscription {
        self.subscribe(dir.to_owned(), None, pace)
    }

    /// Listens to one file by its name, through every replacement and truncation. Does not block.
    #[must_use]
    pub fn file(&self, file: &Path, pace: Pace) -> Subscription {
        let dir = file.parent().unwrap_or(Path::new("/")).to_owned();
        self.subscribe(dir, file.file_name().map(OsString::from), pace)
    }

    fn subscribe(&self, dir: PathBuf, only: Option<OsString>, pace: Pace) -> Subscription {
        Subscription {
            post: Post::take(&self.hub, dir, only),
            herald: Arc::default(),
            pace,
            since: Instant::now(),
            last_attempt: None,
            look_at: None,
            arming: Arc::default(),
        }
    }
}

impl Subscription {
    /// Waits for the next change. The first answer after the watch stands is always
    /// [`Changes::Everything`], so that nothing that happened meanwhile is lost.
    ///
    /// Losing the future loses nothing: what was not handed out stays pending.
    pub async fn changed(&mut self) -> Changes {
        loop {
            if let Some(changes) = self.post.slot.take() {
                self.look_at = None;
                return changes;
            }
            if self.is_native() {
                self.post.slot.woken().await;
                continue;
            }
            let above = self.herald.slot();
            if above.as_ref().is_some_and(|above| above.is_told()) {
                if self.arming.load(Ordering::Acquire) {
                    // That attempt may have looked too early: another one follows it.
                    self.told().await;
                    continue;
                }
                self.last_attempt = None;
                if self.arm() {
                    above.and_then(|above| above.take());
                    self.look_at = None;
                    return Changes::Everything;
                }
            } else if let Some(above) = above.filter(|above| above.is_armed()) {
                let look_at = *self.look_at.get_or_insert_with(|| Instant::now() + VIGIL);
                let told = async {
                    tokio::select! {
                        () = self.told() => {}
                        () = above.woken() => {}
                    }
                };
                if tokio::time::timeout_at(look_at, told).await.is_ok() {
                    continue;
                }
                self.look_at = None;
                self.arm();
                return Changes::Everything;
            }
            self.arm();
            let pause = self.pace.next(self.since);
            let look_at = *self.look_at.get_or_insert_with(|| Instant::now() + pause);
            // A watch that stood and ended: the next attempt is only put off, not given up.
            let is_early =
                self.herald.stood.load(Ordering::Acquire) && !self.arming.load(Ordering::Acquire);
            let attempt_at = self.last_attempt.filter(|_| is_early).map(|at| at + REARM);
            let until = attempt_at.map_or(look_at, |at| at.min(look_at));
            if tokio::time::timeout_at(until, self.told()).await.is_err() {
                if until < look_at {
                    continue;
                }
                self.look_at = None;
                return self.post.slot.take().unwrap_or(Changes::Everything);
            }
        }
    }

    /// Waits for a word about the directory, or for the end of an attempt to watch it.
    async fn told(&self) {
        tokio::select! {
            () = self.post.slot.woken() => {}
            () = self.herald.attempted.notified() => {}
        }
    }

    /// Whether changes are reported by the kernel at the moment, rather than found by timer.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.post.slot.is_armed()
    }

    /// Arms the native watch in a thread that may block on a dead file system; tells whether an
    /// attempt has begun.
    fn arm(&mut self) -> bool {
        let due = self.last_attempt.is_none_or(|at| at.elapsed() >= REARM);
        if !due || self.arming.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.last_attempt = Some(Instant::now());
        self.herald.stood.store(false, Ordering::Release);
        let (hub, dir) = (Arc::clone(&self.post.hub), self.post.dir.clone());
        let (slot, arming) = (Arc::clone(&self.post.slot), Arc::clone(&self.arming));
        let herald = Arc::clone(&self.herald);
        // A plain thread: the runtime would wait for a blocking task of its own at shutdown, and
        // this one may hang as long as a dead mount does.
        let started = std::thread::Builder::new().name("watch-arm".to_owned()).spawn(move || {
            let missing = match hub.arm(&dir, &slot) {
                Ok(has_stood) => {
                    herald.stood.store(has_stood, Ordering::Release);
                    None
                }
                Err(error) => {
                    tracing::debug!(
                        path = %dir.display(), error = %error,
                        "cannot watch a directory yet, looking at it otherwise"
                    );
                    (error.kind() == io::ErrorKind::NotFound).then_some(dir)
                }
            };
            herald.stand(&hub, missing.as_deref());
            arming.store(false, Ordering::Release);
            herald.attempted.notify_one();
        });
        if started.is_err() {
            self.arming.store(false, Ordering::Release);
        }
        started.is_ok()
    }
}

impl Hub {
    /// Leaves the slot unarmed where the directory cannot be watched by nature; tells whether a
    /// watch stood.
    pub(crate) fn arm(&self, dir: &Path, slot: &Slot) -> io::Result<bool> {
        let before = identity(dir)?;
        if !reports_changes(dir) {
            return Ok(false);
        }
        let mut native = lock(&self.native);
        let Some(watcher) = native.as_mut() else {
            return Ok(false);
        };
        if !self.is_armed(dir) {
            // A watch that is left from a directory moved away would report for the wrong one.
            let _ = watcher.unwatch(dir);
        }
        watcher.watch(dir, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
        slot.set_armed(true);
        // The end of a directory that was replaced in between was reported before the line above.
        if identity(dir).ok() != Some(before) {
            slot.set_armed(false);
        }
        Ok(true)
    }

    fn is_armed(&self, dir: &Path) -> bool {
        let dirs = lock(&self.dirs);
        let mut slots = dirs.get(dir).into_iter().flatten();
        slots.any(|slot| slot.upgrade().is_some_and(|slot| slot.is_armed()))
    }

    pub(crate) fn disarm(&self, dir: &Path) {
        let mut native = lock(&self.native);
        if lock(&self.dirs).contains_key(dir) {
            return; // somebody subscribed meanwhile
        }
        if let Some(watcher) = native.as_mut() {
            let _ = watcher.unwatch(dir); // it may have ended with its directory
        }
    }
}

#[cfg(unix)]
pub(crate) fn identity(dir: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(dir).map(|facts| (facts.dev(), facts.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity(dir: &Path) -> io::Result<Option<std::time::SystemTime>> {
    std::fs::metadata(dir).map(|facts| facts.created().ok())
}

/// Runs on the watcher's thread: short, never waits.
fn dispatch(dirs: &Mutex<Dirs>, event: notify::Result<Event>) {
    let event = match event {
        Ok(event) => event,
        Err(error) => {
            tracing::debug!(error = %error, "the file watcher reported an error");
            return all(dirs);
        }
    };
    if event.need_rescan() {
        return all(dirs);
    }
    // Reading wakes nobody, or every reader would wake itself.
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    let gone = matches!(
        event.kind,
        EventKind::Remove(RemoveKind::Folder | RemoveKind::Any | RemoveKind::Other)
            | EventKind::Modify(ModifyKind::Name(RenameMode::From))
    );
    let dirs = lock(dirs);
    for path in &event.paths {
        if let Some(slots) = dirs.get(path) {
            for slot in slots.iter().filter_map(Weak::upgrade) {
                if gone {
                    // The watch followed the old directory; a new one needs a new watch.
                    slot.set_armed(false);
                } else {
                    slot.everything();
                }
            }
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        for slot in dirs.get(parent).into_iter().flatten() {
            if let Some(slot) = slot.upgrade() {
                slot.name(name);
            }
        }
    }
}

fn all(dirs: &Mutex<Dirs>) {
    for slot in lock(dirs).values().flatten().filter_map(Weak::upgrade) {
        slot.everything();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::future::Future;

    /// Far beyond any machine's latency; only reached when the test fails.
    const DEADLINE: Duration = Duration::from_secs(20);

    async fn within<T>(future: impl Future<Output = T>) -> T {
        tokio::time::timeout(DEADLINE, future).await.expect("nothing was reported")
    }

    async fn native(subscription: &mut Subscription) {
        while !subscription.is_native() {
            within(subscription.changed()).await;
        }
        let _ = subscription.post.slot.take();
    }

    async fn names(subscription: &mut Subscription) -> Vec<OsString> {
        match within(subscription.changed()).await {
            Changes::Names(names) => names.into_iter().collect(),
            Changes::Everything => vec!["(everything)".into()],
        }
    }

    #[tokio::test]
    async fn writing_is_reported_by_name_and_reading_is_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("old"), "x").unwrap();
        let watcher = Watcher::new();
        let mut subscription = watcher.dir(dir.path(), Pace::DIRECTORY);
        native(&mut subscription).await;
        fs::read(dir.path().join("old")).unwrap();
        fs::read_dir(dir.path()).unwrap().count();
        fs::write(dir.path().join("new"), "x").unwrap();
        assert_eq!(names(&mut subscription).await, ["new"]);
    }

    #[tokio::test]
    async fn a_listener_of_one_file_sleeps_through_its_neighbours() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = Watcher::new();
        let mut one = watcher.file(&dir.path().join("one"), Pace::VIEW);
        let mut two = watcher.file(&dir.path().join("two"), Pace::VIEW);
        native(&mut one).await;
        native(&mut two).await;
        fs::write(dir.path().join("one"), "x").unwrap();
        fs::write(dir.path().join("two"), "x").unwrap();
        assert_eq!(names(&mut two).await, ["two"]);
        assert_eq!(names(&mut one).await, ["one"]);
        drop(one);
        fs::remove_file(dir.path().join("two")).unwrap();
        assert_eq!(names(&mut two).await, ["two"]);
    }

    #[tokio::test]
    async fn a_directory_that_appears_or_is_replaced_is_watched_again() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sessions");
        let watcher = Watcher::new();
        let mut subscription = watcher.dir(&dir, Pace::every(Duration::from_millis(20)));
        within(subscription.changed()).await;
        assert!(!subscription.is_native());
        fs::create_dir(&dir).unwrap();
        native(&mut subscription).await;

        fs::rename(&dir, root.path().join("aside")).unwrap();
        fs::create_dir(&dir).unwrap();
        while subscription.is_native() {
            within(subscription.changed()).await;
        }
        native(&mut subscription).await;
        fs::write(root.path().join("aside/wrong"), "x").unwrap();
        fs::write(dir.join("right"), "x").unwrap();
        assert_eq!(names(&mut subscription).await, ["right"]);
    }

    #[tokio::test]
    async fn a_missing_directory_is_heard_of_at_once_however_much_of_the_way_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("home/agent/sessions");
        let watcher = Watcher::new();
        // By a timer alone the first look would come after the end of this test.
        let mut subscription = watcher.dir(&dir, Pace::every(DEADLINE * 10));
        within(subscription.changed()).await;
        for part in ["home", "home/agent", "home/agent/sessions"] {
            fs::create_dir(root.path().join(part)).unwrap();
            if part != "home/agent/sessions" {
                within(subscription.changed()).await;
            }
        }
        native(&mut subscription).await;
        fs::write(dir.join("new"), "x").unwrap();
        assert_eq!(names(&mut subscription).await, ["new"]);

        // Away with all of it, and back in one piece.
        fs::rename(root.path().join("home"), root.path().join("aside")).unwrap();
        fs::remove_dir_all(root.path().join("aside")).unwrap();
        while subscription.is_native() {
            within(subscription.changed()).await;
        }
        fs::create_dir_all(&dir).unwrap();
        native(&mut subscription).await;
    }

    #[tokio::test]
    async fn a_missing_directory_wakes_nobody_while_it_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let watcher = Watcher::new();
        let mut missing = watcher.dir(&root.path().join("none"), Pace::every(DEADLINE * 10));
        let mut beside = watcher.dir(root.path(), Pace::DIRECTORY);
        native(&mut beside).await;
        within(missing.changed()).await;
        let (files, mut heard, mut woken) = (100, 0, 0);
        for number in 0..files {
            fs::write(root.path().join(number.to_string()), "x").unwrap();
        }
        while heard < files {
            let news = async {
                tokio::select! {
                    _ = missing.changed() => None,
                    names = names(&mut beside) => Some(names),
                }
            };
            match within(news).await {
                Some(names) => heard += names.len(),
                None => woken += 1,
            }
        }
        // Not once per file; the slow look at a place that may be mounted over is allowed.
        assert!(woken < files / 10, "woken {woken} times");
        drop((missing, beside));
        // A thread that looks for it just now holds its place until it is done.
        let empty = async {
            while !lock(&watcher.hub.dirs).is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        within(empty).await;
    }

    #[tokio::test]
    async fn a_link_into_the_void_is_looked_at_by_timer() {
        let root = tempfile::tempdir().unwrap();
        let (dir, target) = (root.path().join("link"), root.path().join("other/target"));
        std::os::unix::fs::symlink(&target, &dir).unwrap();
        let watcher = Watcher::new();
        let mut subscription = watcher.dir(&dir, Pace::every(Duration::from_millis(20)));
        for _ in 0..3 {
            assert_eq!(within(subscription.changed()).await, Changes::Everything);
        }
        fs::create_dir_all(&target).unwrap();
        native(&mut subscription).await;
    }

    #[tokio::test]
    async fn without_notification_the_timer_says_look_again() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = Watcher::by_timer();
        let mut subscription = watcher.dir(dir.path(), Pace::every(Duration::from_millis(5)));
        assert_eq!(within(subscription.changed()).await, Changes::Everything);
        assert_eq!(within(subscription.changed()).await, Changes::Everything);
        assert!(!subscription.is_native());
    }

    #[tokio::test]
    async fn a_listener_that_keeps_being_interrupted_still_looks_by_timer() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = Watcher::by_timer();
        let mut subscription = watcher.dir(dir.path(), Pace::every(Duration::from_millis(50)));
        let looked = async {
            let interrupted = Duration::from_millis(5);
            while tokio::time::timeout(interrupted, subscription.changed()).await.is_err() {}
        };
        within(looked).await;
    }

    #[tokio::test]
    async fn the_last_listener_ends_the_native_watch() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = Watcher::new();
        let mut subscription = watcher.dir(dir.path(), Pace::DIRECTORY);
        native(&mut subscription).await;
        drop(subscription);
        assert!(lock(&watcher.hub.dirs).is_empty());
    }
}
