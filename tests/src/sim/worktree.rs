//! Git worktrees of sessions: really made, locked, dirtied and removed by git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::double::Double;
use super::failure::Failure;
use super::ids::Draw;
use super::trust::git_root;
use super::values::WorktreeKind;

/// A worktree made for one session.
#[derive(Debug)]
pub(crate) struct Worktree {
    pub(crate) path: PathBuf,
    root: PathBuf,
    branch: String,
    /// Commit it started from.
    base: String,
}

/// What became of a worktree at the end of its session.
#[derive(Debug)]
pub(crate) enum Ended {
    Removed,
    /// Uncommitted changes or commits of its own.
    Kept {
        dirty: bool,
        ahead: u64,
    },
    /// Clean, but git would not remove it (it is locked).
    Stuck,
}

/// Makes `.claude/worktrees/<name>` on branch `worktree-<name>` (agent 2.1.197).
pub(crate) fn create(double: &Double, name: &str) -> Result<Worktree, String> {
    let root = git_root(&double.cwd).ok_or("not a git repository")?;
    let base = git(&root, &["rev-parse", "--verify", "HEAD"])
        .map_err(|cause| format!("Failed to resolve base branch \"HEAD\": {cause}"))?;
    if double.knobs.worktree == WorktreeKind::Fail {
        return Err("fatal: could not create work tree dir: No space left on device".into());
    }
    let path = root.join(".claude/worktrees").join(name);
    let branch = format!("worktree-{name}");
    let place = path.to_string_lossy();
    git(&root, &["worktree", "add", "-b", &branch, &place, "HEAD"])?;
    if double.knobs.worktree == WorktreeKind::Locked || double.profile.locks_worktrees() {
        let reason = format!("claude session {}", std::process::id());
        git(&root, &["worktree", "lock", "--reason", &reason, &place])?;
    }
    if double.knobs.worktree == WorktreeKind::Dirty {
        fs::write(path.join("uncommitted.txt"), "left by the session\n")
            .map_err(|e| e.to_string())?;
    }
    Ok(Worktree { path, root, branch, base })
}

/// `--worktree NAME`: creates or reuses a worktree, enters it and returns its path.
pub(crate) fn enter(double: &Double, name: Option<&str>) -> Result<PathBuf, Failure> {
    let cwd = double.cwd.display();
    let Some(root) = git_root(&double.cwd) else {
        return Err(Failure::agent(format!(
            "Error: Can only use --worktree in a git repository, but {cwd} is not a git \
             repository. Configure a WorktreeCreate hook in settings.json to use --worktree with \
             other VCS systems."
        )));
    };
    let drawn = || Draw::new(double.knobs.seed, &["worktree"]).uuid();
    let name = name.map_or_else(drawn, |name| name.replace('/', "+"));
    if name == "." || name == ".." || name.is_empty() {
        return Err(Failure::agent(format!("Error creating worktree: invalid name {name:?}")));
    }
    let path = root.join(".claude/worktrees").join(&name);
    if !path.join(".git").exists() {
        create(double, &name)
            .map_err(|cause| Failure::agent(format!("Error creating worktree: {cause}")))?;
    }
    std::env::set_current_dir(&path)
        .map_err(|e| Failure::agent(format!("Error: cannot enter {}: {e}", path.display())))?;
    Ok(path)
}

impl Worktree {
    /// Removes the worktree and its branch unless there is work in it.
    pub(crate) fn end(self) -> Ended {
        let dirty = git(&self.path, &["status", "--porcelain"]).is_ok_and(|out| !out.is_empty());
        let range = format!("{}..HEAD", self.base);
        let ahead = git(&self.path, &["rev-list", "--count", &range])
            .ok()
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        if dirty || ahead > 0 {
            return Ended::Kept { dirty, ahead };
        }
        if git(&self.root, &["worktree", "remove", &self.path.to_string_lossy()]).is_err() {
            return Ended::Stuck;
        }
        let _ = git(&self.root, &["branch", "-D", &self.branch]);
        Ended::Removed
    }
}

/// Runs git and returns what it printed, or its complaint.
fn git(dir: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("git cannot be run: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
