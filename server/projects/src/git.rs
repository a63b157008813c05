//! Facts about git repositories, read from their files (format of git 2.x).

use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Of `HEAD`, `commondir` and a `.git` file.
const SMALL: u64 = 4 * 1024;

/// Of `packed-refs`; a repository with a million branches stays below.
const PACKED: u64 = 128 * 1024 * 1024;

/// Whether a repository has a commit to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commits {
    /// Its current branch has one.
    Some,
    /// Its current branch has none yet.
    None,
    /// Its files do not tell: an unknown layout, or no permission.
    Unknown,
}

/// Whether the current branch of the repository at `git_root` has a commit. Blocks for some small
/// files.
#[must_use]
pub fn commits(git_root: &Path) -> Commits {
    look(git_root).unwrap_or(Commits::Unknown)
}

fn look(git_root: &Path) -> io::Result<Commits> {
    let own = git_dir(git_root)?;
    let shared = match small(&own.join("commondir")) {
        Ok(text) => own.join(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => own.clone(),
        Err(error) => return Err(error),
    };
    let head = small(&own.join("HEAD"))?;
    let Some(branch) = head.strip_prefix("ref:").map(str::trim) else {
        let is_hash = matches!(head.len(), 40 | 64) && head.bytes().all(|b| b.is_ascii_hexdigit());
        return Ok(if is_hash { Commits::Some } else { Commits::Unknown });
    };
    // References of this layout are in one database, and `HEAD` is a stand-in.
    if shared.join("reftable").exists() {
        return Ok(Commits::Unknown);
    }
    if !branch.starts_with("refs/") || branch.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Ok(Commits::Unknown);
    }
    match small(&shared.join(branch)) {
        Ok(hash) if !hash.is_empty() => return Ok(Commits::Some),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match is_packed(&shared.join("packed-refs"), branch) {
        Ok(true) => Ok(Commits::Some),
        Ok(false) => Ok(Commits::None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Commits::None),
        Err(error) => Err(error),
    }
}

/// `.git`, or where the file in its place points (a worktree or submodule).
fn git_dir(git_root: &Path) -> io::Result<PathBuf> {
    let place = git_root.join(".git");
    if fs::metadata(&place)?.is_dir() {
        return Ok(place);
    }
    let text = small(&place)?;
    let target = text.strip_prefix("gitdir:").ok_or(io::ErrorKind::InvalidData)?;
    Ok(git_root.join(target.trim()))
}

fn is_packed(path: &Path, branch: &str) -> io::Result<bool> {
    let mut lines = BufReader::new(regular(path)?.take(PACKED));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        let name = line.trim_ascii().splitn(2, |b| *b == b' ').nth(1);
        if name == Some(branch.as_bytes()) {
            return Ok(true);
        }
        line.clear();
    }
    Ok(false)
}

fn small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    regular(path)?.take(SMALL).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// A cloned repository is hostile: a pipe or device in it must not hold anybody up (H41).
fn regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Commits) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(commits(&root.path().join("p")), expected, "{files:?}");
    }

    #[test]
    fn a_branch_with_a_commit_is_found_loose_packed_and_detached() {
        let head = ("p/.git/HEAD", "ref: refs/heads/main\n");
        check(&[head, ("p/.git/refs/heads/main", HASH)], Commits::Some);
        let packed = format!("# pack-refs with: peeled\n{HASH} refs/heads/main\n^{HASH}\n");
        check(&[head, ("p/.git/packed-refs", &packed)], Commits::Some);
        check(&[("p/.git/HEAD", HASH)], Commits::Some);
    }

    #[test]
    fn a_fresh_repository_has_no_commit() {
        let head = ("p/.git/HEAD", "ref: refs/heads/main\n");
        check(&[head], Commits::None);
        check(&[head, ("p/.git/refs/heads/other", HASH)], Commits::None);
        let longer = format!("{HASH} refs/heads/main2\n");
        check(&[head, ("p/.git/packed-refs", &longer)], Commits::None);
    }

    #[test]
    fn a_worktree_is_followed_to_its_repository() {
        check(
            &[
                ("p/.git", "gitdir: ../repo/.git/worktrees/p\n"),
                ("repo/.git/worktrees/p/HEAD", "ref: refs/heads/topic\n"),
                ("repo/.git/worktrees/p/commondir", "../..\n"),
                ("repo/.git/refs/heads/topic", HASH),
            ],
            Commits::Some,
        );
    }

    /// H41.
    #[test]
    fn what_is_not_understood_is_unknown() {
        check(&[("x", "")], Commits::Unknown);
        check(&[("p/.git/config", "")], Commits::Unknown);
        check(&[("p/.git", "elsewhere")], Commits::Unknown);
        check(&[("p/.git/HEAD", "garbage")], Commits::Unknown);
        check(&[("p/.git/HEAD", "ref: ../../../etc/passwd")], Commits::Unknown);
        check(&[("p/.git/HEAD", "ref: refs/../../../x")], Commits::Unknown);
        let reftable = ("p/.git/reftable/tables.list", "");
        check(&[("p/.git/HEAD", "ref: refs/heads/.invalid"), reftable], Commits::Unknown);
    }

    /// The real program agrees.
    #[test]
    fn repositories_made_by_git_are_understood() {
        let root = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
            let mut command = std::process::Command::new("git");
            command.current_dir(root.path()).args(identity).args(args);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().map(|output| output.status.success())
        };
        let Ok(true) = git(&["init", "-q"]) else {
            return; // no git here; the tables above stand
        };
        assert_eq!(commits(root.path()), Commits::None);
        assert!(git(&["commit", "-q", "--allow-empty", "-m", "x"]).unwrap());
        assert_eq!(commits(root.path()), Commits::Some);
        assert!(git(&["pack-refs", "--all"]).unwrap());
        assert_eq!(commits(root.path()), Commits::Some);
        assert!(git(&["worktree", "add", "-q", "wt"]).unwrap());
        assert_eq!(commits(&root.path().join("wt")), Commits::Some);
    }
}
