//! File locks between processes.
//!
//! The kernel frees a lock when its holder dies. There is one lock per real path (a project, the
//! agent's config file). Within this process a mutex comes first, so that only one task per path
//! competes for the file. Lock files are never removed: if one process removed a file that another
//! has locked, a third could lock a new file under the same name.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

/// How long a request waits for the lock of a project (`503 busy` afterwards).
pub const PROJECT_WAIT: Duration = Duration::from_secs(10);

/// First pause between two attempts.
///
/// A waiting `flock` would block one thread per waiter, and no deadline could end it. Locks are held
/// for milliseconds, so there are few attempts.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_LAST: Duration = Duration::from_millis(100);

/// Unused mutexes are removed when more than this many are known.
const TIDY_ABOVE: usize = 64;

/// The locks whose files are in one directory.
#[derive(Debug, Clone)]
pub struct FileLocks {
    directory: PathBuf,
    in_process: Arc<Mutex<HashMap<PathBuf, Weak<AsyncMutex<()>>>>>,
}

/// A held lock. It can move between threads; dropping it frees the lock.
#[derive(Debug)]
#[must_use = "dropping the value frees the lock"]
pub struct FileLock {
    file: OwnedFd,
    _in_process: OwnedMutexGuard<()>,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("{path} is in use by another operation (waited {waited_seconds} s): try again")]
    Busy {
        /// The path to lock.
        path: PathBuf,
        /// How long was waited.
        waited_seconds: u64,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {file}")]
    File {
        /// The lock file.
        file: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
}

impl FileLocks {
    /// Uses an existing directory for the lock files.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, in_process: Arc::default() }
    }

    /// The lock file of a path.
    #[must_use]
    pub fn file_of(&self, real_path: &Path) -> PathBuf {
        let mut name = hex::encode(Sha256::digest(real_path.as_os_str().as_bytes()));
        name.truncate(32);
        name.push_str(".lock");
        self.directory.join(name)
    }

    /// Takes the lock of a real path (links resolved), waiting at most `wait`.
    ///
    /// # Errors
    /// [`LockError::Busy`] after the wait, [`LockError::File`] at once.
    pub async fn lock(&self, real_path: &Path, wait: Duration) -> Result<FileLock, LockError> {
        let deadline = Instant::now() + wait;
        let busy =
            || LockError::Busy { path: real_path.to_owned(), waited_seconds: wait.as_secs() };
        let file = self.file_of(real_path);
        let in_process =
            timeout_at(deadline, self.mutex(&file).lock_owned()).await.map_err(|_| busy())?;
        let mut pause = RETRY_FIRST;
        loop {
            if let Some(locked) = attempt(&file).await? {
                return Ok(FileLock { file: locked, _in_process: in_process });
            }
            if Instant::now() >= deadline {
                return Err(busy());
            }
            tokio::time::sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = pause.saturating_mul(2).min(RETRY_LAST);
        }
    }

    /// Takes the lock if nobody holds it. `None` if somebody does.
    ///
    /// # Errors
    /// [`LockError::File`].
    pub async fn try_lock(&self, real_path: &Path) -> Result<Option<FileLock>, LockError> {
        let file = self.file_of(real_path);
        let Ok(in_process) = self.mutex(&file).try_lock_owned() else {
            return Ok(None);
        };
        Ok(attempt(&file).await?.map(|locked| FileLock { file: locked, _in_process: in_process }))
    }

    fn mutex(&self, file: &Path) -> Arc<AsyncMutex<()>> {
        // The map is consistent after every statement, so a poisoned mutex is fine.
        let mut known = self.in_process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mutex) = known.get(file).and_then(Weak::upgrade) {
            return mutex;
        }
        if known.len() > TIDY_ABOVE {
            known.retain(|_, mutex| mutex.strong_count() > 0);
        }
        let mutex = Arc::new(AsyncMutex::new(()));
        known.insert(file.to_owned(), Arc::downgrade(&mutex));
        mutex
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        release(&self.file);
    }
}

async fn attempt(file: &Path) -> Result<Option<OwnedFd>, LockError> {
    let path = file.to_owned();
    let attempted = tokio::task::spawn_blocking(move || try_file(&path)).await;
    attempted
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|cause| LockError::File { file: file.to_owned(), cause })
}

/// Tries once to lock a file. `None` if somebody holds the lock.
///
/// Creates the file if it is missing.
pub(crate) fn try_file(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = open(path, flags, Mode::RUSR | Mode::WUSR)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // If somebody replaced the file while it was opened, other processes would lock the new file.
    let ours = fstat(&file)?;
    match stat(path) {
        Ok(named) if (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino) => Ok(Some(file)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Frees a lock explicitly, not only by closing its file.
///
/// A child between fork and exec has a copy of the descriptor for an instant.
pub(crate) fn release(file: impl AsFd) {
    if let Err(error) = flock(file, FlockOperation::Unlock) {
        tracing::debug!(%error, "a lock is freed by closing its file");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_is_named_by_the_hash_of_the_path() {
        let locks = FileLocks::new(PathBuf::from("/state/locks"));
        // The first half of SHA-256("/projects/api").
        assert_eq!(
            locks.file_of(Path::new("/projects/api")),
            Path::new("/state/locks/cc95807093ac9411732c0822e3cb6f0d.lock")
        );
        assert_ne!(
            locks.file_of(Path::new("/projects/api")),
            locks.file_of(Path::new("/projects/api/"))
        );
    }

    #[tokio::test]
    async fn within_a_process_the_second_waits_and_different_paths_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let locks = FileLocks::new(dir.path().to_owned());
        let held = locks.lock(Path::new("/a"), Duration::ZERO).await.unwrap();
        assert!(locks.try_lock(Path::new("/a")).await.unwrap().is_none());
        assert!(locks.try_lock(Path::new("/b")).await.unwrap().is_some());
        let error = locks.lock(Path::new("/a"), Duration::ZERO).await;
        assert!(matches!(error, Err(LockError::Busy { .. })), "{error:?}");
        let waiter = {
            let locks = locks.clone();
            tokio::spawn(async move { locks.lock(Path::new("/a"), PROJECT_WAIT).await.is_ok() })
        };
        drop(held);
        assert!(waiter.await.unwrap());
    }

    #[tokio::test]
    async fn two_holders_of_one_directory_exclude_each_other_through_the_file() {
        // Two values share no mutex, like two processes.
        let dir = tempfile::tempdir().unwrap();
        let one = FileLocks::new(dir.path().to_owned());
        let two = FileLocks::new(dir.path().to_owned());
        let held = one.try_lock(Path::new("/a")).await.unwrap().unwrap();
        assert!(two.try_lock(Path::new("/a")).await.unwrap().is_none());
        drop(held);
        assert!(two.try_lock(Path::new("/a")).await.unwrap().is_some());
        // The file stays, private and empty.
        assert!(one.file_of(Path::new("/a")).exists());
    }

    #[tokio::test]
    async fn a_lock_file_removed_by_hand_is_made_anew_and_excludes_again() {
        let dir = tempfile::tempdir().unwrap();
        let locks = FileLocks::new(dir.path().to_owned());
        let first = locks.try_lock(Path::new("/a")).await.unwrap().unwrap();
        std::fs::remove_file(locks.file_of(Path::new("/a"))).unwrap();
        drop(first);
        let other = FileLocks::new(dir.path().to_owned());
        let _second = other.try_lock(Path::new("/a")).await.unwrap().unwrap();
        assert!(locks.try_lock(Path::new("/a")).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_unusable_directory_is_told_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let locks = FileLocks::new(dir.path().join("missing"));
        let error = locks.lock(Path::new("/a"), PROJECT_WAIT).await;
        assert!(matches!(error, Err(LockError::File { .. })), "{error:?}");
    }
}
