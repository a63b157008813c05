//! The rows: the database, the copies of this process, and who is told of changes.
//!
//! Every read and every write of a row passes here, so that the copies are current and readers
//! see the row before the caller goes on.

pub(crate) mod copies;

use crate::debounce::Debounce;
use crate::read_model::publish::Publisher;
use crate::tasks::Tasks;
use crate::{AppError, failpoint, nudge};
use copies::{Copies, Known};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;
use svc_store::{Cap, HistoryRow, Inserted, Store, Stored};
use tokio::sync::Notify;

/// From a write to the question who wrote: several writes of a moment need one.
const WHO_WROTE: Duration = Duration::from_millis(1);

/// The database and the copies of its rows.
pub(crate) struct Registry {
    pub store: Store,
    pub copies: Arc<Copies>,
    /// Shows rows to readers; `None` in a command, which has none.
    pub publisher: Option<Arc<Publisher>>,
    /// Wakes the reconciler.
    pub wake: Arc<Notify>,
    /// State directory of a service that is told of writes.
    /// `None` in the service itself.
    pub served: Option<PathBuf>,
    who_wrote: Debounce,
}

impl Registry {
    pub fn new(
        store: Store,
        copies: Arc<Copies>,
        publisher: Option<Arc<Publisher>>,
        served: Option<PathBuf>,
    ) -> Self {
        let (wake, who_wrote) = (Arc::default(), Debounce::default());
        Self { store, copies, publisher, wake, served, who_wrote }
    }

    /// Whether this process is the service: it has readers, a command has none.
    pub fn has_readers(&self) -> bool {
        self.publisher.is_some()
    }

    /// Shows readers the rows that changed.
    pub async fn publish(&self) {
        if let Some(publisher) = &self.publisher {
            publisher.publish().await;
        }
    }

    /// Shows readers everything that depends on the surroundings of the rows.
    pub async fn publish_all(&self) {
        if let Some(publisher) = &self.publisher {
            publisher.publish_all().await;
        }
    }

    /// Takes over one row as this process wrote it, and shows it.
    pub async fn wrote(&self, stored: Stored) -> Option<Known> {
        let known = self.copies.wrote(stored);
        self.publish().await;
        known
    }

    /// Takes over one row as read, and shows it.
    pub async fn learn(&self, stored: Stored) -> Option<Known> {
        let known = self.copies.learn(stored);
        self.publish().await;
        known
    }

    /// One row, fresh from the database.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn fetch(&self, id: &InstanceId) -> Result<Option<Stored>, AppError> {
        let stored = self.store.bridge(id).await?;
        match &stored {
            Some(stored) => drop(self.copies.learn(stored.clone())),
            None => self.copies.forget(id),
        }
        self.publish().await;
        Ok(stored)
    }

    /// The row fresh from the database, if this generation of it is live.
    /// What is asked under the project lock before anything is done to a bridge that was seen
    /// without it.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn live_generation(&self, seen: &Bridge) -> Result<Option<Bridge>, AppError> {
        let stored = self.fetch(&seen.id).await?;
        let current = stored.and_then(|stored| stored.bridge().cloned());
        Ok(current.filter(|now| now.generation == seen.generation && now.is_live()))
    }

    /// Brings the copies of the rows up to date; the live bridges.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn live(&self) -> Result<Vec<Bridge>, AppError> {
        self.catch_up().await?;
        Ok(self.copies.live())
    }

    /// Brings the copies up to date for somebody else than the reconciler.
    ///
    /// Tells whether other processes have written.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn catch_up(&self) -> Result<bool, AppError> {
        let have_written = self.refresh().await?;
        if have_written {
            // The reconciler would not hear of it any more: to the watch it is no news.
            self.wake.notify_one();
        }
        Ok(have_written)
    }

    /// Reads what other processes have written; tells whether they have.
    /// The copies already have what this process wrote.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn refresh(&self) -> Result<bool, AppError> {
        let reading = self.copies.begin_reading();
        // Before the rows are read: the next reading finds what is written meanwhile.
        let foreign = self.store.foreign_writes().await;
        if self.copies.has_seen(foreign) {
            return Ok(false);
        }
        failpoint::delay("rows.known_late").await;
        let known = self.copies.revisions();
        // Thousands of ended rows are not read again because one changed.
        if self.copies.take(self.store.changed_since(&known).await?) {
            self.publish().await;
        }
        self.copies.end_reading(reading, foreign);
        Ok(true)
    }

    /// Inserts a row, shows it, and tells a running service.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn insert(
        &self,
        bridge: &Bridge,
        history: &[HistoryRow],
        cap: Cap,
        now: Timestamp,
    ) -> Result<Inserted, AppError> {
        let (inserted, stored) = self.store.insert_numbered(bridge, history, cap, now).await?;
        if let Some(stored) = stored {
            self.learn(stored).await;
            self.tell_others();
        }
        Ok(inserted)
    }

    /// Deletes a row of this revision; `false` when somebody else was faster.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn delete(&self, id: &InstanceId, revision: i64) -> Result<bool, AppError> {
        let is_deleted = self.store.delete(id, revision).await?;
        if is_deleted {
            self.copies.forget(id);
            self.publish().await;
            self.tell_others();
        }
        Ok(is_deleted)
    }

    /// Tells a running service of the same state directory to read the registry.
    pub fn tell_others(&self) {
        if let Some(state_dir) = &self.served {
            nudge::nudge(state_dir);
        }
    }

    /// Wakes the reconciler soon if it was another process that wrote.
    /// This process knows what it writes itself.
    pub fn wake_after_foreign_write(self: &Arc<Self>, tasks: &Tasks) {
        let this = Arc::clone(self);
        self.who_wrote.request(tasks, WHO_WROTE, move || async move {
            if this.have_others_written().await {
                this.wake.notify_one();
            }
        });
    }

    /// Whether another process has written since the rows were last read, or may have.
    pub async fn have_others_written(&self) -> bool {
        !self.copies.has_seen(self.store.foreign_writes().await)
    }
}
