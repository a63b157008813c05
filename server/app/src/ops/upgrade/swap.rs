//! The exchange of the program and what of it can be taken back.

use super::{OUTCOME, Order, Outcome, Stage};
use crate::ops::audit::{AuditLog, Change, Scope, Surface, of_command};
use crate::tasks::blocking;
use crate::{AppError, failpoint};
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
                Err(format!("{} cannot be exchanged: {error}", self.order.target.display()))
            }
        }
    }

    /// Tells that nothing was exchanged, and removes the new program.
    pub async fn give_up(&self, reason: &str, now: Timestamp) {
        let _ = std::fs::remove_file(&self.order.staged); // never written: fine
        self.tell(Stage::Returned, Some(reason));
        note_failure(&self.state_dir, &self.order, now).await;
    }

    /// Tells whoever asked.
    /// The outcome is for people; a failure to write it stops nothing.
    fn tell(&self, stage: Stage, reason: Option<&str>) {
        let outcome = Outcome {
            id: self.order.id.clone(),
            stage,
            reason: reason.map(ToOwned::to_owned),
            sha256: Some(self.order.sha256.clone()),
            previous: Some(self.order.previous()),
        };
        outcome.tell(&self.state_dir);
    }
}

impl Outcome {
    fn tell(&self, state_dir: &Path) {
        let written =
            serde_json::to_vec(self).map_err(|error| error.to_string()).and_then(|text| {
                files::replace(&state_dir.join(OUTCOME), &text).map_err(|error| error.to_string())
            });
        if let Err(error) = written {
            tracing::warn!("the outcome of the upgrade cannot be told: {error}");
        }
    }
}

/// Tells what became of an upgrade in which the service was killed.
///
/// For a service that serves by itself: the program that it runs from is the one that stays.
/// Blocks.
pub fn settle(state_dir: &Path, program: &Path) {
    let Some(left) = Outcome::read(state_dir).filter(|told| told.stage == Stage::Trying) else {
        return;
    };
    let bytes = std::fs::read(program).unwrap_or_default();
    let is_new = left.sha256.as_deref() == Some(&hex::encode(Sha256::digest(bytes)));
    let (stage, reason) = match is_new {
        true => (Stage::Kept, "the service was killed while the new program was tried"),
        false => (Stage::Returned, "the service was killed before the program was exchanged"),
    };
    let previous = left.previous.as_deref().filter(|_| is_new).map(Path::display);
    match previous {
        Some(previous) => tracing::warn!(
            "{reason}; the new program serves now; the one before is {previous}, should it be \
             needed"
        ),
        None => tracing::warn!("{reason}; the old program serves; upgrade again"),
    }
    Outcome { stage, reason: Some(reason.to_owned()), ..left }.tell(state_dir);
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
    sync_around(&order.target);
    Ok(())
}

/// Makes a rename durable.
///
/// It has happened all the same where that is impossible.
fn sync_around(program: &Path) {
    if let Err(error) = files::sync_directory(program.parent().unwrap_or(program)) {
        tracing::warn!(
            "after a loss of power the exchange of {} may be undone ({error})",
            program.display()
        );
    }
}

impl Exchanged {
    /// Tells the log that the new program serves.
    pub async fn served(&self) {
        tracing::info!("the new program serves and takes the place of this one");
        failpoint::delay("upgrade.served").await;
    }

    /// The new program served: it stays. The old one is kept beside it.
    pub fn keep(self) {
        self.swap.tell(Stage::Kept, None);
    }

    /// Puts back the registry, if need be, and then the old program.
    ///
    /// The registry is put back if the old program cannot read it any more. Killed in between, the
    /// new program is still there and reads what is there.
    ///
    /// # Errors
    /// What is not as before, and what to do by hand.
    pub async fn take_back(self, reason: &str, now: Timestamp) -> Result<(), String> {
        let Self { swap, copy } = self;
        let registry = put_back(&swap.state_dir, copy.as_deref()).await;
        let (previous, target) = (swap.order.previous(), swap.order.target.clone());
        let work = blocking(move || {
            std::fs::rename(&previous, &target)?;
            sync_around(&target);
            Ok(())
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
        swap.tell(Stage::Returned, Some(reason));
        note_failure(&swap.state_dir, &swap.order, now).await;
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
fn change(order: &Order) -> Change {
    Change {
        surface: Surface::Deps,
        scope: Scope::Global,
        target: order.target.display().to_string(),
        action: "upgrade",
        keys: vec![format!("sha256:{}", order.sha256).into()],
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
    AuditLog::of(state_dir).announce(&(of_command(), now), &change(order)).await
}

/// Writes that an upgrade which was announced did not happen.
pub(super) async fn note_failure(state_dir: &Path, order: &Order, now: Timestamp) {
    AuditLog::of(state_dir).note_failure(&(of_command(), now), &change(order)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(dir: &Path, stage: Stage) -> Outcome {
        let outcome = Outcome {
            id: "one".to_owned(),
            stage,
            reason: None,
            sha256: Some(hex::encode(Sha256::digest("new"))),
            previous: Some(dir.join("svc.previous")),
        };
        outcome.tell(dir);
        outcome
    }

    /// A service was killed before the exchange, or after it.
    #[test]
    fn what_an_upgrade_left_is_settled_by_the_program_that_serves() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("svc");
        for (content, stage) in [("old", Stage::Returned), ("new", Stage::Kept)] {
            std::fs::write(&program, content).unwrap();
            left(dir.path(), Stage::Trying);
            settle(dir.path(), &program);
            let told = Outcome::read(dir.path()).unwrap();
            assert_eq!((told.stage, told.reason.is_some()), (stage, true), "{content}");
        }
        let ended = left(dir.path(), Stage::Kept);
        settle(dir.path(), &program);
        assert_eq!(Outcome::read(dir.path()), Some(ended), "nothing was left");
    }
}
