//! Directories with the transcripts of a project (`agent-cli` §6.1).

use crate::home::AgentHome;
use std::fs;
use std::path::{Path, PathBuf};
use svc_domain::slug::slug;

/// Most entries of the agent's directory of projects that are looked at.
pub(crate) const MOST: usize = 10_000;

/// Directories of a project and its worktrees, its own first. Blocks.
///
/// At most `most` entries are looked at for worktrees. Different paths can share a name, so a
/// transcript counts only if the `cwd` in it fits.
pub(crate) fn directories(home: &AgentHome, project: &Path, most: usize) -> Vec<PathBuf> {
    let Some(path) = project.to_str() else { return Vec::new() };
    let own = home.project_dir(path);
    let worktrees = slug(&format!("{path}/.claude/worktrees/"));
    let mut found = vec![own.clone()];
    let beside = own.parent().and_then(|all| fs::read_dir(all).ok());
    for entry in beside.into_iter().flatten().filter_map(Result::ok).take(most) {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&worktrees)) {
            found.push(entry.path());
        }
    }
    found
}
