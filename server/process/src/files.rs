//! Writing small files: private, and completely or not at all.
//!
//! All functions block: call them in `spawn_blocking`.

use crate::process_umask::permission_bits;
use crate::table::ProcTable;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, fsync, open};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use svc_domain::identity::{Observed, Pid};
use tempfile::NamedTempFile;

/// Permission bits: only this user may read and write.
pub const PRIVATE: u32 = 0o600;

const PRIVATE_DIRECTORY: u32 = 0o700;

/// Begin and end of the names of temporary files.
///
/// Between them are the pid and the start time of the writer.
const TEMPORARY_PREFIX: &str = ".svc-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Why a file or directory could not be written or used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The old content is still there.
    #[error("cannot replace {path}, its old content is kept")]
    Replace {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// It exists already, or its directory does not take it.
    #[error("cannot create {path}")]
    Create {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// A directory could not be created or read.
    #[error("cannot use {path} as a private directory")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The directory belongs to another user, who could read and change its files.
    #[error(
        "the directory {path} belongs to another user ({owner}, and this runs as {user}): run this \
         as its owner (`sudo -u '#{owner}' svc ...`), or choose another directory"
    )]
    ForeignDirectory {
        /// The directory.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
}

/// Replaces the content of a private file (0600), or creates the file.
///
/// After a power loss at any time it holds the old or the new content, nothing in between. A link is
/// replaced, not followed: resolve the path before if you want to follow it.
///
/// # Errors
/// The old content is untouched and no temporary file is left.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replace_with_mode(path, content, PRIVATE)
}

/// Like [`replace`], with other permission bits.
///
/// The bits are set before the content is written.
///
/// # Errors
/// As [`replace`].
pub fn replace_with_mode(path: &Path, content: &[u8], mode: u32) -> Result<(), FileError> {
    replaced(path, content, mode, None, Durability::PowerLoss)
}

/// Like [`replace_with_mode`], for a file of this user and group.
///
/// # Errors
/// As [`replace`]; also when the new file cannot be given to them.
pub fn replace_as(
    path: &Path,
    content: &[u8],
    mode: u32,
    owner: (u32, u32),
) -> Result<(), FileError> {
    replaced(path, content, mode, Some(owner), Durability::PowerLoss)
}

/// Like [`replace`], without sync: for files that matter only until the next boot.
///
/// # Errors
/// As [`replace`].
pub fn replace_without_sync(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replaced(path, content, PRIVATE, None, Durability::ThisBoot)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durability {
    PowerLoss,
    ThisBoot,
}

fn replaced(
    path: &Path,
    content: &[u8],
    mode: u32,
    owner: Option<(u32, u32)>,
    durability: Durability,
) -> Result<(), FileError> {
    let attempt = || -> io::Result<()> {
        let directory = directory_of(path)?;
        // Created exclusively and 0600; removed when dropped before `persist`.
        let mut temporary = temporary_in(directory)?;
        if let Some((user, group)) = owner {
            let meta = temporary.as_file().metadata()?;
            let user = (meta.uid() != user).then(|| Uid::from_raw(user));
            let group = (meta.gid() != group).then(|| Gid::from_raw(group));
            if user.is_some() || group.is_some() {
                fchown(temporary.as_file(), user, group)?;
            }
        }
        fchmod(temporary.as_file(), permission_bits(mode))?;
        temporary.write_all(content)?;
        if durability == Durability::PowerLoss {
            temporary.as_file().sync_all()?;
        }
        temporary.persist(path).map_err(|error| error.error)?;
        if durability == Durability::PowerLoss {
            sync_directory(directory)?;
        }
        Ok(())
    };
    attempt().map_err(|cause| FileError::Replace { path: path.to_owned(), cause })
}

/// Creates a new private file (0600) together with its content.
///
/// Readers see no file or the whole content, also after a power loss.
///
/// # Errors
/// [`FileError::Create`]. Its cause has the kind `AlreadyExists` if the path exists; what is there is
/// not changed. No temporary file is left.
pub fn create_whole(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let attempt = || -> io::Result<()> {
        let directory = directory_of(path)?;
        let mut temporary = temporary_in(directory)?;
        temporary.write_all(content)?;
        temporary.as_file().sync_all()?;
        temporary.persist_noclobber(path).map_err(|error| error.error)?;
        sync_directory(directory)
    };
    attempt().map_err(|cause| FileError::Create { path: path.to_owned(), cause })
}

fn directory_of(path: &Path) -> io::Result<&Path> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Ok(Path::new(".")),
        Some(parent) if path.file_name().is_some() => Ok(parent),
        Some(_) | None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Syncs a directory, so that its entries survive a power loss.
///
/// # Errors
/// It cannot be opened or synced.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    fsync(open(directory, flags, Mode::empty())?)?;
    Ok(())
}

/// Creates a new private file (0600) and opens it for reading and appending.
///
/// If the path exists, even as a dangling link, that is an error and nothing is changed.
///
/// # Errors
/// [`FileError::Create`]. Its cause has the kind `AlreadyExists` if the path exists.
pub fn create_new_private(path: &Path) -> Result<File, FileError> {
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC;
    let attempt = || -> io::Result<File> {
        let file = open(path, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    };
    attempt().map_err(|cause| FileError::Create { path: path.to_owned(), cause })
}

/// Makes sure that a directory exists and only this user can use it.
///
/// Creates it with its parents (0700), or removes the rights of group and others.
///
/// # Errors
/// It belongs to another user, is no directory, or cannot be created.
pub fn private_directory(path: &Path) -> Result<(), FileError> {
    let failed = |cause: io::Error| FileError::Directory { path: path.to_owned(), cause };
    DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY).create(path).map_err(failed)?;
    // The checks use the opened directory, so that nobody can exchange it in between. A link, for
    // example to another disk, is followed: the owner of its target counts.
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let stat = fstat(&directory).map_err(|error| failed(error.into()))?;
    let user = rustix::process::geteuid().as_raw();
    if stat.st_uid != user {
        return Err(FileError::ForeignDirectory {
            path: path.to_owned(),
            owner: stat.st_uid,
            user,
        });
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    let others = Mode::RWXG | Mode::RWXO;
    if mode.intersects(others) {
        fchmod(&directory, mode.difference(others)).map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// Removes a socket, so that its place can be bound again. Nothing there is fine.
///
/// Whatever else is there stays: a path that somebody chose must not cost a file.
///
/// # Errors
/// Something else is there, or it cannot be removed.
pub fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!(
                "{} is there and is no socket; remove it, or choose another path",
                path.display()
            ),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a regular file for reading, and never waits for one that is none.
///
/// A pipe in its place would be waited for until somebody writes to it. Links are followed.
///
/// # Errors
/// It is missing, unreadable, or no regular file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Reads a regular file of at most `most` bytes, as [`open_plain`] opens it.
///
/// # Errors
/// As [`open_plain`], or it is larger.
pub fn read_plain(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        let words = format!("it has more than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    Ok(bytes)
}

/// Bytes this user can still write to the file system of a path.
///
/// # Errors
/// The path does not exist or cannot be asked.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Free space that large writes leave to everybody else (H95).
///
/// 256 MiB, or 5 % of a small disk.
const FLOOR: u64 = 256 * 1024 * 1024;

/// Whether a file system has more free space than is left to everybody else.
///
/// # Errors
/// The path does not exist or cannot be asked.
pub fn is_above_floor(path: &Path) -> io::Result<bool> {
    let stat = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(bytes(stat.f_bavail) > FLOOR.min(bytes(stat.f_blocks) / 20))
}

/// Removes temporary files of [`replace`] whose writer was killed.
///
/// Files of live writers stay. Returns how many files were removed.
///
/// # Errors
/// The directory cannot be listed.
pub fn remove_abandoned_temporaries(directory: &Path, table: &ProcTable) -> io::Result<usize> {
    let mut removed: usize = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Some((pid, start_ticks)) = writer(&entry.file_name()) else {
            continue;
        };
        let abandoned = match table.observe(pid) {
            Observed::Alive { start_ticks: seen } => seen != start_ticks,
            Observed::Absent => true,
            Observed::Unreadable => false,
        };
        if abandoned && std::fs::remove_file(entry.path()).is_ok() {
            removed = removed.saturating_add(1);
        }
    }
    Ok(removed)
}

/// Pid and start time in the name of a temporary file.
fn writer(name: &OsStr) -> Option<(Pid, u64)> {
    let middle = name.to_str()?.strip_prefix(TEMPORARY_PREFIX)?.strip_suffix(TEMPORARY_SUFFIX)?;
    let mut parts = middle.split('-');
    let pid = Pid::new(parts.next()?.parse().ok()?)?;
    let start_ticks = parts.next()?.parse().ok()?;
    parts.next()?;
    Some((pid, start_ticks))
}

/// Creates a temporary file (0600), which is removed with its handle.
///
/// If this process is killed before, [`remove_abandoned_temporaries`] removes it.
///
/// # Errors
/// The file cannot be created in this directory.
pub fn temporary_in(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(&temporary_prefix())
        .suffix(TEMPORARY_SUFFIX)
        .tempfile_in(directory)
}

fn temporary_prefix() -> String {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| {
        let own = ProcTable::open().ok().and_then(|table| table.own_identity().ok());
        match own {
            Some(own) => format!("{TEMPORARY_PREFIX}{}-{}-", own.pid, own.start_ticks),
            // Without a process table nobody can tell whether the writer lives. It is never removed.
            None => format!("{TEMPORARY_PREFIX}unknown-"),
        }
    })
    .clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn h89_replacing_gives_new_content_and_mode_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        replace(&path, b"one").unwrap();
        assert_eq!(mode(&path), 0o600);
        replace_with_mode(&path, b"two", 0o640).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(mode(&path), 0o640);
        replace_without_sync(&path, b"three").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"three");
        assert_eq!(names(dir.path()), ["state.json"]);
    }

    #[test]
    fn h89_a_failed_replacement_keeps_the_old_and_removes_the_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        // A directory cannot be replaced by a file: the last step fails.
        std::fs::create_dir_all(path.join("inner")).unwrap();
        let error = replace(&path, b"new").unwrap_err();
        assert!(error.to_string().contains("state.json"), "{error}");
        assert!(path.join("inner").is_dir());
        assert_eq!(names(dir.path()), ["state.json"]);
        assert!(replace(&dir.path().join("missing/x"), b"new").is_err());
        assert!(replace(Path::new("/"), b"new").is_err());
    }

    #[test]
    fn a_replaced_link_leaves_its_target_alone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        let link = dir.path().join("link");
        symlink(&target, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        assert_eq!(std::fs::read(&link).unwrap(), b"new");
    }

    #[test]
    fn f15_a_planted_link_or_file_stops_the_creation_and_is_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        let dangling = dir.path().join("nowhere");
        for (name, to) in [("to-file", &target), ("to-nothing", &dangling)] {
            let link = dir.path().join(name);
            symlink(to, &link).unwrap();
            let Err(FileError::Create { cause, .. }) = create_new_private(&link) else {
                panic!("{name} was accepted");
            };
            assert_eq!(cause.kind(), io::ErrorKind::AlreadyExists);
        }
        assert!(create_new_private(&target).is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        assert!(!dangling.exists());
        let fresh = dir.path().join("fresh");
        create_new_private(&fresh).unwrap().write_all(b"x").unwrap();
        assert_eq!(mode(&fresh), 0o600);
    }

    #[test]
    fn private_directories_are_created_with_parents_and_existing_ones_are_tightened() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        private_directory(&deep).unwrap();
        assert_eq!(mode(&deep), 0o700);
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o2775)).unwrap();
        private_directory(&open).unwrap();
        assert_eq!(mode(&open), 0o2700);
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(private_directory(&file), Err(FileError::Directory { .. })));
    }

    #[test]
    fn a_directory_of_another_user_is_refused_and_unchanged() {
        // The root directory belongs to the superuser; as superuser give one away instead.
        let dir = tempfile::tempdir().unwrap();
        let foreign = if rustix::process::geteuid().is_root() {
            let foreign = dir.path().join("foreign");
            std::fs::create_dir(&foreign).unwrap();
            std::os::unix::fs::chown(&foreign, Some(65_534), None).unwrap();
            foreign
        } else {
            PathBuf::from("/")
        };
        let before = mode(&foreign);
        assert!(matches!(private_directory(&foreign), Err(FileError::ForeignDirectory { .. })));
        assert_eq!(mode(&foreign), before);
    }

    #[test]
    fn free_space_is_told_for_what_exists() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_bytes(dir.path()).unwrap() > 0);
        assert!(free_bytes(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn h89_temporary_files_of_killed_writers_are_removed_and_those_of_live_ones_kept() {
        let table = ProcTable::open().unwrap();
        let own = table.own_identity().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let live = format!(".svc-{}-{}-abc.tmp", own.pid, own.start_ticks);
        let reused = format!(".svc-{}-{}-abc.tmp", own.pid, own.start_ticks + 1);
        let mut kept = vec![live, ".svc-x.tmp".into(), "a.tmp".into(), ".svc-unknown-a.tmp".into()];
        for name in kept.iter().chain([&reused]) {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(remove_abandoned_temporaries(dir.path(), &table).unwrap(), 1);
        kept.sort();
        assert_eq!(names(dir.path()), kept);
    }
}
