//! Finds the program file of the agent CLI, as an absolute path.

use crate::environment::{absolute_elements, expand_home};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why there is no agent CLI to run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BinaryError {
    /// There is no such program.
    #[error(
        "the agent CLI `{name}` was not found; install it, or set claude.binary to its full path \
         or claude.path_append to its directory"
    )]
    NotFound {
        /// The name or path that was searched for.
        name: String,
    },
    /// A file that this user may not execute.
    #[error(
        "the agent CLI {path} is not executable by this user; make it executable or correct \
         claude.binary"
    )]
    NotExecutable {
        /// What was found.
        path: PathBuf,
    },
    /// It is a directory, a device or the like.
    #[error("the agent CLI {path} is not a file; correct claude.binary")]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// A relative path, which depends on the directory.
    #[error(
        "claude.binary is the relative path `{path}`; give a plain name or an absolute path, so \
         that no project can put its own program there"
    )]
    Relative {
        /// The configured text.
        path: String,
    },
    /// The file system reported an error.
    #[error("the agent CLI {path} cannot be examined; check its directory's permissions")]
    Unreadable {
        /// What was examined.
        path: PathBuf,
        /// The error.
        #[source]
        cause: Arc<io::Error>,
    },
}

/// The absolute path of the agent CLI.
///
/// `configured` is a path (`~` is `home`) or a name, looked up on the child's `PATH` whose relative
/// elements are ignored (H34). Symbolic links are kept, because the link of a native installation leads
/// to a file that is named by version. May block as long as the file systems on `PATH` do.
///
/// # Errors
/// See [`BinaryError`].
pub fn resolve(
    configured: &str,
    home: Option<&Path>,
    child_path: &OsStr,
) -> Result<PathBuf, BinaryError> {
    let path = expand_home(Path::new(configured), home);
    if path.is_absolute() {
        return check(&path).map(|()| path);
    }
    if configured.contains('/') {
        let path = configured.to_owned();
        return Err(BinaryError::Relative { path });
    }
    let name = configured.to_owned();
    if configured.is_empty() || configured == "." || configured == ".." {
        return Err(BinaryError::NotFound { name });
    }
    // Like a shell: files that cannot be run are skipped, and reported only if none can be run.
    let mut obstacle = None;
    for dir in std::env::split_paths(&absolute_elements(child_path)) {
        let candidate = dir.join(configured);
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(BinaryError::NotFound { .. }) => {}
            Err(other) => obstacle = obstacle.or(Some(other)),
        }
    }
    Err(obstacle.unwrap_or(BinaryError::NotFound { name }))
}

fn check(path: &Path) -> Result<(), BinaryError> {
    let facts = std::fs::metadata(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            BinaryError::NotFound { name: path.display().to_string() }
        }
        _ => BinaryError::Unreadable { path: path.to_owned(), cause: Arc::new(cause) },
    })?;
    if !facts.is_file() {
        return Err(BinaryError::NotAFile { path: path.to_owned() });
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|_| BinaryError::NotExecutable { path: path.to_owned() })
}

/// One state of the program file: whatever replaces or upgrades it changes this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl BinaryIdentity {
    /// The state of the file that `path` leads to.
    ///
    /// # Errors
    /// The file is gone or unreadable.
    pub fn of(path: &Path) -> io::Result<Self> {
        let facts = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
        })
    }

    /// The path it was examined by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn program(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/true\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_name_is_looked_up_in_absolute_directories_only() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("first"), root.path().join("second"));
        program(&first.join("claude"), 0o644);
        program(&second.join("claude"), 0o755);
        fs::create_dir(root.path().join("third")).unwrap();
        let path = format!(".::bin:{}:{}", first.display(), second.display());
        let found = resolve("claude", None, OsStr::new(&path)).unwrap();
        assert_eq!(found, second.join("claude"));

        let only_planted = resolve("Cargo.toml", None, OsStr::new(".:")).unwrap_err();
        assert!(matches!(only_planted, BinaryError::NotFound { .. }));
    }

    #[test]
    fn a_path_is_taken_as_it_is_and_links_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("share/claude/versions/2.1.197");
        program(&real, 0o755);
        symlink(&real, root.path().join("claude")).unwrap();
        let found = resolve("~/claude", Some(root.path()), OsStr::new("")).unwrap();
        assert_eq!(found, root.path().join("claude"));
    }

    /// F13.
    #[test]
    fn what_cannot_be_run_is_named_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        program(&root.path().join("plain"), 0o644);
        let at = |name: &str| root.path().join(name).display().to_string();
        let check = |configured: &str| resolve(configured, None, OsStr::new("")).unwrap_err();
        assert!(matches!(check(&at("plain")), BinaryError::NotExecutable { .. }));
        assert!(matches!(check(&at("")), BinaryError::NotAFile { .. }));
        assert!(matches!(check(&at("missing")), BinaryError::NotFound { .. }));
        assert!(matches!(check(&at("plain/below")), BinaryError::NotFound { .. }));
        assert!(matches!(check("bin/claude"), BinaryError::Relative { .. }));
        assert!(matches!(check("./claude"), BinaryError::Relative { .. }));
        assert!(matches!(check(""), BinaryError::NotFound { .. }));
        assert!(matches!(check(".."), BinaryError::NotFound { .. }));
    }

    #[test]
    fn replacing_the_program_changes_its_identity() {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (root.path().join("1.0.0"), root.path().join("1.0.1"));
        program(&old, 0o755);
        program(&new, 0o755);
        let link = root.path().join("claude");
        symlink(&old, &link).unwrap();
        let before = BinaryIdentity::of(&link).unwrap();
        assert_eq!(BinaryIdentity::of(&link).unwrap(), before);
        fs::remove_file(&link).unwrap();
        symlink(&new, &link).unwrap();
        assert_ne!(BinaryIdentity::of(&link).unwrap(), before);
    }
}
