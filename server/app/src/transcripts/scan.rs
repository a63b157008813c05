//! Keeps the indexes up to date when a directory with transcripts changes.

use super::Transcripts;
use super::files::File;
use crate::read_model::limits::Stopped;
use crate::tasks::blocking;
use futures_util::future::select_all;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_agent::conversation::{Index, listed, places};
use svc_projects::Project;
use svc_shared::api::limits::PlanLimit;
use svc_shared::ids::SessionRef;
use svc_watch::{Pace, Subscription};

/// Bytes that are read of a file before others get their turn.
const STEP: u64 = 8 * 1024 * 1024;

/// A pause after each step leaves the core to others.
const BREATH: Duration = Duration::from_millis(5);

/// Changes within this time are read together: an agent writes a line every moment.
const SETTLE: Duration = Duration::from_secs(5);

/// Passes between two writes of the store, unless everything is read.
const SAVE_EVERY: u32 = 12;

impl Transcripts {
    /// Reads on until the service ends.
    pub(crate) async fn run(self: Arc<Self>) {
        self.restore().await;
        let mut watches: HashMap<PathBuf, Subscription> = HashMap::new();
        let mut changes = self.catalog.changes();
        let mut passes = 0_u32;
        while !self.tasks.shutdown().is_cancelled() {
            self.watch_places(&mut watches).await;
            self.pass().await;
            self.tell_limits();
            // The first pass may have read much, and later ones a line.
            if passes.is_multiple_of(SAVE_EVERY) {
                self.save().await;
            }
            passes = passes.wrapping_add(1);
            let catalog = async {
                let is_changed = match &mut changes {
                    Some(changes) => changes.changed().await.is_ok(),
                    None => false,
                };
                if !is_changed {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => break,
                () = any(&mut watches) => {}
                () = catalog => {}
            }
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => break,
                () = tokio::time::sleep(SETTLE) => {}
            }
        }
        self.save().await;
    }

    /// Reads what was added since the service last wrote down what it had read.
    ///
    /// For a command, and for whoever cannot wait for [`Self::run`].
    pub(crate) async fn read_once(self: &Arc<Self>) {
        if self.signs.follows() {
            return;
        }
        self.restore().await;
        self.pass().await;
        self.tell_limits();
    }

    /// The transcripts of a project as they are now. Blocks.
    pub(super) fn scan(&self, project: &Project) -> Vec<Arc<File>> {
        let Ok(home) = self.agent.home() else { return Vec::new() };
        let all = self.catalog.all();
        let others: Vec<PathBuf> = all
            .iter()
            .filter(|other| other.path != project.path)
            .map(|other| other.path.clone())
            .collect();
        let places = places(&home, &project.path, &others);
        let found = places.iter().flat_map(|place| listed(place)).collect();
        self.files.saw(project.name.as_str(), found, |one| self.refs.session(one.id.expose()))
    }

    /// Watches the directories that exist now.
    async fn watch_places(self: &Arc<Self>, watches: &mut HashMap<PathBuf, Subscription>) {
        let this = Arc::clone(self);
        let wanted = blocking(move || this.existing_places()).await.unwrap_or_default();
        watches.retain(|place, _| wanted.contains(place));
        for place in wanted {
            let watch = |place: &PathBuf| self.watcher.dir(place, Pace::DIRECTORY);
            watches.entry(place).or_insert_with_key(watch);
        }
    }

    fn existing_places(&self) -> HashSet<PathBuf> {
        let Ok(home) = self.agent.home() else { return HashSet::new() };
        // A project that is used for the first time gets its directory here.
        let mut wanted = HashSet::from([home.dir().join("projects")]);
        for project in self.catalog.all().iter() {
            let places = places(&home, &project.path, &[]).into_iter();
            wanted.extend(places.filter(|place| place.is_dir()));
        }
        wanted
    }

    /// Reads everything that was added, a step of each file at a time.
    async fn pass(self: &Arc<Self>) {
        let projects = self.catalog.all();
        let mut names = Vec::new();
        for project in projects.iter().filter(|project| project.alias_of.is_none()) {
            let (this, project) = (Arc::clone(self), project.clone());
            names.push(project.name.to_string());
            let Ok(files) = blocking(move || this.scan(&project)).await else { return };
            for file in files {
                if !self.read_to_end(file).await {
                    return;
                }
            }
        }
        let gone = self.files.seen_all(&names, self.clock.now());
        if gone.is_empty() {
            return;
        }
        let gone: Vec<String> = gone.iter().filter_map(|path| path_text(path)).collect();
        if let Err(error) = self.store.keep_transcripts(&[], &gone).await {
            tracing::debug!(%error, "what was read of transcripts cannot be forgotten");
        }
    }

    /// Tells which conversations stopped at a plan limit or wait for a person.
    fn tell_limits(&self) {
        let files = self.files.by_project().into_iter().flat_map(|(_, files)| files);
        let (mut stopped, mut waits) = (HashMap::new(), HashMap::new());
        for file in files {
            let Some(reference) = file.reference.clone() else { continue };
            let (limit, wait) = {
                let index = file.index();
                (index.limit.clone(), index.waits.clone())
            };
            if let Some(limit) = limit {
                let conversation = file.listed().id;
                stopped.insert(reference, Stopped { conversation, limit });
            } else if let Some(wait) = wait {
                waits.insert(reference, wait);
            }
        }
        let differs = self.signs.set_waits(waits);
        self.signs.limits.set(stopped, differs);
    }

    /// The limit that a conversation is stopped at now, read from its file.
    pub(crate) async fn limit_now(&self, reference: &SessionRef) -> Option<PlanLimit> {
        let files = self.files.by_project().into_iter().flat_map(|(_, files)| files);
        let file = files.into_iter().find(|file| file.reference.as_ref() == Some(reference))?;
        let read = blocking(move || {
            let mut index = file.index();
            loop {
                match file.read_on(&mut index, STEP) {
                    Ok(updated) if updated.is_more => {}
                    Ok(_) => return index.limit.clone(),
                    Err(_) => return None,
                }
            }
        });
        read.await.ok().flatten()
    }

    /// `false` when the service ends.
    async fn read_to_end(&self, file: Arc<File>) -> bool {
        loop {
            if self.tasks.shutdown().is_cancelled() {
                return false;
            }
            let of = Arc::clone(&file);
            let step = blocking(move || {
                let mut index = of.index();
                if index.is_current(&of.listed()) {
                    return Ok(None);
                }
                of.read_on(&mut index, STEP).map(Some)
            });
            let step = step.await;
            file.mark_unreadable(matches!(step, Ok(Err(_))));
            match step {
                Ok(Ok(Some(updated))) if updated.is_more => tokio::time::sleep(BREATH).await,
                Ok(Ok(_)) => return true,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a transcript cannot be read");
                    return true;
                }
                Err(_) => return false,
            }
        }
    }

    /// What an earlier service has read.
    async fn restore(&self) {
        let rows = match self.store.transcripts().await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "all transcripts are read again: what was read of them is \
                     not known");
                return;
            }
        };
        let indexes = blocking(move || {
            let one = |(path, state): (String, String)| {
                // A state of another version is read again.
                let index: Index = serde_json::from_str(&state).ok()?;
                Some((PathBuf::from(path), index))
            };
            rows.into_iter().filter_map(one).collect::<HashMap<_, _>>()
        });
        if let Ok(indexes) = indexes.await {
            self.files.restore(indexes);
        }
    }

    /// Keeps what was read. A failure costs a second reading after the next start.
    async fn save(&self) {
        let files: Vec<Arc<File>> =
            self.files.by_project().into_iter().flat_map(|(_, f)| f).collect();
        let unsaved: Vec<Arc<File>> =
            files.into_iter().filter(|file| file.take_unsaved()).collect();
        for part in unsaved.chunks(100) {
            let of: Vec<Arc<File>> = part.to_vec();
            let rows = blocking(move || {
                let row = |file: &Arc<File>| {
                    Some((path_text(file.path())?, serde_json::to_string(&*file.index()).ok()?))
                };
                of.iter().filter_map(row).collect::<Vec<_>>()
            });
            let Ok(rows) = rows.await else { return };
            if let Err(error) = self.store.keep_transcripts(&rows, &[]).await {
                tracing::debug!(%error, "what was read of transcripts cannot be kept");
                part.iter().for_each(|file| file.mark_unsaved());
                return;
            }
        }
    }
}

fn path_text(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}

/// Waits until one of the directories changes.
async fn any(watches: &mut HashMap<PathBuf, Subscription>) {
    let waits = watches.values_mut().map(|watch| Box::pin(watch.changed())).collect::<Vec<_>>();
    if waits.is_empty() {
        return std::future::pending().await;
    }
    select_all(waits).await;
}
