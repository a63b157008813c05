//! A new project: made in a hidden directory, and moved to its place whole.
//!
//! The hidden directory `.NAME.8HEX.clone-tmp` holds the file `job`, which its maker keeps locked,
//! and the directory `tree`, which becomes the project. A maker that dies leaves the lock open, and
//! the next start of the service removes what is left.

use crate::examine::{Examined, Examiner, Rules};
use crate::project::Project;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, openat, renameat,
    renameat_with, statat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use svc_shared::ids::ProjectName;

/// How hidden directories end.
const SUFFIX: &str = ".clone-tmp";
/// Most bytes of the project's name in the name of its hidden directory.
const NAME_BYTES: usize = 200;
/// Digits of the job's id in that name.
const HIDDEN_DIGITS: usize = 8;
/// The id of the job, 32 hexadecimal digits.
const JOB_BYTES: u64 = 32;

/// Why there is no new project.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The directory of the projects cannot be used.
    #[error("projects_root cannot be read; check that it is there and readable")]
    Root(#[source] io::Error),
    /// Something has this name.
    #[error("something in projects_root has this name already")]
    Taken,
    /// There is no room.
    #[error("the file system of projects_root is full; free some space")]
    Full(#[source] io::Error),
    /// Anything else.
    #[error(
        "the directory of the project cannot be written; check the permissions of projects_root"
    )]
    Failed(#[source] io::Error),
}

impl From<io::Error> for ProvisionError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            io::ErrorKind::AlreadyExists => Self::Taken,
            _ => Self::Failed(error),
        }
    }
}

impl From<Errno> for ProvisionError {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// A project that is being made. Removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct NewProject {
    root: PathBuf,
    name: ProjectName,
    dir: PathBuf,
    _lock: File,
}

impl NewProject {
    /// Makes the hidden directory. `job` has 32 hexadecimal digits.
    ///
    /// Nothing is at the project's place yet; [`NewProject::publish`] checks that again.
    ///
    /// # Errors
    /// The name is taken, or the directory cannot be written.
    pub fn begin(rules: &Rules, name: &ProjectName, job: &str) -> Result<Self, ProvisionError> {
        let root = real_root(rules)?;
        if is_taken(&root, name)? {
            return Err(ProvisionError::Taken);
        }
        // A service that starts now takes a directory without a locked `job` for abandoned. Each
        // attempt has a name of its own: what was taken for abandoned stays whose it is.
        let mut last = ProvisionError::Taken;
        for digits in job.as_bytes().chunks(HIDDEN_DIGITS).filter_map(|it| str::from_utf8(it).ok())
        {
            let dir = root.join(hidden_name(name, digits));
            DirBuilder::new().mode(0o700).create(&dir)?;
            match locked(&dir, job) {
                Ok(lock) => return Ok(Self { root, name: name.clone(), dir, _lock: lock }),
                Err(error) if is_swept(&error) => last = error.into(),
                Err(error) => {
                    let _ = std::fs::remove_dir_all(&dir); // swept at the next start
                    return Err(error.into());
                }
            }
        }
        Err(last)
    }

    /// The hidden directory, private to this user.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory that becomes the project. It does not exist at first.
    #[must_use]
    pub fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// Makes an empty tree with the rights that `umask` leaves.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn make_tree(&self, umask: u32) -> Result<(), ProvisionError> {
        std::fs::create_dir(self.tree())?;
        let mode = std::fs::Permissions::from_mode(0o777 & !umask);
        Ok(std::fs::set_permissions(self.tree(), mode)?)
    }

    /// Removes the tree, for another attempt.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_tree(&self) -> Result<(), ProvisionError> {
        match std::fs::remove_dir_all(self.tree()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Moves the tree to its place, in one step and never over anything.
    ///
    /// # Errors
    /// Something has taken the place meanwhile, or the tree cannot be moved.
    pub fn publish(self) -> Result<(), ProvisionError> {
        let (tree, place) = (self.tree(), self.root.join(self.name.as_str()));
        match renameat_with(CWD, &tree, CWD, &place, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                // A file system without this call: whoever makes the directory has the name, and a
                // directory replaces an empty one only.
                std::fs::create_dir(&place)?;
                renameat(CWD, &tree, CWD, &place).map_err(|error| {
                    let _ = std::fs::remove_dir(&place); // not empty: not ours any more
                    match error {
                        Errno::NOTEMPTY | Errno::EXIST => ProvisionError::Taken,
                        other => other.into(),
                    }
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Bytes on disk that everything in the hidden directory takes. Blocks.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        disk_bytes(&self.dir)
    }
}

impl Drop for NewProject {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            tracing::warn!(error = %error, "what is left of a new project was not removed");
        }
    }
}

/// Bytes on disk of a directory. What disappears meanwhile is not counted.
#[must_use]
pub fn disk_bytes(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let each = entries.flatten().map(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => {
            disk_bytes(&entry.path()).saturating_add(facts.blocks().saturating_mul(512))
        }
        Ok(facts) => facts.blocks().saturating_mul(512),
        Err(_) => 0,
    });
    each.fold(0, u64::saturating_add)
}

/// Whether something has this name, as the file system compares names (H43).
///
/// # Errors
/// The directory of the projects cannot be asked.
pub fn is_name_taken(rules: &Rules, name: &ProjectName) -> Result<bool, ProvisionError> {
    is_taken(&real_root(rules)?, name)
}

fn is_taken(root: &Path, name: &ProjectName) -> Result<bool, ProvisionError> {
    match statat(CWD, root.join(name.as_str()), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(ProvisionError::Failed(error.into())),
    }
}

fn real_root(rules: &Rules) -> Result<PathBuf, ProvisionError> {
    std::fs::canonicalize(&rules.root).map_err(ProvisionError::Root)
}

/// The project of that name as it is on disk now.
///
/// `None` if there is none, or if the directory may not be one.
#[must_use]
pub fn look_up(rules: &Rules, name: &ProjectName) -> Option<Project> {
    let examiner = Examiner::new(rules.clone(), real_root(rules).ok()?);
    match examiner.examine(OsStr::new(name.as_str())) {
        Examined::Project { project, .. } => Some(project),
        Examined::Skipped(_) | Examined::Nothing => None,
    }
}

/// What a maker that died has left.
#[derive(Debug)]
pub struct Abandoned {
    dir: PathBuf,
    /// Its job, whose processes may still run.
    pub job: String,
    _lock: File,
}

impl Abandoned {
    /// Removes it. Its processes must be gone.
    ///
    /// # Errors
    /// Something could not be removed.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.dir)
    }
}

/// Everything that makers who died have left. Blocks.
///
/// What a living maker has locked is not among them, nor anything with such a name that we have not
/// made: it has no `job`.
#[must_use]
pub fn abandoned(rules: &Rules) -> Vec<Abandoned> {
    let Ok(entries) = real_root(rules).and_then(|root| Ok(std::fs::read_dir(root)?)) else {
        return Vec::new();
    };
    let hidden = entries.flatten().filter(|entry| {
        is_hidden_name(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let user = rustix::process::geteuid().as_raw();
    hidden
        .filter(|entry| entry.metadata().is_ok_and(|facts| facts.uid() == user))
        .filter_map(|entry| {
            let dir = entry.path();
            let Ok(lock) = lock_of(&dir, OFlags::empty()) else {
                // Killed before `job` was made: empty, else it stays.
                let _ = std::fs::remove_dir(&dir);
                return None;
            };
            let mut job = String::new();
            (&lock).take(JOB_BYTES).read_to_string(&mut job).ok()?;
            Some(Abandoned { dir, job, _lock: lock })
        })
        .collect()
}

/// Makes `job` in a new hidden directory and locks it.
///
/// # Errors
/// See [`is_swept`], or it cannot be written.
fn locked(dir: &Path, job: &str) -> io::Result<File> {
    let mut lock = lock_of(dir, OFlags::CREATE | OFlags::EXCL)?;
    lock.write_all(job.as_bytes())?;
    lock.sync_all()?;
    // Locked by another for a moment before us, and removed by it: then ours has no name.
    if lock.metadata()?.nlink() == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(lock)
}

/// Whether a sweep has taken a new directory for one that was left.
fn is_swept(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock)
}

/// Opens and locks `job`, which is a regular file.
fn lock_of(dir: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(CWD, dir.join("job"), flags, Mode::RUSR | Mode::WUSR)?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

fn hidden_name(name: &ProjectName, digits: &str) -> String {
    let name = name.as_str();
    let end = (0..=NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    let short = end.and_then(|end| name.get(..end)).unwrap_or_default();
    format!(".{short}.{digits}{SUFFIX}")
}

fn is_hidden_name(name: &OsStr) -> bool {
    let Some(inner) = name.to_str().and_then(|name| name.strip_prefix('.')) else { return false };
    let Some((_, digits)) = inner.strip_suffix(SUFFIX).and_then(|inner| inner.rsplit_once('.'))
    else {
        return false;
    };
    digits.len() == HIDDEN_DIGITS
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const JOB: &str = "0123456789abcdef0123456789abcdef";

    fn rules(root: &Path) -> Rules {
        Rules { root: root.to_owned(), refused: vec![], private: vec![] }
    }

    fn name(raw: &str) -> ProjectName {
        raw.parse().unwrap()
    }

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_sweep_at_the_same_moment_takes_no_new_project_away() {
        let root = tempfile::tempdir().unwrap();
        let rules = rules(root.path());
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    abandoned(&rules).into_iter().for_each(|one| one.remove().unwrap_or_default());
                }
            });
            for round in 0..500 {
                let made = NewProject::begin(&rules, &name("app"), JOB).and_then(|new| {
                    new.make_tree(0o022)?;
                    assert!(new.tree().is_dir(), "round {round}");
                    Ok(())
                });
                if let Err(error) = made {
                    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
                    panic!("round {round}: {error:?}");
                }
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn a_project_appears_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let rules = rules(root.path());
        let new = NewProject::begin(&rules, &name("api"), JOB).unwrap();
        new.make_tree(0o022).unwrap();
        assert_eq!(names(root.path()), [".api.01234567.clone-tmp"]);
        new.publish().unwrap();
        assert_eq!(names(root.path()), ["api"]);
        let mode = fs::metadata(root.path().join("api")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);

        let dropped = NewProject::begin(&rules, &name("web"), JOB).unwrap();
        fs::create_dir_all(dropped.tree().join("deep/er")).unwrap();
        drop(dropped);
        assert_eq!(names(root.path()), ["api"]);
        assert_eq!(look_up(&rules, &name("api")).unwrap().name, name("api"));
        assert!(look_up(&rules, &name("web")).is_none());
    }

    #[test]
    fn h52_what_took_the_place_meanwhile_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let rules = rules(root.path());
        let outside = tempfile::tempdir().unwrap();
        type Take = fn(&Path, &Path);
        let takes: [Take; 4] = [
            |place, _| fs::create_dir(place).unwrap(),
            |place, _| fs::write(place, "mine").unwrap(),
            |place, outside| std::os::unix::fs::symlink(outside, place).unwrap(),
            |place, _| std::os::unix::fs::symlink("nowhere", place).unwrap(),
        ];
        for take in takes {
            let place = root.path().join("api");
            let new = NewProject::begin(&rules, &name("api"), JOB).unwrap();
            new.make_tree(0o022).unwrap();
            fs::write(new.tree().join("theirs"), "").unwrap();
            take(&place, outside.path());
            assert!(is_name_taken(&rules, &name("api")).unwrap());
            assert!(matches!(new.publish(), Err(ProvisionError::Taken)));
            assert_eq!(names(root.path()), ["api"]);
            assert_eq!(names(outside.path()), [""; 0]);
            let begun = NewProject::begin(&rules, &name("api"), JOB);
            assert!(matches!(begun, Err(ProvisionError::Taken)));
            let _ = fs::remove_dir(&place).or_else(|_| fs::remove_file(&place));
        }
    }

    #[test]
    fn h51_only_what_a_dead_maker_left_is_swept() {
        let root = tempfile::tempdir().unwrap();
        let rules = rules(root.path());
        let living = NewProject::begin(&rules, &name("living"), JOB).unwrap();
        let dead = NewProject::begin(&rules, &name("dead"), &JOB.replace('0', "9")).unwrap();
        fs::create_dir_all(dead.tree().join("deep")).unwrap();
        // As if its process had been killed: the lock is gone, the rest is not.
        let NewProject { dir, .. } = &dead;
        let copy = dir.with_file_name(".dead.aaaaaaaa.clone-tmp");
        fs::rename(dir, &copy).unwrap();
        drop(dead);
        for stranger in [".x.0123456.clone-tmp", ".notes.deadbeef.clone-tmp", "plain"] {
            fs::create_dir(root.path().join(stranger)).unwrap();
            fs::write(root.path().join(stranger).join("file"), "").unwrap();
        }
        fs::create_dir(root.path().join(".empty.deadbeef.clone-tmp")).unwrap();
        std::os::unix::fs::symlink(
            root.path().join("plain"),
            root.path().join(".l.deadbeef.clone-tmp"),
        )
        .unwrap();

        let left = abandoned(&rules);
        let jobs: Vec<_> = left.iter().map(|left| left.job.as_str()).collect();
        assert_eq!(jobs, [JOB.replace('0', "9")]);
        left.into_iter().for_each(|left| left.remove().unwrap());
        assert_eq!(
            names(root.path()),
            [
                ".l.deadbeef.clone-tmp",
                ".living.01234567.clone-tmp",
                ".notes.deadbeef.clone-tmp",
                ".x.0123456.clone-tmp",
                "plain"
            ]
        );
        drop(living);
    }

    #[test]
    fn a_long_name_still_fits_while_it_is_hidden() {
        let root = tempfile::tempdir().unwrap();
        let long = name(&"ü".repeat(127));
        let new = NewProject::begin(&rules(root.path()), &long, JOB).unwrap();
        new.make_tree(0o077).unwrap();
        assert!(new.disk_bytes() > 0);
        new.publish().unwrap();
        assert_eq!(names(root.path()), [long.as_str()]);
    }
}
