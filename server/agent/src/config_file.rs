//! The agent config file: finding, reading and replacing it beside other writers.
//!
//! The agent takes no lock that could be shared. So every change is checked again just before the
//! file is replaced, and read back afterwards (agent 2.1.197).

use crate::json_edit::{EditError, with_true};
use crate::stamp::{Stamp, replace_unchanged};
use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Largest file. Real ones have some MiB after years of use.
const SIZE_CAP: u64 = 64 * 1024 * 1024;

/// Permission bits of a new file: it may hold credentials.
const PRIVATE: u32 = 0o600;

/// Most attempts to change the file while others write it.
const TRIES: u32 = 3;

/// The name of the file in messages, without its path on this machine.
fn named(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("the agent's configuration file {name} (in its home directory)")
}

/// Why the agent config file was not read or changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Its content is not that of an agent config file.
    #[error(
        "{} was left unchanged because {problem}; repair the file, then try again",
        named(path)
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column if known.
        problem: String,
    },
    /// It could not be read.
    #[error("{} cannot be read; check its owner and permissions", named(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// It could not be replaced.
    #[error("{} cannot be written; check permissions and free space of its directory", named(path))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// It is a link that leads out of the user's directories.
    #[error(
        "{} was left unchanged because it is a link that leads outside of the home directory; \
         replace the link by the file",
        named(path)
    )]
    Outside {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// Other programs changed it during every attempt.
    #[error(
        "{} is being written by another program all the time; try again in a moment",
        named(path)
    )]
    Contested {
        /// The file.
        path: PathBuf,
    },
    /// Another process of this service is changing it.
    #[error("{} is being changed by another operation; try again in a moment", named(path))]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Its path is not known.
    #[error(transparent)]
    Home(#[from] crate::home::HomeError),
}

impl TrustError {
    /// Whether the content of the file is the cause: then trying again cannot help.
    #[must_use]
    pub fn is_content(&self) -> bool {
        match self {
            Self::Content { .. } | Self::Outside { .. } => true,
            Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::Contested { .. }
            | Self::Busy { .. }
            | Self::Home(_) => false,
        }
    }
}

/// The content of a file, with its state.
pub(crate) struct Content {
    pub text: String,
    pub stamp: Stamp,
    facts: fs::Metadata,
}

/// Reads the file. `None` if there is none. Never waits for the writer of a pipe.
pub(crate) fn read(path: &Path) -> Result<Option<Content>, TrustError> {
    let unreadable = |cause: io::Error| TrustError::Unreadable { path: path.to_owned(), cause };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(unreadable(error.into())),
    };
    let facts = file.metadata().map_err(unreadable)?;
    let content = |problem: String| TrustError::Content { path: path.to_owned(), problem };
    if !facts.is_file() {
        return Err(content("it is not a regular file".to_owned()));
    }
    if facts.len() > SIZE_CAP {
        return Err(content("it is larger than 64 MiB".to_owned()));
    }
    // As long as it is: a buffer that grows by doubling takes twice as much.
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len() + 1).unwrap_or_default());
    file.take(SIZE_CAP).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        content(format!("it is not valid UTF-8 at line {line}, column {column}"))
    })?;
    Ok(Some(Content { text, stamp: Stamp::of(&facts), facts }))
}

/// The steps of a change. Tests write the file between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The new content is in a temporary file.
    Prepared,
    /// The new content is in place.
    Replaced,
}

/// What a change makes of the text of the file; nothing when it is already so.
pub(crate) type Edit<'a> = &'a dyn Fn(&str) -> Result<Option<String>, EditError>;

/// Sets flags in the file, each to `true`. Returns whether anything was written.
///
/// As [`change`].
pub(crate) fn set_flags(
    path: &Path,
    homes: &[&Path],
    flags: &[&[&str]],
    at: &mut dyn FnMut(Moment),
) -> Result<bool, TrustError> {
    let edit = |text: &str| {
        let mut current = None;
        for flag in flags {
            let edited = with_true(current.as_deref().unwrap_or(text), flag)?;
            current = edited.or(current);
        }
        Ok(current)
    };
    change(path, homes, &edit, at)
}

/// Changes the file until it is as `edit` wants it.
///
/// Returns whether anything was written.
///
/// The caller holds the lock against other processes of this service. A link is followed as long
/// as it stays in the home directory (or the agent home) and is kept.
pub(crate) fn change(
    path: &Path,
    homes: &[&Path],
    edit: Edit<'_>,
    at: &mut dyn FnMut(Moment),
) -> Result<bool, TrustError> {
    let path = &target(path, homes)?;
    let edited = |text: &str| {
        edit(text)
            .map_err(|error| TrustError::Content { path: path.clone(), problem: error.to_string() })
    };
    let mut written = false;
    for _ in 0..TRIES {
        let before = read(path)?;
        let text = before.as_ref().map_or("{}", |content| content.text.as_str());
        let Some(text) = edited(text)? else {
            return Ok(written);
        };
        if replace(path, before.as_ref(), &text, at)? {
            written = true;
            at(Moment::Replaced);
        }
        // Again: either somebody was faster, or the file is read back to check the change.
    }
    match read(path)? {
        Some(content) if edited(&content.text)?.is_none() => Ok(written),
        Some(_) | None => Err(TrustError::Contested { path: path.clone() }),
    }
}

/// The file to write when `path` may be a link.
fn target(path: &Path, homes: &[&Path]) -> Result<PathBuf, TrustError> {
    let unreadable = |cause| TrustError::Unreadable { path: path.to_owned(), cause };
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_symlink() => {}
        Ok(_) => return Ok(path.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
        Err(error) => return Err(unreadable(error)),
    }
    // The target of a dangling link is not created. The error is that of the missing target.
    let target = fs::canonicalize(path).map_err(unreadable)?;
    let inside = |home: &&Path| fs::canonicalize(home).is_ok_and(|home| target.starts_with(home));
    if homes.iter().any(inside) {
        Ok(target)
    } else {
        Err(TrustError::Outside { path: path.to_owned(), target })
    }
}

/// Replaces the content that was read. Returns false if the file changed meanwhile.
fn replace(
    path: &Path,
    before: Option<&Content>,
    text: &str,
    at: &mut dyn FnMut(Moment),
) -> Result<bool, TrustError> {
    let attempt = |at: &mut dyn FnMut(Moment)| -> io::Result<bool> {
        if let Some(before) = before {
            keep_backup(path, before)?;
        }
        let facts = before.map(|before| &before.facts);
        replace_unchanged(path, facts, text.as_bytes(), PRIVATE, &mut || at(Moment::Prepared))
    };
    attempt(at).map_err(|cause| TrustError::Unwritable { path: path.to_owned(), cause })
}

/// Makes a backup before the first change.
fn keep_backup(path: &Path, content: &Content) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".bak");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(content.facts.mode() & 0o700);
    match options.open(&name) {
        Ok(mut file) => {
            let written = file.write_all(content.text.as_bytes()).and_then(|()| file.sync_all());
            if written.is_err() {
                let _ = fs::remove_file(&name); // half a backup is worse than none
            }
            written
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
