//! Tells a reader when the files of a checkout have changed.

use crate::AppError;
use crate::projects::changes::{ChangesReader, Checkout};
use futures_util::future::select_all;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_projects::changes::{Changes, Folders};
use svc_watch::{Pace, Subscription, Watcher};
use tokio::time::Instant;

/// How often folders are read on a file system that reports no changes.
const PACE: Pace = Pace::every(Duration::from_secs(5));
/// Several writes of one moment are looked at once.
const QUIET: Duration = Duration::from_millis(400);

/// A reader of one checkout.
pub struct ChangesWatch {
    reader: Arc<ChangesReader>,
    checkout: Checkout,
    watcher: Watcher,
    folders: BTreeMap<PathBuf, Subscription>,
    /// What the reader was told of last.
    told: u64,
    /// Not before this moment the files are looked at; none when nothing woke.
    look_at: Option<Instant>,
    /// Not all folders are watched.
    pub truncated: bool,
}

impl ChangesWatch {
    /// Begins with the files as they are now.
    ///
    /// # Errors
    /// As for the list of changes.
    pub(crate) async fn open(
        reader: Arc<ChangesReader>,
        checkout: Checkout,
        watcher: Watcher,
    ) -> Result<Self, AppError> {
        let folders = BTreeMap::new();
        let mut watch =
            Self { reader, checkout, watcher, folders, told: 0, look_at: None, truncated: false };
        let (told, folders) = watch.look().await?;
        watch.told = told;
        watch.follow(folders);
        Ok(watch)
    }

    /// Waits until something that the list shows has changed.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// The checkout cannot be read any more.
    pub async fn changed(&mut self) -> Result<(), AppError> {
        loop {
            match self.look_at {
                None => {
                    let woken = self.folders.values_mut().map(|folder| Box::pin(folder.changed()));
                    let _ = select_all(woken).await; // the root is always among them
                    self.look_at = Some(Instant::now() + QUIET);
                }
                Some(at) => {
                    tokio::time::sleep_until(at).await;
                    // One look is for all: each of many new folders reports once that it is there.
                    self.folders.values_mut().for_each(Subscription::forget);
                    let (now, folders) = self.look().await?;
                    self.look_at = None;
                    self.follow(folders);
                    if std::mem::replace(&mut self.told, now) != now {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn look(&self) -> Result<(u64, Folders), AppError> {
        let (root, found, folders) = self.reader.watched(&self.checkout).await?;
        let print = crate::tasks::blocking(move || fingerprint(&root, &found)).await?;
        Ok((print, folders))
    }

    fn follow(&mut self, folders: Folders) {
        self.truncated = folders.truncated;
        self.folders.retain(|path, _| folders.paths.contains(path));
        for path in folders.paths {
            let watcher = &self.watcher;
            self.folders.entry(path).or_insert_with_key(|path| watcher.dir(path, PACE));
        }
    }
}

/// A number that differs when the list, or a file of it, differs.
fn fingerprint(root: &Path, found: &Changes) -> u64 {
    let mut hash = DefaultHasher::new();
    found.base.commit.hash(&mut hash);
    for file in &found.files {
        file.raw.hash(&mut hash);
        format!("{:?}", (file.status, file.additions, file.deletions)).hash(&mut hash);
        if let Ok(facts) = root.join(&file.raw).symlink_metadata() {
            (facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec()).hash(&mut hash);
        }
    }
    hash.finish()
}
