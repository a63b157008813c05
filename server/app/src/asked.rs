//! What sessions ask, through the agent's own hook.
//!
//! The key `claude.approval_hook` asks for it. The hook connects to a socket of the service, says
//! its question and waits. A person answers it in the inbox, where it stands beside the questions
//! of Direct Sessions. The decision is recorded before the hook is told; a hook that lost the
//! service asks again under the same name.

mod hook;
pub(crate) mod rows;
mod serve;
mod socket;

pub use hook::ask_service;

use crate::AppError;
use crate::agent::Agent;
use crate::agent_config::AgentConfigEditor;
use crate::auth::refs::SessionRefs;
use crate::nudge;
use crate::projects::catalog::Catalog;
use crate::read_model::ReadModel;
use crate::registry::Registry;
use crate::tasks::Tasks;
use rows::{AskedRows, approval};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Config;
use svc_domain::approval_hook::HOOK;
use svc_ports::Clock;
use svc_shared::api::approvals::ApprovalRequest;
use svc_shared::ids::InstanceId;
use svc_store::{Decision, PromptEnd, PromptRow};
use svc_watch::Watcher;
use tokio::net::UnixListener;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, watch};

/// Most hooks that wait at the same time.
const MOST: usize = 256;
/// One descriptor in so many may be that of a hook (H79).
const SHARE: u64 = 8;
/// Most questions that wait at the same time, in KiB of their text (H81).
///
/// What is made of a text takes some times its length.
const MOST_KIB: usize = 8 * 1024;
/// Pause when no descriptor is left.
const BACK_OFF: Duration = Duration::from_millis(100);
/// How long a hook may take to ask again after a restart of the service.
const RENEWAL: Duration = Duration::from_secs(30);

/// How many hooks may wait where this process may have so many descriptors.
///
/// The others leave the question to their agent, so that a stop can still be asked for.
fn places(descriptors: u64) -> usize {
    usize::try_from(descriptors / SHARE).unwrap_or(usize::MAX).clamp(1, MOST)
}

/// The socket that hooks ask at.
pub(crate) fn socket(state_dir: &Path) -> PathBuf {
    state_dir.join("run").join("ask.sock")
}

/// What a hook says.
#[derive(Serialize, Deserialize)]
struct Question {
    request_id: String,
    /// Which launch of this service the session belongs to, if it belongs to one.
    launch: Option<String>,
    session_id: String,
    cwd: PathBuf,
    /// The file of the conversation.
    transcript: Option<PathBuf>,
    /// The agent's name of the call, where it tells it.
    call: Option<String>,
    tool_name: String,
    tool_input: Value,
    /// What the agent offers to change of its permissions.
    #[serde(default)]
    suggestions: Value,
}

/// What a hook is told.
///
/// `allow`, `deny`, or another word where the agent shall ask by itself.
#[derive(Default, Serialize, Deserialize)]
struct Answered {
    decision: String,
    message: Option<String>,
    /// With what the agent offers for its session.
    #[serde(default)]
    for_session: bool,
}

impl Answered {
    /// The agent asks by itself.
    fn none() -> Self {
        Self { decision: "none".to_owned(), ..Self::default() }
    }
}

/// The questions that come through the hook.
pub(crate) struct Asked {
    rows: Arc<AskedRows>,
    parts: AskedParts,
    /// Questions whose hook is connected, and what each asks for.
    connected: Mutex<BTreeMap<String, Arc<ApprovalRequest>>>,
    /// One reading at a time: an older one must not take the place of a newer one.
    reading: AsyncMutex<()>,
    /// KiB of questions that may still wait.
    room: Semaphore,
}

/// The parts beside the rows that questions need.
struct AskedParts {
    config: Arc<Config>,
    registry: Arc<Registry>,
    catalog: Arc<Catalog>,
    agent: Arc<Agent>,
    refs: Arc<SessionRefs>,
    watcher: Watcher,
    read_model: Arc<ReadModel>,
    agent_config: Arc<AgentConfigEditor>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
}

/// What is read to know whose question it is.
type Reads<'a> = (
    &'a Arc<Config>,
    &'a Arc<Registry>,
    &'a Arc<Catalog>,
    &'a Arc<Agent>,
    &'a Arc<SessionRefs>,
    &'a Watcher,
);

/// What questions are shown and served with.
type Around<'a> = (&'a Arc<ReadModel>, &'a Arc<AgentConfigEditor>, &'a Arc<dyn Clock>, &'a Tasks);

impl Asked {
    pub fn new(
        rows: Arc<AskedRows>,
        (config, registry, catalog, agent, refs, watcher): Reads<'_>,
        (read_model, agent_config, clock, tasks): Around<'_>,
    ) -> Self {
        let parts = AskedParts {
            config: Arc::clone(config),
            registry: Arc::clone(registry),
            catalog: Arc::clone(catalog),
            agent: Arc::clone(agent),
            refs: Arc::clone(refs),
            watcher: watcher.clone(),
            read_model: Arc::clone(read_model),
            agent_config: Arc::clone(agent_config),
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
        };
        Self {
            rows,
            parts,
            connected: Mutex::default(),
            reading: AsyncMutex::default(),
            room: Semaphore::new(MOST_KIB),
        }
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ApprovalRequest>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that a question asks for, while its hook is connected.
    pub fn requested(&self, request_id: &str) -> Option<Arc<ApprovalRequest>> {
        self.connected().get(request_id).cloned()
    }

    /// Questions that wait, and answers on their way.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn open(&self) -> Result<Vec<PromptRow>, AppError> {
        match self.parts.registry.has_readers() {
            true => Ok(self.rows.all()),
            false => Ok(self.parts.registry.store.open_bridge_prompts().await?),
        }
    }

    /// Reads the rows again and shows what changed.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn refresh(&self) -> Result<(), AppError> {
        let registry = &self.parts.registry;
        let reading = self.reading.lock().await;
        let read = registry.store.open_bridge_prompts().await?;
        let unmanaged = read.iter().filter(|row| row.instance_id.is_empty());
        let unmanaged = unmanaged.filter(|row| row.decision.is_none()).cloned();
        let questions = unmanaged.filter_map(approval).map(|one| (one.request_id.clone(), one));
        let questions = questions.collect();
        let changed = self.rows.take(read);
        self.parts.read_model.replace_questions(questions);
        drop(reading);
        if !changed.is_empty() {
            registry.copies.touch(&changed);
            registry.publish().await;
        }
        Ok(())
    }

    /// Decides a question, once. `false` when it does not wait.
    ///
    /// # Errors
    /// Nothing was recorded.
    pub async fn decide(
        &self,
        id: Option<&InstanceId>,
        request_id: &str,
        decision: &Decision<'_>,
    ) -> Result<bool, AppError> {
        let registry = &self.parts.registry;
        let open = registry.store.open_bridge_prompts().await?;
        let is_its = |row: &&PromptRow| id.is_none_or(|id| row.instance_id == id.as_str());
        let named = open.iter().find(|row| row.request_id == request_id).filter(is_its);
        if named.is_none() {
            return Ok(false);
        }
        let now = self.parts.clock.now();
        if !registry.store.decide_bridge_prompt(request_id, decision, now).await? {
            return Ok(false);
        }
        match &registry.served {
            Some(state_dir) => nudge::nudge(state_dir),
            None => self.refresh().await?,
        }
        Ok(true)
    }

    /// Serves hooks until the service ends.
    ///
    /// `written` counts writes of other processes, `applied` tells of changes of the configuration.
    pub async fn run(
        self: Arc<Self>,
        mut written: watch::Receiver<u64>,
        mut applied: watch::Receiver<()>,
    ) {
        let shutdown = self.parts.tasks.shutdown().clone();
        let mut is_first = true;
        loop {
            if self.parts.config.claude.approval_hook {
                self.install().await;
                if is_first {
                    let this = Arc::clone(&self);
                    self.parts.tasks.spawn(async move { this.drop_abandoned().await });
                }
                if let Some(listener) = socket::listen(socket(&self.parts.config.state_dir)).await {
                    let is_over = self.serve_all(&listener, &mut written, &mut applied).await;
                    drop(listener);
                    if is_over {
                        return;
                    }
                    continue;
                }
            } else {
                self.retire().await;
            }
            is_first = false;
            tokio::select! {
                () = shutdown.cancelled() => return,
                changed = applied.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Serves hooks while the key is on. `true` when the service ends.
    async fn serve_all(
        self: &Arc<Self>,
        listener: &UnixListener,
        written: &mut watch::Receiver<u64>,
        applied: &mut watch::Receiver<()>,
    ) -> bool {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let (tasks, free) = (&self.parts.tasks, Arc::new(Semaphore::new(places(descriptors))));
        loop {
            tokio::select! {
                () = tasks.shutdown().cancelled() => return true,
                changed = applied.changed() => {
                    if changed.is_err() {
                        return true;
                    }
                    if !self.parts.config.claude.approval_hook {
                        return false;
                    }
                }
                changed = written.changed() => {
                    if changed.is_err() {
                        return true;
                    }
                    self.reread().await;
                }
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else {
                        // No descriptor is left, mostly: somebody must close one first.
                        tokio::time::sleep(BACK_OFF).await;
                        continue;
                    };
                    let Ok(place) = Arc::clone(&free).try_acquire_owned() else {
                        socket::decline(&stream);
                        continue;
                    };
                    let this = Arc::clone(self);
                    tasks.spawn(async move {
                        if let Err(error) = Box::pin(this.serve(stream)).await {
                            tracing::warn!("a question of a session was not asked here: {error}");
                        }
                        drop(place);
                    });
                }
            }
        }
    }

    async fn reread(&self) {
        if let Err(error) = self.refresh().await {
            tracing::warn!("the questions of sessions cannot be read: {error}");
        }
    }

    /// Puts the hook into the settings, where sessions of terminals find it too.
    async fn install(&self) {
        let path = socket(&self.parts.config.state_dir);
        if let Err(error) = self.parts.agent_config.install_hook(HOOK, Some(path)).await {
            tracing::warn!(
                "sessions ask for permissions in their own client alone (claude.approval_hook), \
                 because the hook is not in the agent's settings: {error}"
            );
        }
    }

    /// Without the key there is no hook, and nothing waits for one.
    async fn retire(&self) {
        match self.parts.agent_config.remove_hook(HOOK).await {
            Ok(true) => tracing::info!(
                "the hook for permissions was taken out of the agent's settings, because \
                 claude.approval_hook is off"
            ),
            Ok(false) => {}
            Err(error) => tracing::warn!(
                "the hook for permissions was not taken out of the agent's settings: {error}"
            ),
        }
        let path = socket(&self.parts.config.state_dir);
        if let Ok(Err(error)) = crate::tasks::blocking(move || socket::remove(&path)).await {
            tracing::warn!(error = %error, "the socket for questions of sessions was left");
        }
        self.end(PromptEnd::SwitchedOff, |_| true).await;
    }

    /// What nobody asks again after a restart of the service is over.
    async fn drop_abandoned(&self) {
        tokio::select! {
            () = self.parts.tasks.shutdown().cancelled() => return,
            () = tokio::time::sleep(RENEWAL) => {}
        }
        let lost = |row: &PromptRow| !self.connected().contains_key(&row.request_id);
        self.end(PromptEnd::NotRenewed, lost).await;
    }

    /// Withdraws what waits, and gives up answers on their way.
    async fn end(&self, why: PromptEnd, is_over: impl Fn(&PromptRow) -> bool) {
        let (store, now) = (&self.parts.registry.store, self.parts.clock.now());
        let rows = store.open_bridge_prompts().await.unwrap_or_default();
        for row in rows.iter().filter(|row| is_over(row)) {
            let done = match row.decision {
                None => store.cancel_bridge_prompt(&row.request_id, why, now).await,
                Some(_) => store.bridge_prompt_delivered(&row.request_id, false, now).await,
            };
            if let Err(error) = done {
                tracing::warn!(error = %error, "a question that is over was not recorded so");
            }
        }
        self.reread().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h79_hooks_take_few_of_the_descriptors() {
        assert_eq!([u64::MAX, 1 << 20, 4096, 2048].map(places), [MOST; 4]);
        assert_eq!([1024, 256, 128, 7, 0].map(places), [128, 32, 16, 1, 1]);
    }
}
