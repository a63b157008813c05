//! Places to listen at: one in a directory, and one above a directory that is missing.

use crate::hub::{Hub, identity, lock};
use crate::slot::Slot;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A slot in its place. Dropped, it is taken away.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) hub: Arc<Hub>,
    pub(crate) dir: PathBuf,
    pub(crate) slot: Arc<Slot>,
}

/// The post above a missing directory; set by the thread that found it missing.
#[derive(Debug, Default)]
pub(crate) struct Herald {
    post: Mutex<Option<Post>>,
    /// Told at the end of each attempt to watch the directory.
    pub(crate) attempted: Notify,
    /// The last attempt succeeded, if only for a moment.
    pub(crate) stood: AtomicBool,
}

impl Herald {
    pub(crate) fn slot(&self) -> Option<Arc<Slot>> {
        lock(&self.post).as_ref().map(|post| Arc::clone(&post.slot))
    }

    /// Takes the post above a missing directory, or none. One that stands where it should stays:
    /// a new one begins with a word of its own.
    pub(crate) fn stand(&self, hub: &Arc<Hub>, missing: Option<&Path>) {
        let place = missing.and_then(above);
        let stands = lock(&self.post).as_ref().is_some_and(|post| {
            let here = place.as_ref().is_some_and(|(dir, _)| *dir == post.dir);
            here && post.slot.is_armed()
        });
        if !stands {
            // Neither taken nor left under the lock: both wait for others.
            let post = place.and_then(|(dir, name)| Post::armed(hub, dir, name));
            let before = std::mem::replace(&mut *lock(&self.post), post);
            drop(before);
        }
    }
}

/// The nearest directory above a missing one, and the next name on the way; `None` where its making
/// would not be heard of there.
fn above(missing: &Path) -> Option<(PathBuf, OsString)> {
    let mut ways = missing.ancestors().zip(missing.ancestors().skip(1));
    let (way, above) = ways.find(|(_, above)| identity(above).is_ok())?;
    // A link into the void: what it leads to is made elsewhere.
    let is_link = way.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
    (!is_link).then_some((above.to_owned(), way.file_name()?.to_owned()))
}

impl Post {
    pub(crate) fn take(hub: &Arc<Hub>, dir: PathBuf, only: Option<OsString>) -> Self {
        let slot = Arc::new(Slot::new(only));
        lock(&hub.dirs).entry(dir.clone()).or_default().push(Arc::downgrade(&slot));
        Self { hub: Arc::clone(hub), dir, slot }
    }

    /// An armed post, or none. Its first word is that it is armed: who waits for it looks once more,
    /// for something may have been made just before.
    fn armed(hub: &Arc<Hub>, dir: PathBuf, name: OsString) -> Option<Self> {
        let post = Self::take(hub, dir, Some(name));
        hub.arm(&post.dir, &post.slot).ok()?;
        post.slot.is_armed().then_some(post)
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let mut dirs = lock(&self.hub.dirs);
        let Some(slots) = dirs.get_mut(&self.dir) else {
            return;
        };
        let own = Arc::as_ptr(&self.slot);
        slots.retain(|slot| slot.as_ptr() != own && slot.strong_count() > 0);
        let last = slots.is_empty();
        if last {
            dirs.remove(&self.dir);
        }
        drop(dirs);
        if last && self.slot.is_armed() {
            let (hub, dir) = (Arc::clone(&self.hub), self.dir.clone());
            // Unwatching waits for the watcher's thread; a destructor must not.
            let _ = std::thread::Builder::new()
                .name("watch-disarm".to_owned())
                .spawn(move || hub.disarm(&dir));
        }
    }
}
