//! The exchange of the program and what of it can be taken back.

use super::{OUTCOME, Order, Outcome, Stage};
use crate::AppError;
use crate::ops::audit::{AuditLog, Change, Scope, Surface, of_command};
use crate::tasks::blocking;
use rustix::fs::{Access, access};
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use svc_process::files;
use svc_shared::Timestamp;
use svc_store::OpenError;

/// One exchange of the program of a service.
#[derive(Debug, Clone)]
pub struct Swap {
    state_dir: PathBuf,
    order: Order,
}

/// The new program is in its place.
#[derive(Debug)]
pub struct Exchanged {
    swap: Swap,
    copy: Option<PathBuf>,
}

impl Swap {
    /// Prepares an exchange in a state directory.
    #[must_use]
    pub fn new(state_dir: &Path, order: Order) -> Self {
        Self { state_dir: state_dir.to_owned(), order }
    }

    /// The new program, before it is in its place.
    #[must_use]
    pub fn staged(&self) -> &Path {
        &self.order.staged
    }

    /// The program to be exchanged.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.order.target
    }

    /// Whether this process may exchange the file for what was meant.
    /// Blocks.
    ///
    /// # Errors
    /// Why it may not, and what to do.
    pub fn check(&self) -> Result<(), String> {
        let Order { staged, sha256, target, .. } = &self.order;
        let directory = target.parent().unwrap_or(target);
        if staged.parent() != Some(directory) {
            return Err(format!("{} is not beside {}", staged.display(), target.display()));
        }
        access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
            format!(
                "the service may not write into {} ({error}); install the program there by hand \
                 and restart the service",
                directory.display()
            )
        })?;
        let bytes =
            std::fs::read(staged).map_err(|error| format!("{}: {error}", staged.display()))?;
        match hex::encode(Sha256::digest(&bytes)) == *sha256 {
            true => Ok(()),
            false => Err(format!("{} changed since it was offered", staged.display())),
        }
    }

    /// Keeps copies of registry and old program, and puts the new one in its place.
    ///
    /// Nobody may write the registry any more.
    ///
    /// # Errors
    /// Nothing was exchanged.
    pub async fn exchange(self) -> Result<Exchanged, String> {
        let copy = svc_store::keep_copy(&self.state_dir).await;
        let copy = copy.map_err(|error| format!("the registry cannot be copied: {error}"))?;
        self.tell(Stage::Trying, None);
        let order = self.order.clone();
        let work = blocking(move || put_in_place(&order)).await;
        let done = work.map_err(|error| io::Error::other(error.message)).and_then(|done| done);
        match done {
            Ok(()) => Ok(Exchanged { swap: self, copy }),
            Err(error) => {
                let text = format!("{} cannot be exchanged: {error}", self.order.target.display());
                self.give_up(&text);
                Err(text)
            }
        }
    }

    /// Tells that nothing was exchanged, and removes the new program.
    pub fn give_up(&self, reason: &str) {
        let _ = std::fs::remove_file(&self.order.staged); // renamed already: fine
        self.tell(Stage::Returned, Some(reason));
    }

    /// Tells whoever asked.
    /// The outcome is for people; a failure to write it stops nothing.
    fn tell(&self, stage: Stage, reason: Option<&str>) {
        let id = self.order.id.clone();
        let outcome = Outcome { id, stage, reason: reason.map(ToOwned::to_owned) };
        let written =
            serde_json::to_vec(&outcome).map_err(|error| error.to_string()).and_then(|text| {
                let path = self.state_dir.join(OUTCOME);
                files::replace(&path, &text).map_err(|error| error.to_string())
            });
        if let Err(error) = written {
            tracing::warn!("the outcome of the upgrade cannot be told: {error}");
        }
    }
}

fn put_in_place(order: &Order) -> io::Result<()> {
    let previous = order.previous();
    match std::fs::remove_file(&previous) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // A second name of the same file; where that is not allowed, a copy of it.
    if std::fs::hard_link(&order.target, &previous).is_err() {
        std::fs::copy(&order.target, &previous)?;
        std::fs::File::open(&previous)?.sync_all()?;
    }
    std::fs::rename(&order.staged, &order.target)?;
    files::sync_directory(order.target.parent().unwrap_or(&order.target))
}

impl Exchanged {
    /// The new program served: it stays. The old one is kept beside it.
    pub fn keep(self) {
        self.swap.tell(Stage::Kept, None);
    }

    /// Puts back the old program, and the registry if it cannot be read any more.
    ///
    /// # Errors
    /// What is not as before, and what to do by hand.
    pub async fn take_back(self, reason: &str, now: Timestamp) -> Result<(), String> {
        let Self { swap, copy } = self;
        let (previous, target) = (swap.order.previous(), swap.order.target.clone());
        let work = blocking(move || {
            std::fs::rename(&previous, &target)?;
            files::sync_directory(target.parent().unwrap_or(&target))
        });
        let done =
            work.await.map_err(|error| io::Error::other(error.message)).and_then(|done| done);
        let program = done.map_err(|error| {
            let (previous, target) = (swap.order.previous(), swap.order.target.clone());
            format!(
                "the old program cannot be put back ({error}): move {} to {}",
                previous.display(),
                target.display()
            )
        });
        let registry = put_back(&swap.state_dir, copy.as_deref()).await;
        swap.tell(Stage::Returned, Some(reason));
        let log = AuditLog::of(&swap.state_dir);
        log.note_failure(&(of_command(), now), &change(&swap.order.target)).await;
        program?;
        registry.map_err(|error| {
            let copy = copy.map(|copy| format!(" from {}", copy.display())).unwrap_or_default();
            format!("the registry cannot be put back{copy}: {error}")
        })
    }
}

async fn put_back(state_dir: &Path, copy: Option<&Path>) -> Result<(), OpenError> {
    if let Some(kept) = svc_store::put_back(state_dir, copy).await? {
        tracing::warn!(
            "the registry is as it was before the upgrade; what the new program made of it is in {}",
            kept.display()
        );
    }
    Ok(())
}

/// The entry of an upgrade in the audit log.
fn change(target: &Path) -> Change {
    Change {
        surface: Surface::Deps,
        scope: Scope::Global,
        target: target.display().to_string(),
        action: "upgrade",
        keys: Vec::new(),
    }
}

/// Writes the entry of an upgrade that is about to begin.
///
/// # Errors
/// It cannot be written: the upgrade must not begin.
pub(super) async fn announce(
    state_dir: &Path,
    order: &Order,
    now: Timestamp,
) -> Result<(), AppError> {
    let mut change = change(&order.target);
    change.keys.push(format!("sha256:{}", order.sha256).into());
    AuditLog::of(state_dir).announce(&(of_command(), now), &change).await
}
