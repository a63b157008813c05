//! Finds the conversations that hung on a bridge that died.

use crate::agent::Agent;
use crate::log_files;
use crate::sessions::seen::SeenSessions;
use crate::tasks::blocking;
use std::collections::HashMap;
use std::sync::Arc;
use svc_agent::{debug_watch, registry, transcript};
use svc_config::Config;
use svc_domain::agent_log::RemoteId;
use svc_domain::agent_log::report::LoggedSession;
use svc_domain::bridge::Bridge;
use svc_domain::stranded::{EARLY, Registered, Transcript, attached};
use svc_shared::Timestamp;
use svc_shared::status::ResumeMode;
use svc_store::NewStranded;

/// Reads what the agent left behind of a bridge.
pub(crate) struct Attached {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub seen: Arc<SeenSessions>,
}

impl Attached {
    /// The conversations that hung on a generation that died.
    ///
    /// An Interactive Session has none: its own conversation goes on with its resume. Whatever
    /// cannot be read is left out, because the end is recorded in any case.
    pub async fn of(self: &Arc<Self>, bridge: &Bridge, died_at: Timestamp) -> Vec<NewStranded> {
        match bridge.resume_mode {
            ResumeMode::Standard => {}
            ResumeMode::Pty => return Vec::new(),
        }
        let (this, bridge) = (Arc::clone(self), bridge.clone());
        blocking(move || this.read(&bridge, died_at)).await.unwrap_or_default()
    }

    fn read(&self, bridge: &Bridge, died_at: Timestamp) -> Vec<NewStranded> {
        let set = log_files::set_of(&self.config, bridge);
        let report = set.map(|set| debug_watch::whole_report(&set)).unwrap_or_default();
        let logged: Vec<&LoggedSession> = report.sessions().collect();
        let mut registered = self.seen.of(&bridge.id);
        if logged.is_empty() && registered.is_empty() {
            return Vec::new();
        }
        registered.extend(self.left_behind(bridge));
        let Ok(home) = self.agent.home() else { return Vec::new() };
        let first = logged.iter().map(|session| session.since).min();
        // Only a session that no other source names needs them.
        let is_unnamed = |session: &&LoggedSession| session.conversation.is_none();
        let heads = match first.filter(|_| logged.iter().any(is_unnamed)) {
            Some(first) => {
                let millis = first.as_millis() - i64::try_from(EARLY.as_millis()).unwrap_or(0);
                transcript::since(&home, &bridge.cwd, Timestamp::from_millis(millis))
            }
            None => Vec::new(),
        };
        let transcripts: Vec<Transcript> = heads
            .iter()
            .filter_map(|head| {
                Some(Transcript {
                    conversation: head.conversation.clone(),
                    begun_at: head.begun_at?,
                    is_driven: head.is_driven,
                })
            })
            .collect();
        let found = attached(logged, &registered, &transcripts, died_at);
        let mut titles: HashMap<RemoteId, Option<String>> =
            heads.into_iter().map(|head| (head.conversation, head.title)).collect();
        let title = |id: &RemoteId| match titles.remove(id) {
            Some(title) => title,
            None => transcript::of(&home, &bridge.cwd, id).and_then(|head| head.title),
        };
        let mut title = title;
        found
            .into_iter()
            .map(|one| NewStranded {
                title: title(&one.conversation),
                conversation: one.conversation,
                remote: one.remote,
            })
            .collect()
    }

    /// Entries of the registry that nobody cleared: of processes that were killed.
    fn left_behind(&self, bridge: &Bridge) -> Vec<Registered> {
        let Some(dir) = self.agent.sessions_dir() else { return Vec::new() };
        registry::read(&dir)
            .into_iter()
            .filter(|entry| entry.cwd.starts_with(&bridge.cwd))
            .filter_map(|entry| {
                Some(Registered {
                    pid: u32::try_from(entry.pid.get()).ok()?,
                    conversation: RemoteId::new(&entry.session_id),
                    started_at: entry.started_at,
                    is_proven: false,
                })
            })
            .collect()
    }
}
