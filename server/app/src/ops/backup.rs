//! Use-cases: archive the state directory, and bring an archive back.
//!
//! Both need the files themselves, so only commands have them. The archive's format and the safe
//! reading of one are in `svc-archive`.

mod archives;
mod collect;
mod error;
mod restore;
mod swap;

pub use error::BackupError;
pub use restore::{Plan, RestoreRequest, Restored, plan, restore};
pub use svc_archive::Stop;

use crate::ops::status::VERSION;
use collect::{ARCHIVE, Collected, Found, Wanted, collect};
use error::{at, database_in};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use svc_archive::{
    Added, Area, FORMAT, Facts, Finished, HasRoom, Limits, Manifest, MemberPath, SCHEMA_VERSION,
    Source, Writer,
};
use svc_process::files::{is_above_floor, temporary_in};
use svc_process::run_lock::{RunLock, RunRecord};
use svc_process::table::ProcTable;
use svc_shared::Timestamp;

/// The database, in the state directory and below `state/` in an archive.
const DATABASE: &str = "svc.db";
/// Most names that are tried for an archive within one second.
const NAMES: u32 = 1000;

/// What to archive, and where to.
#[derive(Debug, Clone)]
pub struct BackupRequest {
    /// The state directory.
    pub state_dir: PathBuf,
    /// The configuration file, if there is one.
    pub config_file: Option<PathBuf>,
    /// The archive, or the directory for it.
    pub output: Output,
    /// An existing file may be replaced.
    pub force: bool,
    /// Take the logs too.
    pub logs: bool,
    /// Take the installed programs of `deps/` too.
    pub deps: bool,
    /// Hold the lock of a server meanwhile, so that nothing changes.
    pub exclusive: bool,
    /// The time of day.
    pub now: Timestamp,
    /// Tells when to give up.
    pub stop: Stop,
}

/// Where an archive goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// This file.
    File(PathBuf),
    /// A file of a generated name in this directory.
    Directory(PathBuf),
}

/// An archive that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// The archive.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Files in it, the manifest not counted.
    pub files: usize,
    /// When it was made.
    pub created: Timestamp,
    /// What is not in it, or not as it should be.
    pub warnings: Vec<String>,
}

impl Output {
    /// What the `-o` of a command names: a directory if it is one or ends with a slash.
    #[must_use]
    pub fn named(path: &Path) -> Self {
        let ends_with_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if ends_with_slash || path.is_dir() {
            Self::Directory(path.to_owned())
        } else {
            Self::File(path.to_owned())
        }
    }

    fn directory(&self) -> &Path {
        match self {
            Self::Directory(path) => path,
            Self::File(path) => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                Some(_) | None => Path::new("."),
            },
        }
    }
}

/// Archives a state directory and its configuration.
///
/// A service may run on it meanwhile.
/// The archive is verified before it gets its name.
///
/// # Errors
/// There is no new archive.
pub async fn backup(request: BackupRequest) -> Result<BackedUp, BackupError> {
    let BackupRequest { state_dir, exclusive, now, .. } = &request;
    let (dir, exclusive, now) = (state_dir.clone(), *exclusive, *now);
    let output = request.output.clone();
    let force = request.force;
    let prepared = blocking(move || prepare(&dir, &output, force, exclusive, now)).await?;
    // It has a name only while it is copied; one left by a kill is removed by the next start.
    let copy = {
        let dir = request.state_dir.clone();
        blocking(move || temporary_in(&dir).map_err(|cause| at("write into", &dir, cause))).await?
    };
    let schema =
        svc_store::copy_registry(&request.state_dir, copy.path()).await.map_err(database_in)?;
    blocking(move || {
        let database = schema.map(|version| (copy.path().to_owned(), version));
        let directory = request.output.directory().to_owned();
        let has_room = Box::new(move || is_above_floor(&directory));
        let done = write(&request, database, has_room);
        drop((copy, prepared));
        done
    })
    .await
}

/// Checks what can be checked before anything is read.
///
/// Takes the lock if it is wanted.
fn prepare(
    state_dir: &Path,
    output: &Output,
    force: bool,
    exclusive: bool,
    now: Timestamp,
) -> Result<Option<RunLock>, BackupError> {
    if !state_dir.is_dir() {
        return Err(BackupError::NoState(state_dir.to_owned()));
    }
    let of_state = std::fs::metadata(state_dir).map_err(|cause| at("read", state_dir, cause))?;
    refuse_foreign(state_dir, &of_state)?;
    if let Output::File(path) = output
        && !force
        && std::fs::symlink_metadata(path).is_ok()
    {
        return Err(BackupError::InTheWay(path.clone()));
    }
    let directory = output.directory();
    std::fs::create_dir_all(directory).map_err(|cause| at("create", directory, cause))?;
    for path in [directory, state_dir] {
        if !is_above_floor(path).map_err(|cause| at("examine", path, cause))? {
            return Err(BackupError::Full(path.to_owned()));
        }
    }
    exclusive.then(|| lock(state_dir, now)).transpose()
}

/// Refuses a state directory of somebody else.
///
/// Root could open it, and would leave files behind that its owner cannot use.
fn refuse_foreign(path: &Path, meta: &Metadata) -> Result<(), BackupError> {
    if meta.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let reason = "belongs to another user; run this as that user, who runs the service";
    Err(BackupError::Target { path: path.to_owned(), reason: reason.into() })
}

/// Takes the lock of a server, so that none runs or starts.
fn lock(state_dir: &Path, now: Timestamp) -> Result<RunLock, BackupError> {
    let record = RunRecord::of_this_process(&process_table(state_dir)?, now.as_millis())
        .map_err(|cause| at("find this process for the lock of", state_dir, cause))?;
    RunLock::take(state_dir, record).map_err(BackupError::Lock)
}

fn process_table(state_dir: &Path) -> Result<ProcTable, BackupError> {
    let failed = |error| at("find the holder of", state_dir, io::Error::other(error));
    ProcTable::open().map_err(failed)
}

fn write(
    request: &BackupRequest,
    database: Option<(PathBuf, i64)>,
    has_room: HasRoom,
) -> Result<BackedUp, BackupError> {
    let directory = request.output.directory();
    let failed = |cause: io::Error| match cause.kind() {
        io::ErrorKind::StorageFull => BackupError::Full(directory.to_owned()),
        _ => at("write the archive in", directory, cause),
    };
    let state_dir = &request.state_dir;
    let wanted = Wanted { logs: request.logs, deps: request.deps, output: directory };
    let Collected { found, mut warnings } =
        collect(state_dir, wanted).map_err(|cause| at("read", state_dir, cause))?;
    let mut writer = Writer::begin(directory, request.stop.clone(), has_room).map_err(failed)?;
    let of_state = std::fs::metadata(state_dir).map_err(|cause| at("read", state_dir, cause))?;
    writer.area(Area::State, facts(&of_state)).map_err(failed)?;
    if let Some((copy, _)) = &database {
        let name = member(&format!("state/{DATABASE}"))?;
        add(&mut writer, &name, copy, &mut warnings).map_err(failed)?;
    } else {
        warnings.push("there is no database yet; the archive has none".to_owned());
    }
    let replaced = replaced(&request.output);
    for Found { path, name, is_directory } in found {
        let meta = std::fs::symlink_metadata(&path);
        if meta.as_ref().is_ok_and(|meta| replaced == Some((meta.dev(), meta.ino()))) {
            continue; // the archive itself
        }
        match (is_directory, meta) {
            (true, Ok(meta)) => writer.directory(&name, facts(&meta)).map_err(failed)?,
            (true, Err(error)) => warnings.push(unread(&path, &error)),
            (false, _) => add(&mut writer, &name, &path, &mut warnings).map_err(failed)?,
        }
    }
    let config = request.config_file.as_deref();
    let has_config = config.is_some_and(|path| path.is_file());
    if let Some(path) = config.filter(|_| has_config) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = member(&format!("config/{name}"))?;
        // Without it the archive would not be what was asked for.
        let mut trouble = Vec::new();
        add(&mut writer, &name, path, &mut trouble).map_err(failed)?;
        if let Some(trouble) = trouble.pop() {
            return Err(BackupError::Config(trouble));
        }
    }
    let manifest = Manifest {
        created: request.now.to_string(),
        schema_version: SCHEMA_VERSION,
        format: FORMAT,
        has_state_dir: true,
        has_config,
        svc_version: VERSION.to_owned(),
        db_user_version: database.map(|(_, version)| version),
        host_os: std::env::consts::OS.to_owned(),
        state_dir: state_dir.to_string_lossy().into_owned(),
        files: Vec::new(),
    };
    let mut finished = writer.finish(manifest).map_err(failed)?;
    let verified = finished.verify(&Limits::default(), &request.stop);
    verified.map_err(|cause| BackupError::Unverified(Box::new(cause)))?;
    let path = publish(&mut finished, request)?;
    let (bytes, files) = (finished.bytes, finished.files);
    Ok(BackedUp { path, bytes, files, created: request.now, warnings })
}

/// The file that the archive is to replace.
fn replaced(output: &Output) -> Option<(u64, u64)> {
    let Output::File(path) = output else { return None };
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

fn member(name: &str) -> Result<MemberPath, BackupError> {
    MemberPath::new(name.as_bytes())
        .map_err(|reason| BackupError::Config(format!("the name {name:?} {reason}")))
}

/// Adds a file. One that is gone or cannot be read is a warning.
fn add(
    writer: &mut Writer,
    name: &MemberPath,
    path: &Path,
    warnings: &mut Vec<String>,
) -> io::Result<()> {
    let (mut file, meta) = match open(path, name.area()) {
        Ok(opened) => opened,
        Err(error) => {
            warnings.push(unread(path, &error));
            return Ok(());
        }
    };
    let source = Source { content: &mut file, size: meta.len(), facts: facts(&meta) };
    match writer.file(name, source)? {
        Added::Whole => {}
        Added::Shortened => warnings.push(format!(
            "{} was shortened while it was read; zeros take the place of the rest",
            path.display()
        )),
    }
    Ok(())
}

fn unread(path: &Path, error: &io::Error) -> String {
    format!("{} is not in the archive ({error})", path.display())
}

/// Opens a file of the tree, and nothing that took its place meanwhile.
fn open(path: &Path, area: Area) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = match area {
        Area::State => flags | OFlags::NOFOLLOW,
        // Its operator may keep it somewhere else.
        Area::Config => flags,
    };
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok((file, meta))
}

fn facts(meta: &Metadata) -> Facts {
    let mtime = u64::try_from(meta.mtime()).unwrap_or_default();
    Facts { mode: meta.permissions().mode() & 0o777, mtime }
}

fn publish(finished: &mut Finished, request: &BackupRequest) -> Result<PathBuf, BackupError> {
    let refused = |path: &Path, cause: io::Error| match cause.kind() {
        io::ErrorKind::AlreadyExists => BackupError::InTheWay(path.to_owned()),
        _ => at("write", path, cause),
    };
    let directory = match &request.output {
        Output::File(path) => {
            let done = finished.publish(path, request.force);
            return done.map(|()| path.clone()).map_err(|cause| refused(path, cause));
        }
        Output::Directory(directory) => directory,
    };
    let (begin, end) = ARCHIVE;
    let stem = format!("{begin}{}", stamp(request.now));
    for number in 0..NAMES {
        let name = match number {
            0 => format!("{stem}{end}"),
            number => format!("{stem}-{number}{end}"),
        };
        let path = directory.join(name);
        match finished.publish(&path, false) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(at("write", &path, error)),
        }
    }
    Err(BackupError::InTheWay(directory.join(format!("{stem}{end}"))))
}

/// `20250131T235959Z`.
fn stamp(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or(&text).trim_end_matches('Z');
    let mut stamp: String = seconds.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    stamp.push('Z');
    stamp
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_carry_the_second() {
        assert_eq!(stamp(Timestamp::from_millis(1_738_367_999_123)), "20250131T235959Z");
    }

    #[test]
    fn h95_a_disk_that_fills_up_meanwhile_ends_a_backup_and_nothing_is_left() {
        let (state, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(state.path().join("large"), vec![b'x'; 5 * 1024 * 1024]).unwrap();
        let request = BackupRequest {
            state_dir: state.path().to_owned(),
            config_file: None,
            output: Output::Directory(output.path().to_owned()),
            force: false,
            logs: true,
            deps: false,
            exclusive: false,
            now: Timestamp::from_millis(1_738_367_999_123),
            stop: Stop::default(),
        };
        let full = write(&request, None, Box::new(|| Ok(false)));
        assert!(matches!(&full, Err(BackupError::Full(path)) if path == output.path()), "{full:?}");
        assert_eq!(std::fs::read_dir(output.path()).unwrap().count(), 0);
        write(&request, None, Box::new(|| Ok(true))).unwrap();
    }

    #[test]
    fn a_slash_at_the_end_makes_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("new");
        assert_eq!(Output::named(&new), Output::File(new.clone()));
        assert_eq!(Output::named(dir.path()), Output::Directory(dir.path().to_owned()));
        let slash = PathBuf::from(format!("{}/", new.display()));
        assert!(matches!(Output::named(&slash), Output::Directory(_)));
    }
}
