//! A project, and all of them at one moment.

use crate::git::{Commits, commits};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_shared::ids::ProjectName;

/// One project directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Name of the directory entry.
    pub name: ProjectName,
    /// Real path, links resolved; valid UTF-8. Working directory, locks, records and trust go by it.
    pub path: PathBuf,
    /// The path below `projects_root`, as people know it.
    pub shown_path: PathBuf,
    /// The project that is the same directory, when this is another name of it.
    pub alias_of: Option<ProjectName>,
    /// The nearest directory at or above with a `.git`.
    pub git_root: Option<PathBuf>,
    /// Has a file `CLAUDE.md`.
    pub has_claude_md: bool,
    /// Has a directory `.claude`.
    pub has_claude_dir: bool,
}

impl Project {
    /// Whether it is a git repository or lies in one.
    #[must_use]
    pub fn is_git_repo(&self) -> bool {
        self.git_root.is_some()
    }

    /// Whether a worktree could be made: its repository has a commit, or does not tell. Blocks for
    /// some small files.
    #[must_use]
    pub fn has_commit(&self) -> bool {
        self.git_root.as_deref().is_some_and(|root| match commits(root) {
            Commits::Some | Commits::Unknown => true,
            Commits::None => false,
        })
    }
}

/// A directory that may not be a project (H38).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name.
    pub name: ProjectName,
    /// Where it really is.
    pub path: PathBuf,
    /// What it is or holds: the home directory, the state directory, ….
    pub because: PathBuf,
}

/// An entry that could not be looked at (H116).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Its name.
    pub name: ProjectName,
    /// Why, as a sentence.
    pub reason: String,
}

/// All projects at one moment. Cheap to share, never changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Projects {
    list: Vec<Arc<Project>>,
    by_name: HashMap<ProjectName, usize>,
    /// Directories whose names are not valid UTF-8, or lead to a path that is not.
    pub undecodable: usize,
    /// Directories whose names no project may have.
    pub illegal_names: usize,
    /// Directories that may not be projects.
    pub refused: Vec<Refused>,
    /// Entries that could not be looked at.
    pub unavailable: Vec<Unavailable>,
    /// Why the root itself could not be listed; the projects are those known before.
    pub root_problem: Option<String>,
}

impl Projects {
    /// Sorts, and marks the further names of one directory as aliases of the lexically first.
    pub(crate) fn new(found: impl Iterator<Item = Arc<Project>>) -> Self {
        let found: BTreeMap<ProjectName, Arc<Project>> =
            found.map(|project| (project.name.clone(), project)).collect();
        let mut first: HashMap<&Path, &ProjectName> = HashMap::new();
        for (name, project) in &found {
            first.entry(project.path.as_path()).or_insert(name);
        }
        let mut list: Vec<(String, Arc<Project>)> = found
            .iter()
            .map(|(name, project)| {
                let holder = first.get(project.path.as_path()).filter(|holder| **holder != name);
                let alias_of = holder.map(|holder| (*holder).clone());
                let project = if project.alias_of == alias_of {
                    Arc::clone(project)
                } else {
                    Arc::new(Project { alias_of, ..Project::clone(project) })
                };
                (name.as_str().to_lowercase(), project)
            })
            .collect();
        list.sort_by(|(a, one), (b, two)| a.cmp(b).then_with(|| one.name.cmp(&two.name)));
        let list: Vec<Arc<Project>> = list.into_iter().map(|(_, project)| project).collect();
        let by_name = list.iter().enumerate().map(|(at, one)| (one.name.clone(), at)).collect();
        Self { list, by_name, ..Self::default() }
    }

    /// The project of that name, byte for byte (H43).
    #[must_use]
    pub fn get(&self, name: &ProjectName) -> Option<&Project> {
        self.by_name.get(name).and_then(|at| self.list.get(*at)).map(|project| &**project)
    }

    /// All projects by name, first without regard to case, then by bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Project> + Clone {
        self.list.iter().map(|project| &**project)
    }

    /// How many there are, aliases included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The project that a directory is or lies in, aliases aside. The deepest one, should projects
    /// lie in each other by links.
    #[must_use]
    pub fn holding(&self, real_path: &Path) -> Option<&Project> {
        self.iter()
            .filter(|project| project.alias_of.is_none() && real_path.starts_with(&project.path))
            .max_by_key(|project| project.path.as_os_str().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(name: &str, path: &str) -> Arc<Project> {
        Arc::new(Project {
            name: name.parse().unwrap(),
            path: path.into(),
            shown_path: Path::new("/r").join(name),
            alias_of: None,
            git_root: None,
            has_claude_md: false,
            has_claude_dir: false,
        })
    }

    #[test]
    fn projects_are_ordered_without_regard_to_case_and_found_byte_for_byte() {
        let names = ["b", "B", "a", "C", "ä", "_x"];
        let projects = Projects::new(names.iter().map(|name| project(name, &format!("/r/{name}"))));
        let order: Vec<&str> = projects.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(order, ["_x", "a", "B", "b", "C", "ä"]);
        assert_eq!(projects.get(&"B".parse().unwrap()).unwrap().path, Path::new("/r/B"));
        assert!(projects.get(&"A".parse().unwrap()).is_none());
    }

    /// F24.
    #[test]
    fn the_lexically_first_name_of_a_directory_is_the_project() {
        let entries = [("z", "/r/a"), ("a", "/r/a"), ("m", "/r/a"), ("other", "/r/other")];
        let projects = Projects::new(entries.map(|(name, path)| project(name, path)).into_iter());
        let alias = |name: &str| {
            projects.get(&name.parse().unwrap()).unwrap().alias_of.as_ref().map(|n| n.to_string())
        };
        assert_eq!(alias("a"), None);
        assert_eq!(alias("m").as_deref(), Some("a"));
        assert_eq!(alias("z").as_deref(), Some("a"));
        assert_eq!(alias("other"), None);
    }

    #[test]
    fn a_directory_belongs_to_the_deepest_project_around_it() {
        let entries = [("a", "/r/a"), ("ab", "/r/ab"), ("in", "/r/a/in")];
        let projects = Projects::new(entries.map(|(name, path)| project(name, path)).into_iter());
        let holding = |path: &str| projects.holding(Path::new(path)).map(|p| p.name.to_string());
        assert_eq!(holding("/r/a/.claude/worktrees/x").as_deref(), Some("a"));
        assert_eq!(holding("/r/a/in/src").as_deref(), Some("in"));
        assert_eq!(holding("/r/abc"), None);
        assert_eq!(holding("/"), None);
    }
}
