//! Whether git would write only into the repository that a directory seems to be (H41).
//!
//! A project is content of somebody else. Its `.git` may be a file, a link or a directory with links
//! in it, and each may lead into another repository, where a launch with a worktree would then
//! write. So every way out has to be answered from the other side: a worktree by the repository's
//! pointer back to it, a submodule by the `core.worktree` of its own directory.

use super::read_bounded;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Most bytes of a configuration file, and most files that include one another.
const CONFIG: usize = 256 * 1024;
const INCLUDED: usize = 16;

/// Names in a repository's directory that git writes below while it makes a worktree.
const WRITTEN: [&str; 12] = [
    "HEAD",
    "config",
    "config.worktree",
    "index",
    "info",
    "logs",
    "logs/refs",
    "logs/refs/heads",
    "objects",
    "packed-refs",
    "refs",
    "worktrees",
];
/// Directories whose entries may not be links to another place either.
const LISTED: [&str; 2] = ["refs", "refs/heads"];
/// Most entries of those that are looked at: more branches than that are packed.
const ENTRIES: usize = 10_000;

/// Where the agent makes worktrees below the project (agent 2.1.197).
const PLACES: [&str; 2] = [".claude", ".claude/worktrees"];

/// What leads out of the repository at `root`, or out of the project in it.
pub(crate) fn leads_elsewhere(root: &Path, project: &Path) -> Option<String> {
    let lead = place_leads_out(project).or_else(|| {
        let root = root.canonicalize().ok()?;
        match repository(&root) {
            Ok(repository) => repository.leads_out(&root),
            Err(lead) => Some(lead),
        }
    });
    lead.map(|lead| format!("{lead} leads to another place"))
}

fn place_leads_out(project: &Path) -> Option<String> {
    let project = project.canonicalize().ok()?;
    let is_out = |name: &&&str| leads_out(&project.join(name), &project);
    PLACES.iter().find(is_out).map(|name| format!("its `{name}`"))
}

/// A repository whose directories belong to the checkout at its root.
struct Repository {
    own: PathBuf,
    common: PathBuf,
    /// It is one of several checkouts, and the others are not asked for their configuration.
    is_linked: bool,
}

/// Follows `.git`, and demands the way back.
fn repository(root: &Path) -> Result<Repository, String> {
    let dot_git = root.join(".git");
    let facts = dot_git.symlink_metadata().map_err(|_| "its `.git`".to_owned())?;
    let own = match () {
        () if facts.is_dir() => dot_git.clone(),
        // A link stays inside, or it is somebody else's.
        () if facts.is_symlink() => {
            let real = real(&dot_git).filter(|real| real.starts_with(root) && real.is_dir());
            real.ok_or("its `.git`")?
        }
        () => {
            let line = super::read_line(&dot_git).ok_or("its `.git`")?;
            let named = line.strip_prefix("gitdir:").ok_or("its `.git`")?.trim();
            real(&root.join(named)).ok_or("its `.git`")?
        }
    };
    let common = match super::read_line(&own.join("commondir")) {
        Some(line) => real(&own.join(line)).ok_or("its `commondir`")?,
        None => own.clone(),
    };
    let is_linked = common != own;
    if is_linked {
        let is_listed = own.parent() == Some(&common.join("worktrees"));
        let back = super::read_line(&own.join("gitdir")).and_then(|line| real(&own.join(line)));
        if !is_listed || back.as_deref() != Some(&dot_git) || !facts.is_file() {
            return Err("its `.git`".to_owned());
        }
    } else if !own.starts_with(root) {
        // A submodule: its directory names the checkout.
        let named = Settings::of(&own).worktrees;
        let is_back = |named: &PathBuf| real(named).as_deref() == Some(root);
        if named.is_empty() || !named.iter().all(is_back) {
            return Err("its `.git`".to_owned());
        }
    }
    Ok(Repository { own, common, is_linked })
}

impl Repository {
    fn leads_out(&self, root: &Path) -> Option<String> {
        let links = |dir: &Path| {
            let out = |name: &&str| leads_out(&dir.join(name), dir);
            WRITTEN.into_iter().find(out).map(|name| format!("its `.git/{name}`"))
        };
        let listed = || {
            LISTED.into_iter().find_map(|name| {
                let entries = self.common.join(name).read_dir().ok()?;
                let mut entries = entries.filter_map(Result::ok).take(ENTRIES);
                let is_out = entries.any(|entry| leads_out(&entry.path(), &self.common));
                is_out.then(|| format!("something in its `.git/{name}`"))
            })
        };
        links(&self.own).or_else(|| links(&self.common)).or_else(listed).or_else(|| {
            // The configuration of a repository with several checkouts is that of the first.
            let settings = if self.is_linked {
                Settings::of_worktree(&self.own)
            } else {
                Settings::of(&self.own)
            };
            let is_here = |named: &PathBuf| real(named).as_deref() == Some(root);
            let is_out = !settings.worktrees.iter().all(is_here) || settings.is_unread;
            is_out.then(|| "its `core.worktree`".to_owned())
        })
    }
}

/// Whether something is a link that ends outside `inside`.
fn leads_out(path: &Path, inside: &Path) -> bool {
    let is_link = path.symlink_metadata().as_ref().is_ok_and(Metadata::is_symlink);
    is_link && !real(path).is_some_and(|real| real.starts_with(inside))
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// What the configuration of a repository says about its checkout.
#[derive(Default)]
struct Settings {
    /// Every `core.worktree` that may count.
    worktrees: Vec<PathBuf>,
    /// A file was too large, or there were too many: what they say is not known.
    is_unread: bool,
    read: usize,
}

impl Settings {
    fn of(own: &Path) -> Self {
        let mut settings = Self::of_worktree(own);
        settings.read_file(&own.join("config"), own);
        settings
    }

    fn of_worktree(own: &Path) -> Self {
        let mut settings = Self::default();
        settings.read_file(&own.join("config.worktree"), own);
        settings
    }

    /// Reads a file and those that it includes, whether their condition holds or not.
    fn read_file(&mut self, file: &Path, own: &Path) {
        self.read += 1;
        if self.read > INCLUDED {
            self.is_unread = true;
            return;
        }
        let content = match read_bounded(file, CONFIG) {
            Ok(Some(content)) => String::from_utf8_lossy(&content).into_owned(),
            Ok(None) => return self.is_unread = true,
            // Git passes over a file that is not there.
            Err(_) => return,
        };
        let mut section = String::new();
        for line in content.replace("\\\n", "").lines() {
            let mut line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                let Some((name, rest)) = header.rsplit_once(']') else { continue };
                section = name.split(['"', ' ', '.']).next().unwrap_or_default().to_lowercase();
                line = rest.trim();
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim().to_lowercase(), unquoted(value));
            match (section.as_str(), key.as_str()) {
                ("core", "worktree") => self.worktrees.push(own.join(value)),
                ("include" | "includeif", "path") => match value.strip_prefix("~/") {
                    Some(rest) => {
                        if let Some(home) = std::env::home_dir() {
                            self.read_file(&home.join(rest), own);
                        }
                    }
                    None => {
                        let beside = file.parent().unwrap_or(own).join(value);
                        self.read_file(&beside, own);
                    }
                },
                _ => {}
            }
        }
    }
}

/// A value as git reads it: without its quotes, escapes and comment.
fn unquoted(raw: &str) -> String {
    let (mut value, mut is_quoted) = (String::new(), false);
    let mut rest = raw.trim().chars();
    while let Some(next) = rest.next() {
        match next {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => value.extend(rest.next()),
            other => value.push(other),
        }
    }
    value.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_git_reads_it() {
        assert_eq!(unquoted(" \"/a b\" ; more"), "/a b");
        assert_eq!(unquoted("/a\\\\b # more"), "/a\\b");
        assert_eq!(unquoted("\"/a # b\""), "/a # b");
    }
}
