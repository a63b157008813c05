//! The transcripts that are known, and their indexes.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_agent::conversation::{Index, Listed, Updated};
use svc_shared::Timestamp;
use svc_shared::ids::SessionRef;

/// One transcript.
pub(crate) struct File {
    /// What stands for its conversation; `None` while this installation has no secret.
    pub reference: Option<SessionRef>,
    path: PathBuf,
    listed: Mutex<Listed>,
    index: Mutex<Index>,
    /// The index has something that the store does not have.
    is_unsaved: AtomicBool,
    /// The last attempt to read it failed.
    is_unreadable: AtomicBool,
}

impl File {
    /// As its directory listed it last.
    pub fn listed(&self) -> Listed {
        lock(&self.listed).clone()
    }

    /// Its index; others wait.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        lock(&self.index)
    }

    /// The file. Blocks.
    pub fn open(&self) -> io::Result<std::fs::File> {
        Index::open(&self.path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what was added, about so many bytes at most. Blocks.
    pub fn read_on(&self, index: &mut Index, budget: u64) -> io::Result<Updated> {
        self.update(index, &self.open()?, budget)
    }

    /// The same of the opened file, from which turns are read afterwards. Blocks.
    pub fn update(
        &self,
        index: &mut Index,
        open: &std::fs::File,
        budget: u64,
    ) -> io::Result<Updated> {
        let updated = index.update(open, budget)?;
        if updated.is_changed {
            self.is_unsaved.store(true, Ordering::Release);
        }
        Ok(updated)
    }

    /// Whether the store does not know the index yet; then it counts as saved.
    pub fn take_unsaved(&self) -> bool {
        self.is_unsaved.swap(false, Ordering::AcqRel)
    }

    /// It could not be saved.
    pub fn mark_unsaved(&self) {
        self.is_unsaved.store(true, Ordering::Release);
    }

    /// Nobody waits for it: it was read to its end, or it cannot be read.
    pub fn is_done(&self) -> bool {
        self.is_unreadable.load(Ordering::Acquire) || self.index().is_current(&self.listed())
    }

    /// Notes whether the last attempt to read it failed.
    pub fn mark_unreadable(&self, is_unreadable: bool) {
        self.is_unreadable.store(is_unreadable, Ordering::Release);
    }
}

/// All transcripts that are known.
#[derive(Default)]
pub(crate) struct Files(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_path: HashMap<PathBuf, Arc<File>>,
    by_project: HashMap<String, Vec<Arc<File>>>,
    /// What the store had of files that were not seen yet.
    stored: HashMap<PathBuf, Index>,
    as_of: Option<Timestamp>,
}

impl Files {
    /// The files of a project as they were seen last.
    pub fn of(&self, project: &str) -> Vec<Arc<File>> {
        lock(&self.0).by_project.get(project).cloned().unwrap_or_default()
    }

    /// The files of every project as they were seen last.
    pub fn by_project(&self) -> Vec<(String, Vec<Arc<File>>)> {
        let known = lock(&self.0);
        known.by_project.iter().map(|(name, files)| (name.clone(), files.clone())).collect()
    }

    /// When all projects were looked at last.
    pub fn as_of(&self) -> Option<Timestamp> {
        lock(&self.0).as_of
    }

    /// Forgets all other projects. Returns the files that are gone.
    pub fn seen_all(&self, projects: &[String], at: Timestamp) -> Vec<PathBuf> {
        let mut known = lock(&self.0);
        known.as_of = Some(at);
        known.by_project.retain(|name, _| projects.contains(name));
        let held: std::collections::HashSet<PathBuf> =
            known.by_project.values().flatten().map(|file| file.path.clone()).collect();
        let mut gone: Vec<PathBuf> = std::mem::take(&mut known.stored).into_keys().collect();
        known.by_path.retain(|path, _| {
            let is_held = held.contains(path);
            if !is_held {
                gone.push(path.clone());
            }
            is_held
        });
        gone
    }

    /// Takes what the store has, for files that will be seen.
    pub fn restore(&self, stored: HashMap<PathBuf, Index>) {
        lock(&self.0).stored = stored;
    }

    /// Notes the files that a project has now.
    pub fn saw(
        &self,
        project: &str,
        listed: Vec<Listed>,
        reference: impl Fn(&Listed) -> Option<SessionRef>,
    ) -> Vec<Arc<File>> {
        let mut known = lock(&self.0);
        let mut files = Vec::with_capacity(listed.len());
        for one in listed {
            if let Some(file) = known.by_path.get(&one.path) {
                *lock(&file.listed) = one;
                files.push(Arc::clone(file));
                continue;
            }
            let index = known.stored.remove(&one.path).unwrap_or_default();
            let file = Arc::new(File {
                reference: reference(&one),
                path: one.path.clone(),
                index: Mutex::new(index),
                is_unsaved: AtomicBool::new(false),
                is_unreadable: AtomicBool::new(false),
                listed: Mutex::new(one),
            });
            known.by_path.insert(file.path.clone(), Arc::clone(&file));
            files.push(file);
        }
        known.by_project.insert(project.to_owned(), files.clone());
        files
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
