//! Brings an archive back: read whole, staged beside the target, verified, swapped.
//!
//! Until the swap nothing but the staging directory is written, and a failure removes that.

use super::archives::refuse_archives_in;
use super::error::{BackupError, at, of_archive};
use super::swap::{SwapError, is_free, swap, swap_inside};
use super::{DATABASE, blocking, lock, process_table, refuse_foreign};
use crate::auth::epoch_on_disk;
use crate::ops::audit::{self, AuditLog, Change, Surface};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use svc_archive::{Area, Contents, Facts, Limits, MemberPath, ReadError, Sink, Stop, read};
use svc_process::files;
use svc_process::run_lock::{RUN_LOCK_FILE, RunLock, RunLockError};
use svc_shared::Timestamp;
use tempfile::TempDir;

/// Begin of the name of a staging directory, beside the target or in it.
const STAGING: &str = svc_store::RESTORING;
/// What would change the database when it is opened.
const BESIDE_DATABASE: [&str; 3] = ["svc.db-wal", "svc.db-shm", "svc.db-journal"];
/// Largest configuration that is brought back; the service reads no larger one.
const LARGEST_CONFIG: u64 = 10 * 1024 * 1024;

/// What to bring back, and where to.
#[derive(Debug, Clone)]
pub struct RestoreRequest {
    /// The archive.
    pub archive: PathBuf,
    /// The state directory that is replaced.
    pub state_dir: PathBuf,
    /// Where the configuration goes; without it the configuration stays in the archive.
    pub config_out: Option<PathBuf>,
    /// What is in the way may be replaced.
    pub force: bool,
    /// The time of day.
    pub now: Timestamp,
    /// Tells when to give up.
    pub stop: Stop,
}

/// What a restore would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Always true: nothing was written.
    pub dry_run: bool,
    /// When the archive was made.
    pub created: String,
    /// Files that the state directory would hold.
    pub state_files: usize,
    /// The state directory.
    pub state_dir: PathBuf,
    /// Whether another one would be replaced.
    pub replaces: bool,
    /// Where the configuration would go.
    pub config: Option<PathBuf>,
    /// Schema of the archived database; none without a database.
    pub db_user_version: Option<i64>,
    /// What is worth knowing.
    pub warnings: Vec<String>,
}

/// What was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Files in the state directory that came from the archive.
    pub state_files: usize,
    /// Where the configuration went.
    pub config: Option<PathBuf>,
    /// What is worth knowing.
    pub warnings: Vec<String>,
}

/// Says what a restore would do, after every check that it would make.
///
/// # Errors
/// The restore would fail like this.
pub async fn plan(request: RestoreRequest) -> Result<Plan, BackupError> {
    let (contents, target, temp) = blocking({
        let request = request.clone();
        move || {
            let target = Target::examined(&request)?;
            target.refuse_if_served()?;
            // Only the database is looked into, and nothing is written beside the target.
            let temp = tempfile::tempdir().map_err(|c| at("use", &std::env::temp_dir(), c))?;
            let mut sink =
                Extract { root: temp.path(), only: Some(|name| name.starts_with(DATABASE)) };
            let contents = read_archive(&request, &mut sink)?;
            check_config(&request, &contents)?;
            Ok((contents, target, temp))
        }
    })
    .await?;
    let state = temp.path().join("state");
    let schema = check_database(&request.archive, &state).await?;
    Ok(Plan {
        dry_run: true,
        created: contents.manifest.created.clone(),
        state_files: contents.state_files,
        state_dir: target.path,
        replaces: !target.is_free,
        config: request.config_out,
        db_user_version: schema,
        warnings: remarks(&contents, schema),
    })
}

/// Replaces a state directory by the one of an archive.
///
/// # Errors
/// Nothing was changed, unless the error says where things are.
pub async fn restore(request: RestoreRequest) -> Result<Restored, BackupError> {
    let staged = blocking({
        let request = request.clone();
        move || Staged::of(&request)
    })
    .await?;
    let state = staged.state();
    let schema = check_database(&request.archive, &state).await?;
    let mut warnings = remarks(&staged.contents, schema);
    if !staged.target.is_free {
        carry_withdrawn(&staged.target.path, &state, schema, &mut warnings).await?;
    }
    announce(&request, &state).await?;
    blocking(move || staged.finish(&request, warnings)).await
}

/// What the result does not show.
fn remarks(contents: &Contents, schema: Option<i64>) -> Vec<String> {
    let mut warnings: Vec<String> = contents
        .left_out
        .iter()
        .map(|name| format!("{name:?} was left out: it is no file or directory"))
        .collect();
    if schema.is_none() {
        warnings.push("the archive has no database".to_owned());
    }
    warnings
}

/// The state directory that is to be replaced.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    parent: PathBuf,
    is_free: bool,
}

impl Target {
    fn examined(request: &RestoreRequest) -> Result<Self, BackupError> {
        let refused = |path: &Path, reason: &str| {
            let reason = reason.to_owned();
            BackupError::Target { path: path.to_owned(), reason }
        };
        let named = &request.state_dir;
        let absolute = std::path::absolute(named).map_err(|cause| at("find", named, cause))?;
        // A link, for example to another disk, stays: the directory behind it is replaced.
        let path = absolute.canonicalize().unwrap_or(absolute);
        let (Some(parent), Some(_)) = (path.parent(), path.file_name()) else {
            return Err(refused(named, "cannot be replaced; name a directory of its own"));
        };
        let parent = parent.to_owned();
        match fs::symlink_metadata(&path) {
            Ok(meta) if !meta.is_dir() => {
                return Err(refused(&path, "is no directory; name another one"));
            }
            Ok(meta) => refuse_foreign(&path, &meta)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at("examine", &path, error)),
        }
        let is_free = is_free(&path).map_err(|cause| at("read", &path, cause))?;
        if !is_free && !request.force {
            return Err(BackupError::InTheWay(path));
        }
        if let Some(out) = &request.config_out
            && !request.force
            && fs::symlink_metadata(out).is_ok()
        {
            return Err(BackupError::InTheWay(out.clone()));
        }
        refuse_archives_in(&path, &request.archive, None)?;
        Ok(Self { path, parent, is_free })
    }

    /// A new directory to stage in, and whether it lies in the target.
    ///
    /// Beside the target everything is swapped in one step. Where that cannot be written, or is
    /// another file system, as for a volume of a container, the target itself has to do.
    fn staging(&self) -> Result<(TempDir, bool), BackupError> {
        let make = |place: &Path| {
            let mut builder = tempfile::Builder::new();
            builder.prefix(STAGING);
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            builder.tempdir_in(place)
        };
        let device = |path: &Path| fs::metadata(path).ok().map(|meta| meta.dev());
        let is_there = self.path.is_dir();
        if is_there && device(&self.path) != device(&self.parent) {
            let made = make(&self.path).map_err(|cause| at("write into", &self.path, cause))?;
            return Ok((made, true));
        }
        match make(&self.parent) {
            Ok(made) => Ok((made, false)),
            Err(error) if !is_refusal(&error) => Err(at("write beside", &self.path, error)),
            Err(_) if is_there => {
                let made = make(&self.path).map_err(|cause| at("write into", &self.path, cause))?;
                Ok((made, true))
            }
            Err(_) => Err(BackupError::Target {
                path: self.path.clone(),
                reason: format!(
                    "cannot be made: this user may not write into {}; make it for this user first \
                     (`sudo install -d -m 700 -o USER DIR`), then try again",
                    self.parent.display()
                ),
            }),
        }
    }

    /// Refuses while a service runs here, without taking its lock.
    fn refuse_if_served(&self) -> Result<(), BackupError> {
        let record = RunLock::read(&self.path).map_err(BackupError::Lock)?;
        let Some(record) = record else { return Ok(()) };
        let table = process_table(&self.path)?;
        if record.is_alive(&table) == Some(false) {
            return Ok(());
        }
        let path = self.path.join(RUN_LOCK_FILE);
        Err(BackupError::Lock(RunLockError::Held { path, record: Some(record) }))
    }
}

/// Whether it is not for this user to write there.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn read_archive(request: &RestoreRequest, sink: &mut dyn Sink) -> Result<Contents, BackupError> {
    let path = &request.archive;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Err(BackupError::NoArchive(path.clone())),
        Err(errno) => return Err(at("read", path, errno.into())),
    };
    read(file, &Limits::default(), sink, &request.stop).map_err(|cause| match cause {
        ReadError::Sink { name, cause } => at("write", Path::new(&name), cause),
        cause => BackupError::Refused { path: path.clone(), cause: Box::new(cause) },
    })
}

fn check_config(request: &RestoreRequest, contents: &Contents) -> Result<(), BackupError> {
    if request.config_out.is_some() && contents.config.is_none() {
        return Err(BackupError::Unusable {
            path: request.archive.clone(),
            reason: "it holds no configuration; leave --config-out away".to_owned(),
        });
    }
    Ok(())
}

/// Judges the database of a staged state directory; the schema is none without one.
async fn check_database(archive: &Path, state: &Path) -> Result<Option<i64>, BackupError> {
    let beside = BESIDE_DATABASE.iter().find(|name| state.join(name).symlink_metadata().is_ok());
    if let Some(name) = beside {
        return Err(BackupError::Unusable {
            path: archive.to_owned(),
            reason: format!("it holds state/{name}, which no backup does"),
        });
    }
    let checked = svc_store::check_copy(&state.join(DATABASE)).await;
    checked.map_err(|error| of_archive(archive, error))
}

/// Tokens that were withdrawn since the archive was made stay withdrawn (H17).
async fn carry_withdrawn(
    present: &Path,
    staged: &Path,
    schema: Option<i64>,
    warnings: &mut Vec<String>,
) -> Result<(), BackupError> {
    if schema.is_none() {
        return Ok(());
    }
    match svc_store::withdrawn_tokens(present).await {
        Ok(tokens) => {
            let database = staged.join(DATABASE);
            let carried = svc_store::carry_withdrawn_tokens(&database, &tokens).await;
            carried.map_err(|error| BackupError::Staged(Box::new(error)))
        }
        Err(error) => {
            // Often the reason for a restore.
            tracing::debug!(error = %error, "the present database cannot be read");
            warnings.push(
                "the present database cannot be read, so a token that was withdrawn after the \
                 archive was made is valid again: check `svc api-token list`"
                    .to_owned(),
            );
            Ok(())
        }
    }
}

/// The audit log that comes back says who brought it back.
async fn announce(request: &RestoreRequest, state: &Path) -> Result<(), BackupError> {
    let locks = state.join("locks");
    let made = blocking(move || {
        files::private_directory(&locks).map_err(|error| at("use", &locks, io::Error::other(error)))
    });
    made.await?;
    let name = request.archive.file_name().unwrap_or_default();
    let change = Change {
        surface: Surface::Restore,
        scope: audit::Scope::Global,
        target: name.to_string_lossy().into_owned(),
        action: "restore",
        keys: match request.config_out {
            Some(_) => vec!["config".into(), "state".into()],
            None => vec!["state".into()],
        },
    };
    let who = (audit::of_command(), request.now);
    let announced = AuditLog::of(state).announce(&who, &change).await;
    announced.map_err(|error| at("write the audit log in", state, io::Error::other(error.message)))
}

/// An archive in a directory beside its target, or in it.
struct Staged {
    directory: TempDir,
    is_inside: bool,
    contents: Contents,
    target: Target,
    /// No service starts on what is replaced.
    _lock: Option<RunLock>,
}

impl Staged {
    fn of(request: &RestoreRequest) -> Result<Self, BackupError> {
        let target = Target::examined(request)?;
        let lock = match target.is_free {
            true => None,
            false => Some(lock(&target.path, request.now)?),
        };
        // Read whole before anything is written.
        let contents = {
            let mut nothing = Extract { root: Path::new(""), only: Some(|_| false) };
            read_archive(request, &mut nothing)?
        };
        check_config(request, &contents)?;
        let parent = &target.parent;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(|cause| at("create", parent, cause))?;
        let (directory, is_inside) = target.staging()?;
        let place = directory.path();
        let bytes: u64 = contents.manifest.files.iter().map(|file| file.size).sum();
        let free = files::free_bytes(place).map_err(|cause| at("examine", place, cause))?;
        if free < bytes || !files::is_above_floor(place).unwrap_or(true) {
            return Err(BackupError::Full(parent.clone()));
        }
        let mut sink = Extract { root: directory.path(), only: None };
        // The file may have been exchanged since: what counts is what was staged.
        let contents = read_archive(request, &mut sink)?;
        check_config(request, &contents)?;
        let state = directory.path().join("state");
        files::private_directory(&state).map_err(|e| at("use", &state, io::Error::other(e)))?;
        Ok(Self { directory, is_inside, contents, target, _lock: lock })
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// Puts everything in its place, or nothing.
    fn finish(
        self,
        request: &RestoreRequest,
        mut warnings: Vec<String>,
    ) -> Result<Restored, BackupError> {
        let state = self.state();
        self.raise_epoch(request.now)?;
        let config = self.config(request)?;
        sync_around(&state).map_err(|cause| at("write", &state, cause))?;
        request.stop.check().map_err(|cause| at("replace", &self.target.path, cause))?;
        let Self { directory, is_inside, contents, target, _lock } = self;
        // A backup may have been made there since.
        refuse_archives_in(&target.path, &request.archive, Some(directory.path()))?;
        let aside = directory.path().join("previous");
        let swapped = match is_inside {
            false => swap(&state, &target.path, &aside, target.is_free),
            true => {
                let places = (state.as_path(), target.path.as_path(), aside.as_path());
                // The lock that is held is the one that a service would look at.
                swap_inside(places, target.is_free, RUN_LOCK_FILE, DATABASE)
            }
        };
        let swapped = match swapped {
            Ok(swapped) => swapped,
            Err(error) => return Err(after(error, directory, &target.path)),
        };
        if let Some((path, text)) = &config
            && let Err(error) = write_config(path, text)
        {
            return Err(match swapped.undo() {
                Ok(()) => error,
                Err(SwapError::Stays(cause)) => BackupError::WithoutConfig {
                    target: target.path.clone(),
                    reason: error.to_string(),
                    cause,
                },
                Err(undone) => after(undone, directory, &target.path),
            });
        }
        let _ = files::sync_directory(&target.parent); // complete either way, perhaps not durable
        let left = directory.path().to_owned();
        if let Err(error) = directory.close() {
            warnings.push(format!(
                "what was replaced cannot be removed ({error}); remove {} by hand",
                left.display()
            ));
        }
        let config = config.map(|(path, _)| path);
        Ok(Restored { state_files: contents.state_files, config, warnings })
    }

    /// No cookie from before opens anything, whichever of the two it is from (H17).
    fn raise_epoch(&self, now: Timestamp) -> Result<(), BackupError> {
        let name = "session.epoch";
        let staged = self.state().join(name);
        let before = epoch_on_disk(&self.target.path.join(name), now);
        let next = epoch_on_disk(&staged, now).max(before).saturating_add(1);
        files::replace(&staged, next.to_string().as_bytes())
            .map_err(|error| at("write", &staged, io::Error::other(error)))
    }

    fn config(&self, request: &RestoreRequest) -> Result<Option<(PathBuf, Vec<u8>)>, BackupError> {
        let (Some(out), Some(member)) = (&request.config_out, &self.contents.config) else {
            return Ok(None);
        };
        let staged = self.directory.path().join("config").join(member.to_path());
        let mut text = Vec::new();
        let read =
            File::open(&staged).and_then(|f| f.take(LARGEST_CONFIG + 1).read_to_end(&mut text));
        read.map_err(|cause| at("read", &staged, cause))?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > LARGEST_CONFIG {
            let reason = "its configuration is too large to be one".to_owned();
            return Err(BackupError::Unusable { path: request.archive.clone(), reason });
        }
        Ok(Some((out.clone(), text)))
    }
}

/// The parent is made where it is missing, and never changed where it is there.
fn write_config(path: &Path, text: &[u8]) -> Result<(), BackupError> {
    let absolute = std::path::absolute(path).map_err(|cause| at("find", path, cause))?;
    if let Some(parent) = absolute.parent() {
        fs::create_dir_all(parent).map_err(|cause| at("create", parent, cause))?;
    }
    files::replace(&absolute, text).map_err(|error| at("write", path, io::Error::other(error)))
}

/// What a failed swap means. What is stranded must outlive the staging directory.
fn after(error: SwapError, staging: TempDir, target: &Path) -> BackupError {
    match error {
        SwapError::Nothing(cause) | SwapError::Stays(cause) => at("replace", target, cause),
        SwapError::Stranded(kept, cause) => {
            let _ = staging.keep();
            BackupError::Stranded { target: target.to_owned(), kept, cause }
        }
    }
}

/// Writes members below a fresh directory, private whatever the archive says.
struct Extract<'a> {
    root: &'a Path,
    /// Which names of the state directory, where not everything is.
    only: Option<fn(&str) -> bool>,
}

impl Extract<'_> {
    fn destination(&self, path: &MemberPath) -> PathBuf {
        let area = match path.area() {
            Area::State => "state",
            Area::Config => "config",
        };
        self.root.join(area).join(path.to_path())
    }

    fn is_wanted(&self, path: &MemberPath) -> bool {
        self.only.is_none_or(|only| path.area() == Area::State && only(path.below()))
    }
}

fn private_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

impl Sink for Extract<'_> {
    fn directory(&mut self, path: &MemberPath) -> io::Result<()> {
        match self.is_wanted(path) {
            true => private_directories(&self.destination(path)),
            false => Ok(()),
        }
    }

    fn file(&mut self, path: &MemberPath, facts: Facts, content: &mut dyn Read) -> io::Result<()> {
        if !self.is_wanted(path) {
            return Ok(());
        }
        let to = self.destination(path);
        if let Some(parent) = to.parent() {
            private_directories(parent)?;
        }
        let is_program = path.area() == Area::State && path.below().starts_with("deps/bin/");
        let mode = if is_program { Mode::RWXU } else { Mode::RUSR | Mode::WUSR };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mut file = File::from(rustix::fs::open(&to, flags | OFlags::CLOEXEC, mode)?);
        io::copy(content, &mut file)?;
        // Logs are kept by their age.
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(facts.mtime));
        if let Some(changed) = changed {
            let _ = file.set_modified(changed); // a time that the file system cannot keep
        }
        Ok(())
    }
}

/// Brings everything of the file system of a directory to the disk.
#[cfg(target_os = "linux")]
fn sync_around(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

/// Other systems sync all file systems at once.
#[cfg(not(target_os = "linux"))]
fn sync_around(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()?;
    rustix::fs::sync();
    Ok(())
}
