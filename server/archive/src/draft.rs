//! A file that has no name until it is complete.
//!
//! A killed writer leaves nothing behind where the file system can make files without a name
//! (`O_TMPFILE`). Elsewhere a temporary name is used.

use rustix::fs::{AtFlags, CWD, linkat};
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

const PREFIX: &str = ".svc-backup-";
const SUFFIX: &str = ".tmp";

/// A private file (0600) in the directory of its later name.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    directory: PathBuf,
    /// Its temporary name where it cannot be without one.
    named: Option<TempPath>,
}

impl Draft {
    /// Creates it.
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        let directory = directory.to_owned();
        match nameless(&directory) {
            Ok(file) => Ok(Self { file: file.into(), directory, named: None }),
            // Not every file system can; some old kernels take the flag for a directory.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let made = builder().tempfile_in(&directory)?;
                let (file, path) = made.into_parts();
                Ok(Self { file, directory, named: Some(path) })
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// The file, for writing and reading.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, durably.
    ///
    /// # Errors
    /// Nothing has that name because of this; `AlreadyExists` when something has and must stay.
    pub(crate) fn publish(&mut self, path: &Path, replace: bool) -> io::Result<()> {
        self.file.sync_all()?;
        match self.named.take() {
            Some(named) => {
                let done = match replace {
                    true => named.persist(path),
                    false => named.persist_noclobber(path),
                };
                if let Err(error) = done {
                    self.named = Some(error.path);
                    return Err(error.error);
                }
            }
            None => self.link(path, replace)?,
        }
        File::open(&self.directory)?.sync_all()
    }

    fn link(&self, path: &Path, replace: bool) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let link = |to: &Path| {
            linkat(CWD, own.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
        };
        if !replace {
            return link(path);
        }
        // A link replaces nothing; only a rename does.
        let named = builder().make_in(&self.directory, |name| link(name))?;
        named.into_temp_path().persist(path).map_err(|error| error.error)
    }
}

#[cfg(target_os = "linux")]
fn nameless(directory: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Result<OwnedFd, Errno> {
    Err(Errno::OPNOTSUPP)
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder
}
