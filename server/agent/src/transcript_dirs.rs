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
    Directories::read(home, most).of(home, project)
}

/// The agent's directories of all projects at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Directories {
    names: Vec<String>,
}

impl Directories {
    /// Lists at most `most` of them. Blocks.
    pub(crate) fn read(home: &AgentHome, most: usize) -> Self {
        let entries = fs::read_dir(home.projects_dir()).into_iter().flatten();
        let names = entries.filter_map(Result::ok).take(most);
        Self { names: names.filter_map(|entry| entry.file_name().into_string().ok()).collect() }
    }

    /// Those of a project and its worktrees, its own first.
    pub(crate) fn of(&self, home: &AgentHome, project: &Path) -> Vec<PathBuf> {
        let Some(path) = project.to_str() else { return Vec::new() };
        let worktrees = slug(&format!("{path}/.claude/worktrees/"));
        let beside = self.names.iter().filter(|name| name.starts_with(&worktrees));
        let beside = beside.map(|name| home.projects_dir().join(name));
        std::iter::once(home.project_dir(path)).chain(beside).collect()
    }
}
