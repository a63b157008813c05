//! One project, and the list of them in the order people see.

use crate::git;
use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;
use svc_shared::ids::{BadProjectName, ProjectName};

/// A directory that can hold sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its own name.
    pub name: ProjectName,
    /// Where it really is, links resolved: for the working directory, trust, slug and locks.
    pub path: PathBuf,
    /// Where it is found: `projects_root` joined with the name.
    pub shown_path: PathBuf,
    /// The nearest directory at or above `path` with a `.git`.
    pub git_root: Option<PathBuf>,
    /// `CLAUDE.md` stands in it as a file or a link; where a link leads is not looked at.
    pub has_claude_md: bool,
    /// `.claude` stands in it as a directory or a link: code in it may run when a session starts.
    pub has_claude_dir: bool,
    /// The project that is the same real directory and owns it.
    pub alias_of: Option<ProjectName>,
}

impl Project {
    /// Whether git commands work in it: it is a repository or lies in one.
    #[must_use]
    pub fn is_git_repo(&self) -> bool {
        self.git_root.is_some()
    }

    /// Whether the repository's `HEAD` leads to a commit, which a worktree needs to start from.
    ///
    /// Reads git's files and starts no process, so it blocks as files do. Where they cannot tell
    /// cheaply (reference tables, huge files) the answer is yes: the agent then says it itself.
    #[must_use]
    pub fn has_commit(&self) -> bool {
        self.git_root.as_deref().is_some_and(git::has_commit)
    }
}

/// Why an entry of `projects_root` is no project although it is a directory, or may be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The name breaks the rule for project names.
    #[error("{0}; rename the directory")]
    Name(BadProjectName),
    /// The name, or the path a link leads to, is not UTF-8.
    #[error("its name or path is not valid UTF-8; rename the directory")]
    Undecodable,
    /// A link to nothing.
    #[error("it is a link to a directory that does not exist; correct or remove the link")]
    Dangling,
    /// Links that lead to each other.
    #[error("it is a link that leads back to itself; correct or remove the link")]
    Loop,
    /// An agent at work there would have the service's own files, or everything.
    #[error(
        "it is, or contains, the home, state or configuration directory of the service; \
         move the project to a directory of its own"
    )]
    Refused,
    /// Not ours to enter, or the file system reports an error.
    #[error("it cannot be entered ({0}); check its permissions and its file system")]
    Inaccessible(std::io::ErrorKind),
    /// A dead mount, most likely.
    #[error("its file system does not answer; check the mount it is on")]
    Unresponsive,
}

impl Why {
    /// Whether it may change without a change in `projects_root`.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Dangling | Self::Loop | Self::Inaccessible(_) | Self::Unresponsive => true,
            // Where a link of these leads may change as well.
            Self::Undecodable | Self::Refused => true,
            Self::Name(_) => false,
        }
    }
}

/// A directory that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name; what is not UTF-8 in it is replaced. It may hold control characters: escape it
    /// before showing it.
    pub name: String,
    /// The reason.
    pub why: Why,
}

/// All projects, ordered by name: case-insensitive, then by bytes. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projects {
    ordered: Vec<Arc<Project>>,
    /// Directories that are no projects, with the reason; hidden ones and files are not listed.
    pub skipped: Vec<Skipped>,
    /// Why `projects_root` itself could not be read; the projects are then those known before.
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

    /// The project of that name.
    #[must_use]
    pub fn get(&self, name: &ProjectName) -> Option<&Project> {
        let place =
            self.ordered.binary_search_by(|at| in_order(at.name.as_str(), name.as_str())).ok()?;
        self.ordered.get(place).map(AsRef::as_ref)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Project> {
        self.ordered.iter().map(AsRef::as_ref)
    }

    /// How many there are, aliases included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }
}

/// For tests of those who use projects. Names are expected to be unique.
impl FromIterator<Project> for Projects {
    fn from_iter<I: IntoIterator<Item = Project>>(projects: I) -> Self {
        Self::new(projects.into_iter().map(Arc::new).collect(), Vec::new(), None)
    }
}

/// The order of `http-api` §1.3.
fn in_order(a: &str, b: &str) -> Ordering {
    let folded = |name: &'_ str| name.chars().flat_map(char::to_lowercase).collect::<Folded>();
    // Nearly all names are ASCII, and the list may be long: no allocation for those.
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
