//! Writes the configuration file whole or not at all.
//!
//! A copy of the old file is kept, and the audit log has every write.

use crate::auth::sha256_hex;
use crate::failpoint::hit;
use crate::ops::audit::{Actor, AuditLog, Change, Scope, Surface, user};
use crate::tasks::blocking;
use crate::{AppError, Class};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_config::{
    ConfigErrors, EditError, Environment, Found, Loaded, OldName, Origin, Source, Wanted,
    candidate, load, load_candidate, reconciled,
};
use svc_process::files;
use svc_process::locks::{FileLock, FileLocks};
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;

/// Largest file that is read, as everywhere (`configuration` §3).
const LARGEST: u64 = 1024 * 1024;
/// Backups that are kept beside the file.
const BACKUPS: usize = 5;
/// Another save takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// A change of the file.
#[derive(Debug, Clone)]
pub enum FileChange {
    /// These keys have these values.
    Set(Vec<Wanted>),
    /// These old names go.
    Reconcile(Vec<OldName>),
}

/// Part of the product that writes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSurface {
    /// The first list, or a command.
    Config,
    /// The second list.
    Advanced,
    /// `svc config reconcile`.
    Reconcile,
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// Names the file as it is now.
    pub hash: String,
    /// Keys whose text changed; none when the file said all of it already.
    pub changed: Vec<String>,
    /// Keys that a variable decides all the same, and the variable.
    pub overridden: BTreeMap<String, String>,
}

/// The configuration file and the environment that it is read with.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    found: Found,
    environment: Environment,
}

/// The next text of the file, judged.
struct Draft {
    /// The file behind all links.
    path: PathBuf,
    before: String,
    after: String,
    loaded: Loaded,
    changed: Vec<(String, &'static str)>,
}

impl ConfigFile {
    /// The file that a search found.
    #[must_use]
    pub fn new(found: Found, environment: Environment) -> Self {
        Self { found, environment }
    }

    /// Writes a change in the name of the user who runs the command.
    ///
    /// # Errors
    /// As [`ConfigFile::write`].
    pub async fn write_as_command(
        &self,
        change: FileChange,
        surface: ConfigSurface,
        now: Timestamp,
    ) -> Result<Written, AppError> {
        self.write(change, None, surface, &(Actor::Command(user()), now)).await
    }

    /// Writes a change.
    ///
    /// With `hash` only if the file is still the one that the hash names.
    ///
    /// # Errors
    /// The file changed, its next content is not valid, or it cannot be written. It is as it was.
    pub async fn write(
        &self,
        change: FileChange,
        hash: Option<&str>,
        surface: ConfigSurface,
        who: &(Actor, Timestamp),
    ) -> Result<Written, AppError> {
        let (this, wanted) = (self.clone(), change.clone());
        // Where the lock and the audit log are follows from the file.
        let (state_dir, path) = blocking(move || this.state_dir(&wanted)).await??;
        let locks = FileLocks::new(state_dir.join("locks"));
        let _lock = locks.lock(&path, LOCK_WAIT).await.map_err(|error| {
            AppError::busy("somebody else writes the configuration; try again").because(error)
        })?;
        let (this, expected) = (self.clone(), hash.map(str::to_owned));
        let draft = blocking(move || this.draft(&change, expected.as_deref())).await??;
        let overridden = overridden(&draft);
        let changed: Vec<String> = draft.changed.iter().map(|(key, _)| key.clone()).collect();
        let written = Written { hash: hash_of(&draft.after), changed, overridden };
        if draft.after == draft.before {
            return Ok(written);
        }
        let mut keys: Vec<&'static str> = draft.changed.iter().map(|(_, key)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        let entry = Change {
            surface: match surface {
                ConfigSurface::Config => Surface::Config,
                ConfigSurface::Advanced => Surface::ConfigAdvanced,
                ConfigSurface::Reconcile => Surface::ConfigReconcile,
            },
            scope: Scope::Global,
            target: path.to_string_lossy().into_owned(),
            action: "update",
            keys: keys.into_iter().map(Into::into).collect(),
        };
        let at = who.1;
        let work = async move {
            hit("config.before_write").await;
            blocking(move || replace(&draft, at)).await?
        };
        AuditLog::of(&state_dir).record(who, &entry, work).await?;
        Ok(written)
    }

    /// The state directory and the file behind all links.
    /// What a write needs in the directory is made.
    fn state_dir(&self, change: &FileChange) -> Result<(PathBuf, PathBuf), AppError> {
        let state_dir = match load(&self.found, &self.environment) {
            Ok(loaded) => loaded.config.state_dir.clone(),
            // A change may be what makes the file valid.
            Err(_) => self.draft(change, None)?.loaded.config.state_dir.clone(),
        };
        let made = files::private_directory(&state_dir)
            .and_then(|()| files::private_directory(&state_dir.join("locks")));
        made.map_err(|error| {
            AppError::busy("the state directory cannot be used; check its permissions")
                .because(error)
        })?;
        let path = self.found.path.canonicalize().map_err(unreadable)?;
        Ok((state_dir, path))
    }

    fn draft(&self, change: &FileChange, hash: Option<&str>) -> Result<Draft, AppError> {
        let path = self.found.path.canonicalize().map_err(unreadable)?;
        let before = read_text(&path).map_err(unreadable)?;
        if hash.is_some_and(|hash| hash != hash_of(&before)) {
            return Err(stale());
        }
        let after = match change {
            FileChange::Set(wanted) => candidate(&before, wanted),
            FileChange::Reconcile(names) => reconciled(&before, names),
        };
        let after = after.map_err(uneditable)?;
        let loaded =
            load_candidate(&after, &self.found, &self.environment).map_err(|e| invalid(&e))?;
        let changed = changed(&before, change).map_err(uneditable)?;
        Ok(Draft { path, before, after, loaded, changed })
    }
}

/// Keeps others from writing the file of a running service meanwhile.
///
/// None where it has no file or the lock cannot be had.
pub(super) async fn lock(state_dir: &Path, origin: &Origin) -> Option<FileLock> {
    let path = origin.path()?.canonicalize().ok()?;
    FileLocks::new(state_dir.join("locks")).lock(&path, LOCK_WAIT).await.ok()
}

/// The keys whose text a change alters, each with its name in the schema.
fn changed(before: &str, change: &FileChange) -> Result<Vec<(String, &'static str)>, EditError> {
    let mut changed = Vec::new();
    match change {
        FileChange::Set(wanted) => {
            for one in wanted {
                if candidate(before, std::slice::from_ref(one))? != before {
                    changed.push((one.key(), one.leaf().key));
                }
            }
        }
        FileChange::Reconcile(names) => {
            for name in names {
                changed.push((name.key.to_owned(), name.key));
                changed.extend(name.proposal.iter().map(|(key, _)| ((*key).to_owned(), *key)));
            }
        }
    }
    Ok(changed)
}

fn overridden(draft: &Draft) -> BTreeMap<String, String> {
    let of = |key: &str| match draft.loaded.source(key) {
        Some(Source::Env { name }) => Some((key.to_owned(), name.clone())),
        Some(Source::Default | Source::File { .. }) | None => None,
    };
    draft.changed.iter().filter_map(|(key, _)| of(key)).collect()
}

/// Replaces the file, after a copy of it was made beside it.
fn replace(draft: &Draft, at: Timestamp) -> Result<(), AppError> {
    let Draft { path, before, after, loaded, .. } = draft;
    let meta = std::fs::metadata(path).map_err(unwritten)?;
    let mode = match loaded.holds_secret() {
        true => meta.mode() & 0o770,
        false => meta.mode() & 0o777,
    };
    let backup = backup_of(path, at);
    files::create_whole(&backup, before.as_bytes()).map_err(unwritten)?;
    if !loaded.holds_secret() {
        std::fs::set_permissions(&backup, Permissions::from_mode(mode)).map_err(unwritten)?;
    }
    // An editor that knows no lock may have saved meanwhile.
    if read_text(path).map_err(unreadable)? != *before {
        return Err(stale());
    }
    let owner = (meta.uid(), meta.gid());
    files::replace_as(path, after.as_bytes(), mode, owner).map_err(unwritten)?;
    if read_text(path).map_err(unreadable)? != *after {
        files::replace_as(path, before.as_bytes(), mode, owner).map_err(unwritten)?;
        return Err(AppError::busy(
            "what was read back differs from what was written, so the configuration was put back; \
             check the file system",
        ));
    }
    remove_old_backups(path, &backup);
    Ok(())
}

/// A name for a copy that nothing has yet.
fn backup_of(path: &Path, at: Timestamp) -> PathBuf {
    let stamp: String = at.to_string().chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let stamp = stamp.trim_end_matches('Z').replace('.', "_");
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".bak-{stamp}{number:03}Z"));
        PathBuf::from(name)
    };
    (0..1000).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}

/// Keeps `just_made`, whatever the clock says, and the newest others.
///
/// A copy that cannot be removed is no reason to fail.
fn remove_old_backups(path: &Path, just_made: &Path) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return };
    let prefix = format!("{}.bak-", name.to_string_lossy());
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut copies: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.strip_prefix(&prefix).is_some_and(is_stamp))
        .filter(|name| just_made.file_name().is_none_or(|made| made != name.as_str()))
        .collect();
    copies.sort_unstable();
    let surplus = copies.len().saturating_sub(BACKUPS - 1);
    for name in copies.iter().take(surplus) {
        if let Err(error) = std::fs::remove_file(directory.join(name)) {
            tracing::warn!(error = %error, "an old copy of the configuration stays: {name}");
        }
    }
}

/// Whether a name ends as ours do: `YYYYMMDDTHHMMSS_ffffffZ`.
fn is_stamp(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "00000000T000000_000000Z"
}

/// The text of a file within the size limit.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let bytes = svc_process::files::read_plain(path, LARGEST)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Names a text.
pub(super) fn hash_of(text: &str) -> String {
    sha256_hex(text.as_bytes())
}

fn stale() -> AppError {
    let message = "the configuration changed since it was read; read it again and repeat";
    AppError::new(ErrorCode::Stale, Class::Conflict, message)
}

fn unreadable(cause: io::Error) -> AppError {
    let message = "the configuration file cannot be read; check its permissions";
    AppError::new(ErrorCode::ReadOnly, Class::Conflict, message).because(cause)
}

fn unwritten(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AppError {
    AppError::busy(
        "the configuration could not be written; check the space and the permissions of its \
         directory",
    )
    .because(cause)
}

fn uneditable(error: EditError) -> AppError {
    AppError::new(ErrorCode::ReadOnly, Class::Conflict, format!("the configuration: {error}"))
}

/// Every reason in one text, one per line: key and reason, never a secret.
pub(super) fn invalid(errors: &ConfigErrors) -> AppError {
    let lines: Vec<String> = errors
        .problems
        .iter()
        .map(|problem| match &problem.key {
            Some(key) => format!("{key}: {}", problem.reason),
            None => problem.to_string(),
        })
        .collect();
    AppError::invalid(lines.join("\n"))
}
