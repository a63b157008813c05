//! The conversations that Interactive Sessions hold and launches take.

use crate::AppError;
use crate::agent::Agent;
use crate::auth::refs::SessionRefs;
use crate::bridges::transition::Transitions;
use crate::projects::catalog::Catalog;
use crate::tasks::blocking;
use std::path::PathBuf;
use std::sync::Arc;
use svc_agent::registry::entry_of;
use svc_agent::transcripts;
use svc_domain::admission::Picked;
use svc_domain::bridge::Bridge;
use svc_domain::conversation::{ConversationId, Kept, TakeUp, take_up};
use svc_domain::observe::Fact;
use svc_domain::slug::slug;
use svc_projects::Project;
use svc_shared::ids::SessionRef;

/// A past conversation as a caller names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pick {
    /// By its reference.
    Ref(SessionRef),
    /// By the agent's own id.
    Id(ConversationId),
}

/// Finds conversations.
pub(crate) struct Conversations {
    pub agent: Arc<Agent>,
    pub catalog: Arc<Catalog>,
    pub refs: Arc<SessionRefs>,
    pub transitions: Arc<Transitions>,
}

impl Conversations {
    /// The conversation that a caller picked, and what an admission makes of it.
    pub async fn picked(
        self: &Arc<Self>,
        project: &Project,
        pick: Option<Pick>,
    ) -> Result<(Picked, TakeUp), AppError> {
        let Some(pick) = pick else { return Ok((Picked::Nothing, TakeUp::New)) };
        let (this, project) = (Arc::clone(self), project.clone());
        blocking(move || this.find(&project, &pick)).await
    }

    fn find(&self, project: &Project, pick: &Pick) -> (Picked, TakeUp) {
        let Ok(home) = self.agent.home() else { return (Picked::Unknown, TakeUp::New) };
        let of = |path: &std::path::Path| slug(&path.to_string_lossy());
        let own = of(&project.path);
        let mut others: Vec<PathBuf> = Vec::new();
        for other in self.catalog.all().iter().filter(|other| other.path != project.path) {
            if of(&other.path) == own {
                return (Picked::Shared, TakeUp::New);
            }
            others.push(other.path.clone());
        }
        let is_it = |id: &ConversationId| match pick {
            Pick::Id(wanted) => id == wanted,
            Pick::Ref(wanted) => self.refs.session(id.expose()).as_ref() == Some(wanted),
        };
        let mut known = transcripts::of_project(&home, &project.path, &others).into_iter();
        match known.find(is_it) {
            Some(id) => (Picked::Found, TakeUp::CopyOf(id)),
            None => (Picked::Unknown, TakeUp::New),
        }
    }

    /// How a resume of this session goes on with its conversation.
    pub async fn take_up(&self, bridge: &Bridge) -> Result<TakeUp, AppError> {
        if !bridge.is_interactive() {
            return Ok(TakeUp::New);
        }
        let home = self.agent.home()?;
        let (work_dir, recorded) = (bridge.work_dir(), bridge.conversation.clone());
        let live = self.transitions.registry.copies.live();
        let is_alone = !live.iter().any(|other| other.id != bridge.id && other.cwd == bridge.cwd);
        let is_own = bridge.worktree.is_some();
        blocking(move || {
            let transcripts = transcripts::kept(&home, &work_dir);
            let kept = Kept { transcripts: &transcripts, is_alone: is_alone || is_own, is_own };
            take_up(recorded.as_ref(), kept)
        })
        .await
    }

    /// Reads which conversation the agent of a session holds now, and records it.
    /// The agent's registry of sessions tells it while the agent lives.
    pub async fn learn(&self, bridge: &Bridge) -> Result<(), AppError> {
        let Some(process) = bridge.process.clone().filter(|_| bridge.is_interactive()) else {
            return Ok(());
        };
        let Some(dir) = self.agent.sessions_dir() else { return Ok(()) };
        let entry = blocking(move || {
            // A file can outlive its process, and the pid can be somebody else's by now.
            entry_of(&dir, process.pid).filter(|entry| entry.start_ticks == process.start_ticks)
        })
        .await?;
        let Some(id) = entry.and_then(|entry| entry.session_id.parse::<ConversationId>().ok())
        else {
            return Ok(());
        };
        let known = self.transitions.registry.copies.bridge(&bridge.id);
        if known.is_some_and(|known| known.conversation.as_ref() == Some(&id)) {
            return Ok(());
        }
        let fact = Fact::Conversation(id);
        self.transitions.observe(&bridge.id, bridge.generation, fact).await.map(drop)
    }
}
