//! Keeps the indexes up to date when a directory with transcripts changes.

use super::files::File;
use super::{Transcripts, unknown, unreadable};
use crate::AppError;
use crate::read_model::limits::Stopped;
use crate::tasks::blocking;
use futures_util::future::select_all;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_agent::conversation::{Index, Places, TRANSCRIPT, listed};
use svc_domain::conversation::ConversationId;
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
            // The pass reads it all. Otherwise each of many new directories would have its own.
            watches.values_mut().for_each(Subscription::forget);
            let Ok(places) = self.places().await else { break };
            self.watch_places(places.as_ref(), &mut watches).await;
            self.pass(places.as_ref()).await;
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
        if let Ok(places) = self.places().await {
            self.pass(places.as_ref()).await;
        }
        self.tell_limits();
    }

    /// Where transcripts are now; `None` while nobody knows where the agent keeps them.
    async fn places(self: &Arc<Self>) -> Result<Option<Arc<Places>>, AppError> {
        let this = Arc::clone(self);
        blocking(move || this.places_now().map(Arc::new)).await
    }

    /// The same. Blocks.
    fn places_now(&self) -> Option<Places> {
        let home = self.agent.home().ok()?;
        Some(Places::read(&home, self.catalog.all().iter().map(|project| project.path.as_path())))
    }

    /// The transcripts of a project as they are now. Blocks.
    pub(super) fn scan(&self, project: &Project) -> Vec<Arc<File>> {
        let places = self.places_now();
        places.map(|places| self.scan_in(&places, project)).unwrap_or_default()
    }

    /// The same, where the places were read just now.
    fn scan_in(&self, places: &Places, project: &Project) -> Vec<Arc<File>> {
        let found = places.of(&project.path).iter().flat_map(|place| listed(place)).collect();
        self.files.saw(project.name.as_str(), found, |one| self.refs.session(one.id.expose()))
    }

    /// Watches the directories that exist now.
    async fn watch_places(
        self: &Arc<Self>,
        places: Option<&Arc<Places>>,
        watches: &mut HashMap<PathBuf, Subscription>,
    ) {
        let (this, places) = (Arc::clone(self), places.cloned());
        let wanted = blocking(move || places.map(|places| this.existing(&places))).await;
        let wanted = wanted.ok().flatten().unwrap_or_default();
        watches.retain(|place, _| wanted.contains_key(place));
        for (place, is_root) in wanted {
            let watch = |place: &PathBuf| match is_root {
                // A project that is used for the first time gets its directory here.
                true => self.watcher.dir(place, Pace::DIRECTORY),
                // An agent rewrites other files there all the time.
                false => self.watcher.files_of(place, TRANSCRIPT, Pace::DIRECTORY),
            };
            watches.entry(place).or_insert_with_key(watch);
        }
    }

    /// The directories that exist, and whether one is that of the directories.
    fn existing(&self, places: &Places) -> HashMap<PathBuf, bool> {
        let mut wanted = HashMap::from([(places.root(), true)]);
        for project in self.catalog.all().iter() {
            let own = places.of(&project.path).into_iter().filter(|place| place.is_dir());
            wanted.extend(own.map(|place| (place, false)));
        }
        wanted
    }

    /// Reads everything that was added, a step of each file at a time.
    async fn pass(self: &Arc<Self>, places: Option<&Arc<Places>>) {
        let Some(places) = places else { return };
        let projects = self.catalog.all();
        let mut names = Vec::new();
        for project in projects.iter().filter(|project| project.alias_of.is_none()) {
            let (this, places, project) = (Arc::clone(self), Arc::clone(places), project.clone());
            names.push(project.name.to_string());
            let Ok(files) = blocking(move || this.scan_in(&places, &project)).await else { return };
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

    /// Whether a conversation has a transcript, as far as anybody could look.
    pub(crate) fn knows(&self, conversation: &ConversationId) -> bool {
        let reference = self.refs.session(conversation.expose());
        reference.is_some_and(|reference| self.file_of(&reference).is_some())
    }

    fn file_of(&self, reference: &SessionRef) -> Option<Arc<File>> {
        let mut files = self.files.by_project().into_iter().flat_map(|(_, files)| files);
        files.find(|file| file.reference.as_ref() == Some(reference))
    }

    /// The limit that a conversation is stopped at now, read from its file.
    ///
    /// # Errors
    /// The file is not there, or cannot be read now.
    pub(crate) async fn limit_now(
        &self,
        reference: &SessionRef,
    ) -> Result<Option<PlanLimit>, AppError> {
        let file = self.file_of(reference).ok_or_else(unknown)?;
        blocking(move || {
            let mut index = file.index();
            loop {
                match file.read_on(&mut index, STEP) {
                    Ok(updated) if updated.is_more => {}
                    Ok(_) => return Ok(index.limit.clone()),
                    Err(error) => return Err(unreadable(error)),
                }
            }
        })
        .await?
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
