//! Reads and replaces the instructions of a project, its file `CLAUDE.md` (H39).
//!
//! The content of a project is not trusted: a link must not lead out of it, a pipe must not block,
//! and a file with a second name elsewhere is left alone.

use crate::project_file;
use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use svc_process::files::{sync_directory, temporary_in};
use svc_shared::internal::instructions::MOST_BYTES;

/// Its name.
pub const NAME: &str = "CLAUDE.md";
/// Permission bits of a new file before the umask that agents get.
const NEW: u32 = 0o666;

/// Why the file was not read or replaced. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum InstructionsError {
    /// It is a link that leads elsewhere.
    #[error(
        "CLAUDE.md is a link that does not lead to a file beside it, and was left alone; replace \
         it by a regular file, then try again"
    )]
    Link,
    /// A pipe, a device, a directory, or a file with several names.
    #[error(
        "CLAUDE.md is not a regular file with one name, and was left alone; replace it by a \
         regular file, then try again"
    )]
    Kind,
    /// More than can be edited.
    #[error("CLAUDE.md has more than 65,536 bytes; edit it on the machine")]
    TooLarge,
    /// Not UTF-8.
    #[error("CLAUDE.md is not UTF-8 text; edit it on the machine")]
    NotText,
    /// Somebody else was faster.
    #[error("CLAUDE.md was changed meanwhile; read it again and repeat your change")]
    Changed,
    /// The kernel refused.
    #[error("CLAUDE.md cannot be read or written; check owner, permissions and free space")]
    Io(#[source] io::Error),
}

/// The file as it was read.
#[derive(Debug)]
pub struct Found {
    /// Its text.
    pub text: String,
    facts: Metadata,
}

/// Reads the file; none where there is none. Blocks for one small file.
///
/// # Errors
/// See [`InstructionsError`].
pub fn read(project: &Path) -> Result<Option<Found>, InstructionsError> {
    let Some(name) = name_of(project)? else { return Ok(None) };
    let file = match project_file::open(project, &name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(InstructionsError::Io(error)),
    };
    let facts = file.metadata().map_err(InstructionsError::Io)?;
    if !facts.is_file() || facts.nlink() > 1 {
        return Err(InstructionsError::Kind);
    }
    let bytes = all(file)?;
    let text = String::from_utf8(bytes).map_err(|_| InstructionsError::NotText)?;
    Ok(Some(Found { text, facts }))
}

/// Replaces the file if it is still what was read. Blocks.
///
/// Owner and permissions stay. A new file has the permissions that `umask` leaves.
///
/// # Errors
/// See [`InstructionsError`].
pub fn write(
    project: &Path,
    before: Option<&Found>,
    text: &str,
    umask: u32,
) -> Result<(), InstructionsError> {
    if text.len() > MOST_BYTES {
        return Err(InstructionsError::TooLarge);
    }
    if before.is_some_and(|before| before.facts.nlink() > 1) {
        return Err(InstructionsError::Kind);
    }
    let name = name_of(project)?.unwrap_or_else(|| NAME.into());
    let path = project.join(name);
    if replaced(&path, before, text, umask).map_err(InstructionsError::Io)? {
        Ok(())
    } else {
        Err(InstructionsError::Changed)
    }
}

/// The name of the file itself.
///
/// Where `CLAUDE.md` is a link to a file beside it, the name of that file.
fn name_of(project: &Path) -> Result<Option<PathBuf>, InstructionsError> {
    let path = project.join(NAME);
    match fs::symlink_metadata(&path) {
        Ok(facts) if facts.is_symlink() => {}
        Ok(_) => return Ok(Some(NAME.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(InstructionsError::Io(error)),
    }
    let to = fs::read_link(&path).map_err(InstructionsError::Io)?;
    let to = to.strip_prefix(".").unwrap_or(&to);
    let is_plain = to.file_name().is_some_and(|name| name == to.as_os_str());
    let is_file = || fs::symlink_metadata(project.join(to)).is_ok_and(|facts| !facts.is_symlink());
    if is_plain && is_file() { Ok(Some(to.to_owned())) } else { Err(InstructionsError::Link) }
}

fn all(file: File) -> Result<Vec<u8>, InstructionsError> {
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(InstructionsError::Io)?;
    if bytes.len() > MOST_BYTES { Err(InstructionsError::TooLarge) } else { Ok(bytes) }
}

/// False when the file is not what was read any more.
fn replaced(path: &Path, before: Option<&Found>, text: &str, umask: u32) -> io::Result<bool> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut fresh = temporary_in(directory)?;
    let mode = before.map_or(NEW & !umask, |before| before.facts.mode() & 0o777);
    fchmod(fresh.as_file(), Mode::from_raw_mode(mode))?;
    if let Some(Found { facts, .. }) = before
        && facts.uid() != fresh.as_file().metadata()?.uid()
    {
        let (user, group) = (Uid::from_raw(facts.uid()), Gid::from_raw(facts.gid()));
        fchown(fresh.as_file(), Some(user), Some(group))?;
    }
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().sync_all()?;
    let Some(before) = before else {
        return match fresh.persist_noclobber(path) {
            Ok(_) => sync_directory(directory).map(|()| true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        };
    };
    let is_same = fs::symlink_metadata(path).is_ok_and(|now| state(&now) == state(&before.facts));
    if !is_same {
        return Ok(false);
    }
    fresh.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)?;
    Ok(true)
}

/// What every write changes.
fn state(facts: &Metadata) -> (u64, u64, u64, (i64, i64), (i64, i64)) {
    let modified = (facts.mtime(), facts.mtime_nsec());
    (facts.dev(), facts.ino(), facts.len(), modified, (facts.ctime(), facts.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const UMASK: u32 = 0o022;

    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("p");
        fs::create_dir(&project).unwrap();
        (dir, project)
    }

    #[test]
    fn a_file_is_made_read_and_replaced_with_its_permissions() {
        let (_dir, project) = project();
        assert!(read(&project).unwrap().is_none());
        write(&project, None, "one", UMASK).unwrap();
        let path = project.join(NAME);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o644);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        let found = read(&project).unwrap().unwrap();
        assert_eq!(found.text, "one");
        write(&project, Some(&found), "two", UMASK).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("two", 0o664));
        assert_eq!(fs::read_dir(&project).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn who_comes_second_overwrites_nothing() {
        let (_dir, project) = project();
        write(&project, None, "one", UMASK).unwrap();
        assert!(matches!(write(&project, None, "x", UMASK), Err(InstructionsError::Changed)));
        let found = read(&project).unwrap().unwrap();
        fs::write(project.join(NAME), "by hand").unwrap();
        let late = write(&project, Some(&found), "two", UMASK);
        assert!(matches!(late, Err(InstructionsError::Changed)));
        assert_eq!(fs::read_to_string(project.join(NAME)).unwrap(), "by hand");
    }

    #[test]
    fn h39_what_is_no_plain_file_of_the_project_is_left_alone() {
        let (dir, project) = project();
        let (path, away) = (project.join(NAME), dir.path().join("away"));
        fs::write(&away, "elsewhere").unwrap();
        let refused = |why: &str| {
            assert!(read(&project).is_err(), "{why}");
            let known = Found { text: String::new(), facts: fs::metadata(&away).unwrap() };
            assert!(write(&project, Some(&known), "mine", UMASK).is_err(), "{why}");
            assert_eq!(fs::read_to_string(&away).unwrap(), "elsewhere", "{why}");
        };
        for to in ["../away", "none", "/etc/passwd", "CLAUDE.md", ".."] {
            symlink(to, &path).unwrap();
            refused(to);
            fs::remove_file(&path).unwrap();
        }
        symlink(&away, project.join("hop")).unwrap();
        symlink("hop", &path).unwrap();
        refused("a link to a link");
        fs::remove_file(&path).unwrap();
        fs::hard_link(&away, &path).unwrap();
        refused("a second name");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        refused("a directory");
        fs::remove_dir(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        refused("a pipe");
        fs::remove_file(&path).unwrap();
        fs::write(&path, vec![b'x'; MOST_BYTES + 1]).unwrap();
        assert!(matches!(read(&project), Err(InstructionsError::TooLarge)));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(read(&project), Err(InstructionsError::NotText)));
    }

    #[test]
    fn a_link_to_a_file_beside_it_stays_a_link() {
        let (_dir, project) = project();
        fs::write(project.join("AGENTS.md"), "one").unwrap();
        symlink("AGENTS.md", project.join(NAME)).unwrap();
        let found = read(&project).unwrap().unwrap();
        write(&project, Some(&found), "two", UMASK).unwrap();
        assert_eq!(fs::read_to_string(project.join("AGENTS.md")).unwrap(), "two");
        assert!(fs::symlink_metadata(project.join(NAME)).unwrap().is_symlink());
    }
}
