//! Reads and follows the logs of launches: pages, and a shared live tail.
//!
//! Everything that leaves this module is redacted. Cursors are offsets over all files of a log,
//! rotated ones included (`files`). Which log belongs to which row is decided elsewhere.

mod fan_out;
mod files;
mod page;
mod reader;
#[cfg(test)]
mod tests;
mod viewer;

pub use page::{Page, Part, Writer};
pub use reader::{Begin, TailItem};
pub use viewer::{Broken, Viewer};

use crate::log_set::LogSet;
use fan_out::{Subscriber, Tailer};
use files::LogFiles;
use reader::{OpenLog, Reader, ReaderHandle};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use svc_domain::redact::Colour;
use svc_watch::Watcher;

/// Most logs that are remembered.
/// For a forgotten log, only cursors older than its last rotation lose their exact meaning.
const REMEMBERED: usize = 4096;

/// What happens to colour sequences in logs that are opened from now on.
#[derive(Clone)]
pub struct Colours(Arc<dyn Fn() -> Colour + Send + Sync>);

impl Colours {
    /// Asked each time a log is opened; one that is open stays as it is.
    pub fn new(now: impl Fn() -> Colour + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    fn now(&self) -> Colour {
        (self.0)()
    }
}

impl fmt::Debug for Colours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now().fmt(f)
    }
}

/// The logs of this process, each opened once however many read it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LogTails {
    colours: Colours,
    logs: Arc<Mutex<HashMap<PathBuf, Arc<Log>>>>,
}

/// The debug log of one launch with its rotated files.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    colours: Colours,
    files: Arc<Mutex<LogFiles>>,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    handle: Weak<ReaderHandle>,
    tailer: Weak<Tailer>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogTails {
    /// None read yet.
    #[must_use]
    pub fn new(colours: Colours) -> Self {
        Self { colours, logs: Arc::default() }
    }

    /// The log of a set, whether or not its files are there. Does not block.
    #[must_use]
    pub fn log(&self, set: &LogSet) -> Arc<Log> {
        let path = set.debug_file();
        let mut logs = lock(&self.logs);
        if let Some(log) = logs.get(&path) {
            return Arc::clone(log);
        }
        if logs.len() >= REMEMBERED {
            logs.retain(|_, log| Arc::strong_count(log) > 1);
        }
        let log = Arc::new(Log::new(path.clone(), self.colours.clone()));
        logs.insert(path, Arc::clone(&log));
        log
    }
}

impl Log {
    fn new(path: PathBuf, colours: Colours) -> Self {
        let files = Arc::new(Mutex::new(LogFiles::new(path.clone())));
        Self { path, colours, files, shared: Mutex::default() }
    }

    /// A viewer of the log from `begin` on. It reads nothing yet.
    #[must_use]
    pub fn view(self: &Arc<Self>, begin: Begin, watcher: &Watcher) -> Viewer {
        Viewer::new(Arc::clone(self), watcher.clone(), begin)
    }

    fn open(&self) -> OpenLog {
        let mut shared = lock(&self.shared);
        if let Some(handle) = shared.handle.upgrade() {
            return OpenLog::from_handle(handle);
        }
        let open = OpenLog::new(Arc::clone(&self.files));
        shared.handle = Arc::downgrade(open.handle());
        open
    }

    /// Subscribes a viewer that has read all of `reader` to the shared tailer.
    /// The first viewer's reader becomes the tailer's. Any other viewer gets its own back when the
    /// tailer is out of reach.
    fn subscribe(&self, reader: Box<Reader>, watcher: &Watcher) -> Result<Subscriber, Box<Reader>> {
        let mut shared = lock(&self.shared);
        if let Some(tailer) = shared.tailer.upgrade().filter(|tailer| tailer.is_alive()) {
            return tailer.join(reader.resting()).ok_or(reader);
        }
        let woken = watcher.file(&self.path, svc_watch::Pace::VIEW);
        let subscriber = Tailer::start(*reader, woken);
        shared.tailer = Arc::downgrade(subscriber.tailer());
        Ok(subscriber)
    }
}
