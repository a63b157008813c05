//! The registration of a subscriber, and the watch above a missing directory.

use crate::hub::{Hub, identity, lock};
use crate::mailbox::{Mailbox, Only};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A mailbox that is registered for one directory.
///
/// Dropping it removes the registration.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) hub: Arc<Hub>,
    pub(crate) dir: PathBuf,
    pub(crate) mailbox: Arc<Mailbox>,
}

/// The watch above a missing directory.
///
/// It reports when the next part of the path is created. The thread that finds the directory missing sets it.
#[derive(Debug, Default)]
pub(crate) struct ParentWatch {
    watch: Mutex<Option<Watch>>,
    /// Notified at the end of each attempt to watch the directory itself.
    pub(crate) attempted: Notify,
    /// The last attempt succeeded, even if the watch has ended since.
    pub(crate) has_succeeded: AtomicBool,
}

impl ParentWatch {
    pub(crate) fn mailbox(&self) -> Option<Arc<Mailbox>> {
        lock(&self.watch).as_ref().map(|watch| Arc::clone(&watch.mailbox))
    }

    /// Watches the nearest existing parent of a missing directory.
    ///
    /// Watches nothing for `None`. Keeps the current watch if it is already there, because a new watch starts with a wake-up.
    pub(crate) fn ensure(&self, hub: &Arc<Hub>, missing: Option<&Path>) {
        let parent = missing.and_then(nearest_parent);
        let is_there = lock(&self.watch).as_ref().is_some_and(|watch| {
            let is_same = parent.as_ref().is_some_and(|(dir, _)| *dir == watch.dir);
            is_same && watch.mailbox.is_armed()
        });
        if !is_there {
            // Adding and removing a watch wait for other threads: neither happens under the lock.
            let watch = parent.and_then(|(dir, name)| Watch::armed(hub, dir, name));
            let before = std::mem::replace(&mut *lock(&self.watch), watch);
            drop(before);
        }
    }
}

/// The nearest existing parent of a directory, and the name to wait for in it.
///
/// `None` if the creation of the directory would not be reported there.
fn nearest_parent(missing: &Path) -> Option<(PathBuf, OsString)> {
    let mut steps = missing.ancestors().zip(missing.ancestors().skip(1));
    let (child, parent) = steps.find(|(_, parent)| identity(parent).is_ok())?;
    // A dangling link: its target is created in another directory.
    let is_link = child.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
    (!is_link).then_some((parent.to_owned(), child.file_name()?.to_owned()))
}

impl Watch {
    /// Registers a new mailbox for a directory, or for one name in it.
    ///
    /// Nothing is armed yet.
    pub(crate) fn register(hub: &Arc<Hub>, dir: PathBuf, only: Only) -> Self {
        let mailbox = Arc::new(Mailbox::new(only));
        lock(&hub.dirs).entry(dir.clone()).or_default().push(Arc::downgrade(&mailbox));
        Self { hub: Arc::clone(hub), dir, mailbox }
    }

    /// A watch that the kernel reports to, or `None`.
    ///
    /// Its first wake-up says that it is armed: the subscriber then looks once more, because the
    /// directory may have been created just before.
    fn armed(hub: &Arc<Hub>, dir: PathBuf, name: OsString) -> Option<Self> {
        let watch = Self::register(hub, dir, Only::Name(name));
        hub.arm(&watch.dir, &watch.mailbox).ok()?;
        watch.mailbox.is_armed().then_some(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut dirs = lock(&self.hub.dirs);
        let Some(mailboxes) = dirs.get_mut(&self.dir) else {
            return;
        };
        let own = Arc::as_ptr(&self.mailbox);
        mailboxes.retain(|mailbox| mailbox.as_ptr() != own && mailbox.strong_count() > 0);
        let is_last = mailboxes.is_empty();
        if is_last {
            dirs.remove(&self.dir);
        }
        drop(dirs);
        if is_last && self.mailbox.is_armed() {
            let (hub, dir) = (Arc::clone(&self.hub), self.dir.clone());
            // Removing a watch waits for the watcher's thread; a destructor must not wait.
            let _ = std::thread::Builder::new()
                .name("watch-disarm".to_owned())
                .spawn(move || hub.disarm(&dir));
        }
    }
}
