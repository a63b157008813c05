//! One project, and the sorted list of all projects.

use crate::git;
use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;
use svc_shared::ids::{BadProjectName, ProjectName};

/// A directory that can hold sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its name, which is the name of its entry in `projects_root`.
    pub name: ProjectName,
    /// Its real path, with links resolved: for working directory, trust and locks.
    pub path: PathBuf,
    /// `projects_root` joined with the name.
    pub shown_path: PathBuf,
    /// The nearest directory at or above `path` with a `.git`.
    pub git_root: Option<PathBuf>,
    /// It contains a file or a link `CLAUDE.md`. The link is not followed.
    pub has_claude_md: bool,
    /// It contains a directory or a link `.claude`, whose code may run in a session.
    pub has_claude_dir: bool,
    /// The other project with the same real directory, if this is an alias.
    pub alias_of: Option<ProjectName>,
}

impl Project {
    /// Whether git commands work in it: it is a repository or lies in one.
    #[must_use]
    pub fn is_git_repo(&self) -> bool {
        self.git_root.is_some()
    }

    /// Whether the repository's `HEAD` leads to a commit. A worktree needs one.
    ///
    /// Reads git's files and starts no process, so it blocks as files do. If the files do not answer
    /// cheaply (reference tables, huge files), the result is true, and the agent reports the error.
    #[must_use]
    pub fn has_commit(&self) -> bool {
        self.git_root.as_deref().is_some_and(git::has_commit)
    }

    /// What makes a worktree of this project write into another repository.
    /// `None` if nothing does.
    ///
    /// Reads git's files and starts no process, so it blocks as files do.
    #[must_use]
    pub fn foreign_git(&self) -> Option<String> {
        git::leads_elsewhere(self.git_root.as_deref()?, &self.path)
    }
}

/// Why a directory in `projects_root` is no project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// The name breaks the rule for project names.
    #[error("{0}; rename the directory")]
    Name(BadProjectName),
    /// The name, or the target of the link, is not UTF-8.
    #[error("its name or path is not valid UTF-8; rename the directory")]
    Undecodable,
    /// A link whose target is missing.
    #[error("it is a link to a directory that does not exist; correct or remove the link")]
    Dangling,
    /// A link that leads back to itself.
    #[error("it is a link that leads back to itself; correct or remove the link")]
    Loop,
    /// An agent that works there could change the service's own files.
    #[error(
        "it is, contains or lies in a directory of the service, of its user's home or of \
         credentials; move the project to a directory of its own"
    )]
    Refused,
    /// This user may not enter it, or the file system reports an error.
    #[error("it cannot be entered ({0}); check its permissions and its file system")]
    Inaccessible(std::io::ErrorKind),
    /// Its file system does not answer, as after the loss of a network mount.
    #[error("its file system does not answer; check the mount it is on")]
    Unresponsive,
}

impl SkipReason {
    /// Whether the reason may disappear without a change in `projects_root`.
    pub(crate) fn may_disappear(&self) -> bool {
        match self {
            Self::Dangling | Self::Loop | Self::Inaccessible(_) | Self::Unresponsive => true,
            // The entry may be a link, whose target may change.
            Self::Undecodable | Self::Refused => true,
            Self::Name(_) => false,
        }
    }
}

/// A directory that is no project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name, with invalid UTF-8 replaced.
    ///
    /// It may contain control characters: escape it before you show it.
    pub name: String,
    /// The reason.
    pub why: SkipReason,
}

/// All projects, sorted by name: ignoring case, then by bytes. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projects {
    ordered: Vec<Arc<Project>>,
    /// Directories that are no projects. Hidden directories and files are not listed.
    pub skipped: Vec<Skipped>,
    /// Why `projects_root` could not be read.
    ///
    /// The projects are then those that were known before.
    pub trouble: Option<String>,
}

impl Projects {
    pub(crate) fn new(
        mut ordered: Vec<Arc<Project>>,
        skipped: Vec<Skipped>,
        trouble: Option<String>,
    ) -> Self {
        ordered.sort_by(|a, b| in_order(a.name.as_str(), b.name.as_str()));
        Self { ordered, skipped, trouble }
    }

    /// The project with this name.
    #[must_use]
    pub fn get(&self, name: &ProjectName) -> Option<&Project> {
        let index =
            self.ordered.binary_search_by(|at| in_order(at.name.as_str(), name.as_str())).ok()?;
        self.ordered.get(index).map(AsRef::as_ref)
    }

    /// All projects, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Project> {
        self.ordered.iter().map(AsRef::as_ref)
    }

    /// The number of projects, including aliases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Whether there is no project.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }
}

/// Makes a list for the tests of other crates. Names must be unique.
impl FromIterator<Project> for Projects {
    fn from_iter<I: IntoIterator<Item = Project>>(projects: I) -> Self {
        Self::new(projects.into_iter().map(Arc::new).collect(), Vec::new(), None)
    }
}

/// The order of `http-api` §1.3.
fn in_order(a: &str, b: &str) -> Ordering {
    let folded = |name: &'_ str| name.chars().flat_map(char::to_lowercase).collect::<Folded>();
    // Nearly all names are ASCII, and the list may be long: no allocation for ASCII names.
    let by_case = if a.is_ascii() && b.is_ascii() {
        let lower = |name| str::bytes(name).map(|byte| byte.to_ascii_lowercase());
        lower(a).cmp(lower(b))
    } else {
        folded(a).cmp(&folded(b))
    };
    by_case.then_with(|| a.cmp(b))
}

type Folded = String;

#[cfg(test)]
mod tests {
    use super::*;

    fn project(name: &str) -> Project {
        Project {
            name: name.parse().unwrap(),
            path: PathBuf::from("/p").join(name),
            shown_path: PathBuf::from("/p").join(name),
            git_root: None,
            has_claude_md: false,
            has_claude_dir: false,
            alias_of: None,
        }
    }

    #[test]
    fn projects_are_ordered_without_regard_to_case_and_found_by_exact_name() {
        let projects: Projects = ["b", "Übung", "A", "a", "übung", "B2", "ärger", "c"]
            .map(project)
            .into_iter()
            .collect();
        let names: Vec<_> = projects.iter().map(|project| project.name.as_str()).collect();
        assert_eq!(names, ["A", "a", "b", "B2", "c", "ärger", "Übung", "übung"]);
        for name in names {
            let found = projects.get(&name.parse().unwrap()).unwrap();
            assert_eq!(found.name.as_str(), name);
        }
        assert_eq!(projects.get(&"C".parse().unwrap()), None);
    }
}
