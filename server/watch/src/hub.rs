//! The native file watcher and the subscribers of each directory.

use crate::fallback::{Pace, reports_changes};
use crate::mailbox::{Changes, Mailbox, Only};
use crate::watch::{ParentWatch, Watch};
use notify::event::{ModifyKind, RemoveKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Pause between two attempts to set up a native watch.
const RETRY: Duration = Duration::from_secs(2);

/// Pause between two checks for a missing directory whose parent is watched.
///
/// The kernel reports that the directory is created, but not that something is mounted there.
const MISSING_CHECK: Duration = Duration::from_secs(10);

/// Watches directories for any number of subscribers.
///
/// A directory is watched once, however many subscribe to it. Cheap to clone; ends with the last
/// clone and the last subscription.
#[derive(Debug, Clone)]
pub struct Watcher {
    hub: Arc<Hub>,
}

/// What all subscriptions of one watcher share.
pub(crate) struct Hub {
    /// `None` if the platform has no watcher: then only timers work.
    ///
    /// `dirs` is never locked while a watch is set up: that waits for the watcher's thread, which
    /// needs `dirs`.
    native: Mutex<Option<RecommendedWatcher>>,
    pub(crate) dirs: Arc<Mutex<Dirs>>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// The mailboxes that are registered for each directory.
///
/// In the order of paths: what lies below a directory follows it.
pub(crate) type Dirs = BTreeMap<PathBuf, Vec<Weak<Mailbox>>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A subscription to the changes of one directory, or of one name in it.
#[derive(Debug)]
pub struct Subscription {
    watch: Watch,
    /// Watches the nearest existing parent while the directory is missing.
    parent: Arc<ParentWatch>,
    pace: Pace,
    since: Instant,
    last_attempt: Option<Instant>,
    /// When to report "everything" without a native watch.
    ///
    /// Kept when a future is dropped: a subscriber that waits for other things too would otherwise
    /// postpone the report each time one of those comes first.
    poll_at: Option<Instant>,
    arming: Arc<AtomicBool>,
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Watcher {
    /// Uses the platform's watcher. Without one it uses timers and says so in the log.
    #[must_use]
    pub fn new() -> Self {
        let dirs = Arc::new(Mutex::new(Dirs::new()));
        let reported = Arc::clone(&dirs);
        let native = notify::recommended_watcher(move |event| dispatch(&reported, event));
        let native = native
            .inspect_err(|error| {
                tracing::warn!(
                    error = %error,
                    "cannot watch files on this system, reading them by timer instead"
                );
            })
            .ok();
        Self::with(native, dirs)
    }

    /// Uses timers only, as on a system without file notification.
    #[must_use]
    pub fn by_timer() -> Self {
        Self::with(None, Arc::default())
    }

    fn with(native: Option<RecommendedWatcher>, dirs: Arc<Mutex<Dirs>>) -> Self {
        let native = Mutex::new(native);
        Self { hub: Arc::new(Hub { native, dirs }) }
    }

    /// Subscribes to the entries of a directory, not to what lies below them.
    ///
    /// The directory may be missing: it is watched as soon as it exists. Does not block.
    #[must_use]
    pub fn dir(&self, dir: &Path, pace: Pace) -> Subscription {
        self.subscribe(dir.to_owned(), Only::Any, pace)
    }

    /// Subscribes to the entries of a directory with this extension, which has no dot.
    ///
    /// What happens to others wakes nobody. Without a native watch it is as [`dir`](Self::dir).
    #[must_use]
    pub fn files_of(&self, dir: &Path, extension: &'static str, pace: Pace) -> Subscription {
        self.subscribe(dir.to_owned(), Only::Extension(extension), pace)
    }

    /// Subscribes to one file by its name, through every replacement and truncation.
    ///
    /// Does not block.
    #[must_use]
    pub fn file(&self, file: &Path, pace: Pace) -> Subscription {
        let dir = file.parent().unwrap_or(Path::new("/")).to_owned();
        let only = file.file_name().map_or(Only::Any, |name| Only::Name(name.to_owned()));
        self.subscribe(dir, only, pace)
    }

    fn subscribe(&self, dir: PathBuf, only: Only, pace: Pace) -> Subscription {
        Subscription {
            watch: Watch::register(&self.hub, dir, only),
            parent: Arc::default(),
            pace,
            since: Instant::now(),
            last_attempt: None,
            poll_at: None,
            arming: Arc::default(),
        }
    }
}

impl Subscription {
    /// Waits for the next change.
    ///
    /// The first answer of a new native watch is always [`Changes::Everything`], so that no earlier
    /// change is lost. Dropping the future loses nothing: unread changes stay in the mailbox.
    pub async fn changed(&mut self) -> Changes {
        loop {
            if let Some(changes) = self.watch.mailbox.take() {
                self.poll_at = None;
                return changes;
            }
            if self.is_native() {
                self.watch.mailbox.woken().await;
                continue;
            }
            let above = self.parent.mailbox();
            if above.as_ref().is_some_and(|above| above.has_changes()) {
                if self.arming.load(Ordering::Acquire) {
                    // The running attempt may have looked too early: another attempt follows it.
                    self.woken().await;
                    continue;
                }
                self.last_attempt = None;
                if self.arm() {
                    above.and_then(|above| above.take());
                    self.poll_at = None;
                    return Changes::Everything;
                }
            } else if let Some(above) = above.filter(|above| above.is_armed()) {
                let poll_at = *self.poll_at.get_or_insert_with(|| Instant::now() + MISSING_CHECK);
                let woken = async {
                    tokio::select! {
                        () = self.woken() => {}
                        () = above.woken() => {}
                    }
                };
                if tokio::time::timeout_at(poll_at, woken).await.is_ok() {
                    continue;
                }
                self.poll_at = None;
                self.arm();
                return Changes::Everything;
            }
            self.arm();
            let pause = self.pace.next(self.since);
            let poll_at = *self.poll_at.get_or_insert_with(|| Instant::now() + pause);
            // The watch succeeded and ended: the next attempt is only postponed, not given up.
            let is_early = self.parent.has_succeeded.load(Ordering::Acquire)
                && !self.arming.load(Ordering::Acquire);
            let attempt_at = self.last_attempt.filter(|_| is_early).map(|at| at + RETRY);
            let until = attempt_at.map_or(poll_at, |at| at.min(poll_at));
            if tokio::time::timeout_at(until, self.woken()).await.is_err() {
                if until < poll_at {
                    continue;
                }
                self.poll_at = None;
                return self.watch.mailbox.take().unwrap_or(Changes::Everything);
            }
        }
    }

    /// Forgets what was reported until now.
    ///
    /// For a subscriber of many directories that is about to read all of them.
    pub fn forget(&mut self) {
        self.watch.mailbox.take();
    }

    /// Waits for a change of the directory, or for the end of an attempt to watch it.
    async fn woken(&self) {
        tokio::select! {
            () = self.watch.mailbox.woken() => {}
            () = self.parent.attempted.notified() => {}
        }
    }

    /// Whether the kernel reports changes at the moment. If not, a timer finds them.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.watch.mailbox.is_armed()
    }

    /// Starts an attempt to set up the native watch. Returns whether one was started.
    ///
    /// The attempt runs in a thread, which may block on a file system that does not answer.
    fn arm(&mut self) -> bool {
        let due = self.last_attempt.is_none_or(|at| at.elapsed() >= RETRY);
        if !due || self.arming.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.last_attempt = Some(Instant::now());
        self.parent.has_succeeded.store(false, Ordering::Release);
        let (hub, dir) = (Arc::clone(&self.watch.hub), self.watch.dir.clone());
        let (mailbox, arming) = (Arc::clone(&self.watch.mailbox), Arc::clone(&self.arming));
        let parent = Arc::clone(&self.parent);
        // A plain thread: at shutdown the runtime waits for its own blocking tasks, and this one may
        // hang as long as a mount that does not answer.
        let started = std::thread::Builder::new().name("watch-arm".to_owned()).spawn(move || {
            let missing = match hub.arm(&dir, &mailbox) {
                Ok(has_succeeded) => {
                    parent.has_succeeded.store(has_succeeded, Ordering::Release);
                    None
                }
                Err(error) => {
                    tracing::debug!(
                        path = %dir.display(), error = %error,
                        "cannot watch a directory yet, reading it by timer"
                    );
                    (error.kind() == io::ErrorKind::NotFound).then_some(dir)
                }
            };
            parent.ensure(&hub, missing.as_deref());
            arming.store(false, Ordering::Release);
            parent.attempted.notify_one();
        });
        if started.is_err() {
            self.arming.store(false, Ordering::Release);
        }
        started.is_ok()
    }
}

impl Hub {
    /// Sets up the native watch of a directory. Returns whether the kernel took it.
    ///
    /// The mailbox stays unarmed if the directory is of a kind that cannot be watched.
    pub(crate) fn arm(&self, dir: &Path, mailbox: &Mailbox) -> io::Result<bool> {
        let before = identity(dir)?;
        if !reports_changes(dir) {
            return Ok(false);
        }
        let mut native = lock(&self.native);
        let Some(watcher) = native.as_mut() else {
            return Ok(false);
        };
        if !self.is_armed(dir) {
            // A watch left over from a directory that was moved away would report the wrong one.
            let _ = watcher.unwatch(dir);
        }
        watcher.watch(dir, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
        mailbox.set_armed(true);
        // If the directory was replaced meanwhile, its end was reported before the line above.
        if identity(dir).ok() != Some(before) {
            mailbox.set_armed(false);
        }
        Ok(true)
    }

    fn is_armed(&self, dir: &Path) -> bool {
        let dirs = lock(&self.dirs);
        let mut mailboxes = dirs.get(dir).into_iter().flatten();
        mailboxes.any(|one| one.upgrade().is_some_and(|mailbox| mailbox.is_armed()))
    }

    /// Removes the native watch of a directory that nobody subscribes to any more.
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

/// Puts an event into the mailboxes.
///
/// Runs on the watcher's thread: short, never waits.
fn dispatch(dirs: &Mutex<Dirs>, event: notify::Result<Event>) {
    let event = match event {
        Ok(event) => event,
        Err(error) => {
            tracing::debug!(error = %error, "the file watcher reported an error");
            return report_everything(dirs);
        }
    };
    if event.need_rescan() {
        return report_everything(dirs);
    }
    // Reading wakes nobody: otherwise every reader would wake itself.
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
        if gone {
            // What lies below a directory that was moved away moved with it, and the kernel says
            // nothing of that: its watches go on with the old directories.
            let after = (Bound::Excluded(path.as_path()), Bound::Unbounded);
            let below = dirs.range::<Path, _>(after).take_while(|(dir, _)| dir.starts_with(path));
            for mailbox in below.flat_map(|(_, mailboxes)| mailboxes).filter_map(Weak::upgrade) {
                mailbox.set_armed(false);
            }
        }
        if let Some(mailboxes) = dirs.get(path) {
            for mailbox in mailboxes.iter().filter_map(Weak::upgrade) {
                if gone {
                    // The watch followed the old directory; a new one needs a new watch.
                    mailbox.set_armed(false);
                } else {
                    mailbox.add_everything();
                }
            }
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        for mailbox in dirs.get(parent).into_iter().flatten() {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.add_name(name);
            }
        }
    }
}

fn report_everything(dirs: &Mutex<Dirs>) {
    for mailbox in lock(dirs).values().flatten().filter_map(Weak::upgrade) {
        mailbox.add_everything();
    }
}

#[cfg(test)]
mod tests;
