//! Facts about a git repository, read from its files.
//!
//! The content of a repository is not trusted. Reading ends at files that are too large or not
//! regular, and at references that are not valid or take more than a few steps.

mod command;
mod elsewhere;

pub use command::GitError;
pub(crate) use command::GuardedGit;
pub(crate) use elsewhere::leads_elsewhere;

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// Most bytes of `HEAD`, loose references and links between directories: one line.
const LINE_FILE: usize = 8 * 1024;

/// Most bytes of packed references, about 120,000. With more there is a commit.
const PACKED_REFS: usize = 8 * 1024 * 1024;

/// Most symbolic references to follow; the same limit as git's.
const MAX_HOPS: usize = 5;

/// Whether `dir` contains a `.git` (`agent-cli` §6.3).
///
/// A link counts and is not followed, because the trust rule for repositories is the stricter one.
pub(crate) fn has_dot_git(dir: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(dir.join(".git")) {
        Ok(facts) => Ok(facts.is_dir() || facts.is_file() || facts.is_symlink()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The nearest directory with a `.git`, at `dir` or above it.
///
/// A directory that cannot be read has none.
pub(crate) fn root_at_or_above(dir: &Path) -> Option<PathBuf> {
    let found = dir.ancestors().find(|above| has_dot_git(above).unwrap_or(false));
    found.map(Path::to_owned)
}

/// Whether `HEAD` of the repository at `root` leads to a commit.
pub(crate) fn has_commit(root: &Path) -> bool {
    let Some(dirs) = GitDirs::of(root) else { return false };
    let Some(mut head) = read_line(&dirs.own.join("HEAD")) else { return false };
    if is_table(&dirs.common) {
        return true;
    }
    for _ in 0..MAX_HOPS {
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
            return is_object_id(&head);
        };
        if !is_ref_name(name) {
            return false;
        }
        match dirs.loose(name) {
            Some(next) => head = next,
            None => return dirs.packed(name),
        }
    }
    false
}

/// The directories of a repository.
pub(crate) struct GitDirs {
    /// Belongs to this checkout.
    pub(crate) own: PathBuf,
    /// Shared by all worktrees.
    pub(crate) common: PathBuf,
}

impl GitDirs {
    pub(crate) fn of(root: &Path) -> Option<Self> {
        let dot_git = root.join(".git");
        let own = if dot_git.is_dir() {
            dot_git
        } else {
            // A linked worktree or a submodule.
            let line = read_line(&dot_git)?;
            root.join(line.strip_prefix("gitdir:")?.trim())
        };
        let common = match read_line(&own.join("commondir")) {
            Some(line) => own.join(line),
            None => own.clone(),
        };
        Some(Self { own, common })
    }

    fn loose(&self, name: &str) -> Option<String> {
        read_line(&self.own.join(name)).or_else(|| read_line(&self.common.join(name)))
    }

    fn packed(&self, name: &str) -> bool {
        let Ok(content) = read_bounded(&self.common.join("packed-refs"), PACKED_REFS) else {
            return false;
        };
        let Some(content) = content else { return true };
        content.split(|byte| *byte == b'\n').any(|line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(id) = line.strip_suffix(name.as_bytes()) else { return false };
            let Some(id) = id.strip_suffix(b" ") else { return false };
            std::str::from_utf8(id).is_ok_and(is_object_id)
        })
    }
}

/// Whether references are in binary tables. Then `HEAD` says nothing.
fn is_table(common: &Path) -> bool {
    read_line(&common.join("reftable/tables.list")).is_some_and(|first| !first.is_empty())
}

/// Whether a text is a SHA-1 or SHA-256. All zeros mean "no object".
fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte != b'0')
}

/// Whether a name is a path that stays below `refs/`.
fn is_ref_name(name: &str) -> bool {
    name.starts_with("refs/")
        && !name.contains('\0')
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

pub(crate) fn read_line(file: &Path) -> Option<String> {
    let content = String::from_utf8(read_bounded(file, LINE_FILE).ok()??).ok()?;
    content.lines().next().map(|line| line.trim().to_owned())
}

/// Reads a regular file. `None` if it is longer than `limit` bytes.
///
/// A pipe or a device is an error at once.
pub(crate) fn read_bounded(path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut content)?;
    Ok((content.len() <= limit).then_some(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ID: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    fn repository(head: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git/refs/heads")).unwrap();
        fs::write(root.path().join(".git/HEAD"), head).unwrap();
        root
    }

    #[test]
    fn a_head_that_leads_to_no_object_is_no_commit() {
        let secret = tempfile::NamedTempFile::new().unwrap();
        fs::write(secret.path(), ID).unwrap();
        for head in [
            String::new(),
            "ref: refs/heads/main\n".into(),
            "ref: refs/heads/self\n".into(),
            format!("ref: refs/../../../../../../../../../..{}", secret.path().display()),
            format!("ref: {}", secret.path().display()),
            "0".repeat(40),
            ID[1..].to_owned(),
            "x".repeat(100_000),
        ] {
            let root = repository(&head);
            fs::write(root.path().join(".git/refs/heads/self"), "ref: refs/heads/self").unwrap();
            assert!(!has_commit(root.path()), "{head:.80}");
        }
    }

    #[test]
    fn a_pipe_in_place_of_a_git_file_does_not_block() {
        use rustix::fs::{CWD, FileType, mknodat};
        let root = repository("ref: refs/heads/main\n");
        for pipe in [".git/refs/heads/main", ".git/packed-refs"] {
            let mode = Mode::from_raw_mode(0o600);
            mknodat(CWD, root.path().join(pipe), FileType::Fifo, mode, 0).unwrap();
        }
        assert!(!has_commit(root.path()));
    }

    #[test]
    fn loose_packed_detached_and_symbolic_heads_lead_to_a_commit() {
        assert!(has_commit(repository(ID).path()));
        assert!(has_commit(repository(&"ab".repeat(32)).path()));

        let loose = repository("ref: refs/heads/main\n");
        fs::write(loose.path().join(".git/refs/heads/main"), format!("{ID}\n")).unwrap();
        assert!(has_commit(loose.path()));

        let packed = repository("ref: refs/heads/main\n");
        let refs = format!("# pack-refs with: peeled\n{ID} refs/heads/main\n^{ID}\n");
        fs::write(packed.path().join(".git/packed-refs"), refs).unwrap();
        assert!(has_commit(packed.path()));
        let other = format!("{ID} refs/heads/not/refs/heads/main\n");
        fs::write(packed.path().join(".git/packed-refs"), other).unwrap();
        assert!(!has_commit(packed.path()));

        let symbolic = repository("ref: refs/heads/main\n");
        fs::write(symbolic.path().join(".git/refs/heads/main"), "ref: refs/heads/b").unwrap();
        fs::write(symbolic.path().join(".git/refs/heads/b"), ID).unwrap();
        assert!(has_commit(symbolic.path()));

        let tables = repository("ref: refs/heads/.invalid\n");
        fs::create_dir(tables.path().join(".git/reftable")).unwrap();
        fs::write(tables.path().join(".git/reftable/tables.list"), "0x1-0x2-a.ref\n").unwrap();
        assert!(has_commit(tables.path()));
    }
}
