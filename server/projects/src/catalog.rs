//! The entries of `projects_root` as last read, and which of them to read again.

use crate::examine::{Examined, Examiner, Rules, is_hidden};
use crate::path_workers::PathWorkers;
use crate::project::{Project, Projects, SkipReason, Skipped};
use crate::stamp::{Seen, Stamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest time for one entry (H116).
const ENTRY_LIMIT: Duration = Duration::from_secs(2);

/// The longest time for the root. Ten thousand names on a cold disk take about 1 s.
const ROOT_LIMIT: Duration = Duration::from_secs(10);

/// Reads the projects once.
///
/// Blocks, at most a few seconds for each dead mount. If the root cannot be read,
/// [`Projects::trouble`] says why.
#[must_use]
pub fn scan(rules: &Rules) -> Projects {
    let mut catalog = Catalog::new(rules.clone());
    catalog.list();
    catalog.assemble()
}

/// All that is known about the entries.
#[derive(Debug)]
pub(crate) struct Catalog {
    rules: Rules,
    entry_workers: PathWorkers,
    root_workers: PathWorkers,
    root: Option<PathBuf>,
    root_seen: Seen,
    root_identity: Option<(u64, u64)>,
    generation: u64,
    trouble: Option<String>,
    entries: BTreeMap<OsString, Entry>,
    changed: bool,
}

#[derive(Debug)]
struct Entry {
    state: State,
    seen: Seen,
}

#[derive(Debug)]
enum State {
    Project { project: Arc<Project>, linked: bool },
    Skipped(SkipReason),
}

/// The result of listing the root.
struct Listing {
    root: PathBuf,
    stamp: Stamp,
    /// `None`: the same names as last time.
    names: Option<BTreeSet<OsString>>,
}

impl Catalog {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            entry_workers: PathWorkers::new(ENTRY_LIMIT),
            root_workers: PathWorkers::new(ROOT_LIMIT),
            root: None,
            root_seen: Seen::default(),
            root_identity: None,
            generation: 0,
            trouble: None,
            entries: BTreeMap::new(),
            changed: true,
        }
    }

    /// Whether something changed since the last call of this function.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// A number that changes when another directory becomes the root.
    ///
    /// Then all that is known about entries, and every watch on them, is about the wrong directory.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The real path of the root, if it could be read.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Reads the names in the root if it changed.
    ///
    /// Examines new entries and forgets entries that are gone.
    pub(crate) fn list(&mut self) {
        let (configured, root, seen) = (self.rules.root.clone(), self.root.clone(), self.root_seen);
        let mut listing = None;
        self.root_workers.each(
            vec![OsString::new()],
            move |_| list_root(&configured, root.as_deref(), seen),
            |_, found| listing = found,
        );
        let listing = match listing {
            Some(Ok(listing)) => listing,
            Some(Err(error)) => return self.lose_root(Some(&error)),
            None => return self.lose_root(None),
        };
        self.changed |= self.trouble.take().is_some();
        let identity = Some(listing.stamp.identity());
        if self.root.as_ref() != Some(&listing.root) || self.root_identity != identity {
            self.forget_entries();
        }
        (self.root, self.root_identity) = (Some(listing.root), identity);
        self.root_seen = self.root_seen.again(listing.stamp);
        let Some(names) = listing.names else { return };
        let before = self.entries.len();
        self.entries.retain(|name, _| names.contains(name));
        self.changed |= self.entries.len() != before;
        let new = names.into_iter().filter(|name| !self.entries.contains_key(name)).collect();
        self.examine(new);
    }

    fn lose_root(&mut self, error: Option<&io::Error>) {
        use io::ErrorKind::{NotADirectory, NotFound};
        self.root_seen = Seen::default();
        let cause = match error {
            Some(error) => {
                if matches!(error.kind(), NotFound | NotADirectory) {
                    self.forget_entries();
                    self.root = None;
                }
                error.to_string()
            }
            None => "its file system does not answer".to_owned(),
        };
        let trouble = Some(format!(
            "cannot read projects_root {}: {cause}; check that it is there and readable",
            self.rules.root.display()
        ));
        self.changed |= self.trouble != trouble;
        self.trouble = trouble;
    }

    fn forget_entries(&mut self) {
        self.root_seen = Seen::default();
        self.generation = self.generation.wrapping_add(1);
        self.changed |= !self.entries.is_empty();
        self.entries.clear();
    }

    /// Examines entries for which a change was reported.
    pub(crate) fn examine_changed(&mut self, names: BTreeSet<OsString>) {
        if names.iter().any(|name| name == ".git") {
            // All projects may have become part of a repository, or have left one.
            return self.examine(self.entries.keys().chain(&names).cloned().collect());
        }
        self.examine(names.into_iter().collect());
    }

    /// Reads all facts about these entries.
    fn examine(&mut self, names: Vec<OsString>) {
        let Some(examiner) = self.examiner() else { return };
        let (entries, changed) = (&mut self.entries, &mut self.changed);
        self.entry_workers.each(
            names,
            move |name| examiner.examine(name),
            |name, examined| *changed |= update(entries, name, examined),
        );
    }

    /// Examines these entries. An unchanged entry costs one `stat` call.
    pub(crate) fn sweep(&mut self, names: Vec<OsString>) {
        let Some(examiner) = self.examiner() else { return };
        let known: HashMap<_, _> = names
            .iter()
            .filter_map(|name| match self.entries.get(name)? {
                Entry { state: State::Project { project, linked: false }, seen } => {
                    Some((name.clone(), (Arc::clone(project), *seen)))
                }
                Entry { .. } => None,
            })
            .collect();
        let (entries, changed) = (&mut self.entries, &mut self.changed);
        self.entry_workers.each(
            names,
            move |name| {
                let is_current = known.get(name).is_some_and(|(project, seen)| {
                    Stamp::of(&project.path).is_ok_and(|now| seen.is_current(now))
                });
                (!is_current).then(|| examiner.examine(name))
            },
            |name, examined| match examined {
                Some(None) => {}
                Some(Some(examined)) => *changed |= update(entries, name, Some(examined)),
                None => *changed |= update(entries, name, None),
            },
        );
    }

    fn examiner(&self) -> Option<Examiner> {
        Some(Examiner::new(self.rules.clone(), self.root.clone()?))
    }

    /// Projects that are directories directly in the root, with their real paths.
    ///
    /// A watch reports all changes that matter for them.
    pub(crate) fn watchable(&self) -> impl Iterator<Item = (&OsString, &Path)> {
        self.entries.iter().filter_map(|(name, entry)| match &entry.state {
            State::Project { project, linked: false } => Some((name, project.path.as_path())),
            State::Project { linked: true, .. } | State::Skipped(_) => None,
        })
    }

    /// Entries whose changes no watch reports.
    ///
    /// These are projects without a watch, linked projects, because the path of a link is not watched,
    /// and skipped directories whose obstacle may disappear.
    pub(crate) fn unwatched(&self, is_watched: impl Fn(&OsString) -> bool) -> Vec<OsString> {
        let unwatched = self.entries.iter().filter(|(name, entry)| match &entry.state {
            State::Project { linked: false, .. } => !is_watched(name),
            State::Project { linked: true, .. } => true,
            State::Skipped(why) => why.may_disappear(),
        });
        unwatched.map(|(name, _)| name.clone()).collect()
    }

    /// The list of projects.
    ///
    /// If several names lead to one directory, the first by bytes is the project.
    pub(crate) fn assemble(&self) -> Projects {
        let (mut projects, mut skipped) = (Vec::with_capacity(self.entries.len()), Vec::new());
        let mut owners = HashMap::with_capacity(self.entries.len());
        // Names come in byte order.
        for (name, entry) in &self.entries {
            match &entry.state {
                State::Project { project, .. } => {
                    let owner = *owners.entry(project.path.as_path()).or_insert(&project.name);
                    let alias_of = (*owner != project.name).then(|| owner.clone());
                    projects.push(match alias_of {
                        None => Arc::clone(project),
                        Some(_) => Arc::new(Project { alias_of, ..Project::clone(project) }),
                    });
                }
                State::Skipped(why) => {
                    let name = name.to_string_lossy().into_owned();
                    skipped.push(Skipped { name, why: why.clone() });
                }
            }
        }
        Projects::new(projects, skipped, self.trouble.clone())
    }
}

/// Updates an entry and returns whether it changed.
///
/// `examined` is `None` if the file system did not answer.
fn update(
    entries: &mut BTreeMap<OsString, Entry>,
    name: OsString,
    examined: Option<Examined>,
) -> bool {
    let examined = examined.unwrap_or(Examined::Skipped(SkipReason::Unresponsive));
    match (entries.get_mut(&name), examined) {
        (None, Examined::Nothing) => false,
        (Some(_), Examined::Nothing) => entries.remove(&name).is_some(),
        (Some(entry), Examined::Project { project, stamp, linked }) => {
            entry.seen = entry.seen.again(stamp);
            // An unchanged record stays the same object: that makes comparing long lists cheap.
            let is_same = matches!(
                &entry.state,
                State::Project { project: same, linked: was } if **same == project && *was == linked
            );
            if !is_same {
                entry.state = State::Project { project: Arc::new(project), linked };
            }
            !is_same
        }
        (None, Examined::Project { project, stamp, linked }) => {
            let state = State::Project { project: Arc::new(project), linked };
            entries.insert(name, Entry { state, seen: Seen::Once(stamp) });
            true
        }
        (Some(entry), Examined::Skipped(why)) => {
            entry.seen = Seen::default();
            let is_same = matches!(&entry.state, State::Skipped(same) if *same == why);
            entry.state = State::Skipped(why);
            !is_same
        }
        (None, Examined::Skipped(why)) => {
            entries.insert(name, Entry { state: State::Skipped(why), seen: Seen::default() });
            true
        }
    }
}

fn list_root(configured: &Path, known: Option<&Path>, seen: Seen) -> io::Result<Listing> {
    let root = std::fs::canonicalize(configured)?;
    let stamp = Stamp::of(&root)?;
    if known == Some(root.as_path()) && seen.is_current(stamp) {
        return Ok(Listing { root, stamp, names: None });
    }
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&root)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_hidden(&name) || is_plainly_a_file(&entry) {
            continue;
        }
        names.insert(name);
    }
    Ok(Listing { root, stamp, names: Some(names) })
}

fn is_plainly_a_file(entry: &std::fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| !kind.is_dir() && !kind.is_symlink())
}
