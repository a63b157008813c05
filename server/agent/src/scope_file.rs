//! Reads and replaces one text file below a directory that it must not leave (H39).
//!
//! The content of such a directory is not trusted: a link must not lead out of it, a pipe must not
//! block, and a file with a second name elsewhere is left alone.

use crate::stamp::replace_unchanged;
use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use svc_process::files::sync_directory;

/// Most names of a directory that are looked at.
const MOST_ENTRIES: usize = 10_000;

/// A file below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeFile {
    /// The directory.
    pub root: PathBuf,
    /// Path below it: plain names.
    pub inside: PathBuf,
    /// Most bytes of it that are read or written.
    pub most_bytes: usize,
}

/// Why the file was not read or replaced. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ScopeFileError {
    /// A link leads elsewhere.
    #[error(
        "{0} is reached by a link that does not lead to a file of the same directory, and was left \
         alone; replace the link by a regular file, then try again"
    )]
    Link(String),
    /// A pipe, a device, a directory, or a file with several names.
    #[error(
        "{0} is not a regular file with one name, and was left alone; replace it by a regular \
         file, then try again"
    )]
    Kind(String),
    /// More than can be edited.
    #[error("{0} has more than {1} bytes; edit it on the machine")]
    TooLarge(String, usize),
    /// Not UTF-8.
    #[error("{0} is not UTF-8 text; edit it on the machine")]
    NotText(String),
    /// Somebody else was faster.
    #[error("{0} was changed meanwhile; read it again and repeat your change")]
    Changed(String),
    /// The kernel refused.
    #[error("{0} cannot be read or written; check owner, permissions and free space")]
    Io(String, #[source] io::Error),
}

/// The file as it was read.
#[derive(Debug)]
pub struct Found {
    /// Its text.
    pub text: String,
    facts: Metadata,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// What has it. Links are not followed.
    pub kind: EntryKind,
    /// Size of a file.
    pub bytes: u64,
}

/// The names in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// By name; without hidden ones.
    pub entries: Vec<Entry>,
    /// How many names are hidden, or no plain text.
    pub hidden: usize,
    /// There are more than were looked at.
    pub is_cut: bool,
}

/// What has a name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// Permission bits of what is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewMode {
    /// What this umask leaves.
    Umask(u32),
    /// For the owner alone.
    Private,
}

impl NewMode {
    fn of(self, wanted: u32) -> u32 {
        match self {
            Self::Umask(umask) => wanted & !umask,
            Self::Private => wanted & 0o700,
        }
    }
}

impl ScopeFile {
    /// A file by its path below a directory.
    #[must_use]
    pub fn new(root: &Path, inside: impl Into<PathBuf>, most_bytes: usize) -> Self {
        Self { root: root.to_owned(), inside: inside.into(), most_bytes }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.inside)
    }

    fn name(&self) -> String {
        self.inside.display().to_string()
    }

    fn io(&self) -> impl Fn(io::Error) -> ScopeFileError {
        |error| ScopeFileError::Io(self.name(), error)
    }

    /// Reads it; none where there is none. Blocks for one file.
    ///
    /// # Errors
    /// See [`ScopeFileError`].
    pub fn read(&self) -> Result<Option<Found>, ScopeFileError> {
        let path = self.real_path()?;
        match itself(&path).map_err(self.io())? {
            None => return Ok(None),
            Some(facts) => self.check_kind(&facts)?,
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open(&path, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err(ScopeFileError::Link(self.name())),
            Err(error) => return Err(ScopeFileError::Io(self.name(), error.into())),
        };
        let facts = file.metadata().map_err(self.io())?;
        self.check_kind(&facts)?;
        let most = u64::try_from(self.most_bytes).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(self.io())?;
        self.check_size(bytes.len())?;
        let text = String::from_utf8(bytes).map_err(|_| ScopeFileError::NotText(self.name()))?;
        Ok(Some(Found { text, facts }))
    }

    /// Replaces it if it is still what was read. Blocks.
    ///
    /// Owner and permissions stay. Missing directories are made.
    ///
    /// # Errors
    /// See [`ScopeFileError`].
    pub fn write(
        &self,
        before: Option<&Found>,
        text: &str,
        new_mode: NewMode,
    ) -> Result<(), ScopeFileError> {
        self.check_size(text.len())?;
        if let Some(before) = before {
            self.check_kind(&before.facts)?;
        }
        let path = self.real_path()?;
        if before.is_none() {
            self.make_parents(&path, new_mode).map_err(self.io())?;
        }
        let (facts, mode) = (before.map(|before| &before.facts), new_mode.of(0o666));
        let written = replace_unchanged(&path, facts, text.as_bytes(), mode, &mut || {});
        self.done(written)
    }

    /// Removes it if it is still what was read. Blocks.
    ///
    /// # Errors
    /// See [`ScopeFileError`].
    pub fn remove(&self, before: &Found) -> Result<(), ScopeFileError> {
        let path = self.real_path()?;
        let removed = || -> io::Result<bool> {
            let now = crate::stamp::Stamp::at_itself(&path)?;
            if now != Some(crate::stamp::Stamp::of(&before.facts)) {
                return Ok(false);
            }
            fs::remove_file(&path)?;
            path.parent().map_or(Ok(()), sync_directory).map(|()| true)
        };
        self.done(removed())
    }

    /// Whether a link stands in its place. Blocks for one look.
    ///
    /// # Errors
    /// A directory on the way leads out, or it cannot be looked at.
    pub fn is_link(&self) -> Result<bool, ScopeFileError> {
        let Some(parent) = self.inside.parent() else { return Ok(false) };
        let directory = Self::new(&self.root, parent, self.most_bytes);
        let Some(name) = self.inside.file_name() else { return Ok(false) };
        let path = directory.real_path()?.join(name);
        Ok(itself(&path).map_err(self.io())?.is_some_and(|facts| facts.is_symlink()))
    }

    /// What is in it, if it is a directory. Blocks.
    ///
    /// Names in order. Hidden ones are left out.
    ///
    /// # Errors
    /// It is no directory below the root, or it cannot be read.
    pub fn entries(&self, most: usize) -> Result<Vec<Entry>, ScopeFileError> {
        self.listing(most).map(|listing| listing.entries)
    }

    /// The same, with what was left out.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn listing(&self, most: usize) -> Result<Listing, ScopeFileError> {
        let path = self.real_path()?;
        match itself(&path).map_err(self.io())? {
            None => return Ok(Listing::default()),
            Some(facts) if !facts.is_dir() => return Err(ScopeFileError::Kind(self.name())),
            Some(_) => {}
        }
        let mut listing = Listing::default();
        for (index, entry) in fs::read_dir(&path).map_err(self.io())?.enumerate() {
            if index >= MOST_ENTRIES {
                listing.is_cut = true;
                break;
            }
            let entry = entry.map_err(self.io())?;
            let Ok(name) = entry.file_name().into_string() else {
                listing.hidden += 1;
                continue;
            };
            if name.starts_with('.') || name.chars().any(char::is_control) {
                listing.hidden += 1;
                continue;
            }
            let kind = entry.file_type().map_err(self.io())?;
            let kind = if kind.is_file() {
                EntryKind::File
            } else if kind.is_dir() {
                EntryKind::Directory
            } else if kind.is_symlink() {
                EntryKind::Link
            } else {
                EntryKind::Other
            };
            // Gone meanwhile: then it has no size either.
            let bytes = entry.metadata().map_or(0, |facts| facts.len());
            listing.entries.push(Entry { name, kind, bytes });
        }
        listing.entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        listing.is_cut |= listing.entries.len() > most;
        listing.entries.truncate(most);
        Ok(listing)
    }

    /// A file below this directory.
    #[must_use]
    pub fn below(&self, inside: &str) -> Self {
        Self::new(&self.root, self.inside.join(inside), self.most_bytes)
    }

    /// Whether a directory has this name. Blocks for one look.
    ///
    /// # Errors
    /// Something on the way leads out, or it cannot be looked at.
    pub fn is_directory(&self) -> Result<bool, ScopeFileError> {
        let path = self.real_path()?;
        Ok(itself(&path).map_err(self.io())?.is_some_and(|facts| facts.is_dir()))
    }

    /// Removes a directory that is empty; another one stays. Blocks.
    ///
    /// # Errors
    /// Something on the way leads out, or it cannot be removed.
    pub fn remove_directory(&self) -> Result<(), ScopeFileError> {
        let path = self.real_path()?;
        match fs::remove_dir(&path) {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) =>
            {
                Err(ScopeFileError::Io(self.name(), error))
            }
            _ => path.parent().map_or(Ok(()), sync_directory).map_err(self.io()),
        }
    }

    fn done(&self, changed: io::Result<bool>) -> Result<(), ScopeFileError> {
        match changed {
            Ok(true) => Ok(()),
            Ok(false) => Err(ScopeFileError::Changed(self.name())),
            Err(error) => Err(ScopeFileError::Io(self.name(), error)),
        }
    }

    fn check_kind(&self, facts: &Metadata) -> Result<(), ScopeFileError> {
        if facts.is_file() && facts.nlink() <= 1 {
            Ok(())
        } else {
            Err(ScopeFileError::Kind(self.name()))
        }
    }

    fn check_size(&self, bytes: usize) -> Result<(), ScopeFileError> {
        if bytes > self.most_bytes {
            Err(ScopeFileError::TooLarge(self.name(), self.most_bytes))
        } else {
            Ok(())
        }
    }

    /// The path without links, which is below the directory.
    ///
    /// What is missing stays as it is named.
    fn real_path(&self) -> Result<PathBuf, ScopeFileError> {
        let link = || ScopeFileError::Link(self.name());
        let root = match fs::canonicalize(&self.root) {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(self.root.join(&self.inside));
            }
            Err(error) => return Err(ScopeFileError::Io(self.name(), error)),
        };
        let mut path = root.clone();
        let mut names = self.inside.components().peekable();
        while let Some(name) = names.next() {
            let Component::Normal(name) = name else { return Err(link()) };
            path.push(name);
            let Some(facts) = itself(&path).map_err(self.io())? else { continue };
            let is_link = facts.is_symlink();
            if is_link {
                // A dangling link is refused: nothing is made where it leads to.
                path = fs::canonicalize(&path).map_err(|_| link())?;
                if !path.starts_with(&root) {
                    return Err(link());
                }
            }
            if names.peek().is_some() && !path.is_dir() {
                return Err(if is_link { link() } else { ScopeFileError::Kind(self.name()) });
            }
        }
        Ok(path)
    }

    fn make_parents(&self, path: &Path, new_mode: NewMode) -> io::Result<()> {
        let Some(parent) = path.parent() else { return Ok(()) };
        let missing: Vec<&Path> = parent.ancestors().take_while(|at| !at.exists()).collect();
        for directory in missing.into_iter().rev() {
            let mode = new_mode.of(0o777);
            match DirBuilder::new().mode(mode).create(directory) {
                // The umask of this process may be stricter.
                Ok(()) => fs::set_permissions(directory, Permissions::from_mode(mode))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What stands at a path; a link is not followed.
fn itself(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(facts) => Ok(Some(facts)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const NAME: &str = "CLAUDE.md";
    const MOST_BYTES: usize = 65_536;
    const NEW: NewMode = NewMode::Umask(0o022);

    fn read(project: &Path) -> Result<Option<Found>, ScopeFileError> {
        ScopeFile::new(project, NAME, MOST_BYTES).read()
    }

    fn write(project: &Path, before: Option<&Found>, text: &str) -> Result<(), ScopeFileError> {
        ScopeFile::new(project, NAME, MOST_BYTES).write(before, text, NEW)
    }

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
        write(&project, None, "one").unwrap();
        let path = project.join(NAME);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o644);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        let found = read(&project).unwrap().unwrap();
        assert_eq!(found.text, "one");
        write(&project, Some(&found), "two").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("two", 0o664));
        assert_eq!(fs::read_dir(&project).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn who_comes_second_overwrites_nothing() {
        let (_dir, project) = project();
        write(&project, None, "one").unwrap();
        assert!(matches!(write(&project, None, "x"), Err(ScopeFileError::Changed(_))));
        let found = read(&project).unwrap().unwrap();
        fs::write(project.join(NAME), "by hand").unwrap();
        let late = write(&project, Some(&found), "two");
        assert!(matches!(late, Err(ScopeFileError::Changed(_))));
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
            assert!(write(&project, Some(&known), "mine").is_err(), "{why}");
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
        assert!(matches!(read(&project), Err(ScopeFileError::TooLarge(..))));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(read(&project), Err(ScopeFileError::NotText(_))));
    }

    #[test]
    fn a_link_to_a_file_beside_it_stays_a_link() {
        let (_dir, project) = project();
        fs::write(project.join("AGENTS.md"), "one").unwrap();
        symlink("AGENTS.md", project.join(NAME)).unwrap();
        let found = read(&project).unwrap().unwrap();
        write(&project, Some(&found), "two").unwrap();
        assert_eq!(fs::read_to_string(project.join("AGENTS.md")).unwrap(), "two");
        assert!(fs::symlink_metadata(project.join(NAME)).unwrap().is_symlink());
    }

    #[test]
    fn h39_a_directory_on_the_way_must_be_one_of_the_scope() {
        let (dir, project) = project();
        let away = dir.path().join("away");
        fs::create_dir(&away).unwrap();
        let file = ScopeFile::new(&project, ".claude/settings.json", 100);
        assert!(file.read().unwrap().is_none());
        symlink(&away, project.join(".claude")).unwrap();
        assert!(matches!(file.read(), Err(ScopeFileError::Link(_))));
        assert!(matches!(file.write(None, "{}", NEW), Err(ScopeFileError::Link(_))));
        assert_eq!(fs::read_dir(&away).unwrap().count(), 0);
        fs::remove_file(project.join(".claude")).unwrap();
        fs::write(project.join(".claude"), "a file").unwrap();
        assert!(matches!(file.write(None, "{}", NEW), Err(ScopeFileError::Kind(_))));
        fs::remove_file(project.join(".claude")).unwrap();
        file.write(None, "{}", NewMode::Private).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file.path()), 0o600);
        assert_eq!(mode(&project.join(".claude")), 0o700);
        let directory = ScopeFile::new(&project, ".claude", 0);
        fs::write(project.join(".claude/.hidden"), "").unwrap();
        symlink(&away, project.join(".claude/linked")).unwrap();
        let names = |most| -> Vec<(String, EntryKind)> {
            let entries = directory.entries(most).unwrap();
            entries.into_iter().map(|entry| (entry.name, entry.kind)).collect()
        };
        let linked = ("linked".to_owned(), EntryKind::Link);
        assert_eq!(names(9), [linked.clone(), ("settings.json".to_owned(), EntryKind::File)]);
        assert_eq!(names(1), [linked]);
        assert!(ScopeFile::new(&project, ".claude/linked", 0).is_link().unwrap());
        assert!(!file.is_link().unwrap());
        assert!(matches!(file.entries(9), Err(ScopeFileError::Kind(_))));
        let found = file.read().unwrap().unwrap();
        fs::write(file.path(), "other").unwrap();
        assert!(matches!(file.remove(&found), Err(ScopeFileError::Changed(_))));
        file.remove(&file.read().unwrap().unwrap()).unwrap();
        assert!(file.read().unwrap().is_none());
    }
}
