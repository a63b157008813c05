//! The end of what an agent started: nothing of it outlives a stop (H104).
//!
//! A process belongs to a session that carries the name of its process, or was below its agent
//! while that lived. Each is signalled by its identity only.

use crate::bridges::family::{ROUNDS, kill_each};
use crate::hosted::HostedParts;
use crate::tasks::blocking;
use std::collections::HashSet;
use std::sync::Arc;
use svc_domain::hosted::HostedSession;
use svc_domain::identity::{LaunchId, ProcessIdentity, Verdict};
use tracing::warn;

impl HostedParts {
    /// Who is below the agent of a session now.
    ///
    /// Nobody, where only the record says that the process is its agent (H102).
    pub(super) async fn below(self: &Arc<Self>, session: &HostedSession) -> Vec<ProcessIdentity> {
        let Some(agent) = session.agent.clone() else { return Vec::new() };
        let (this, of) = (Arc::clone(self), session.clone());
        let look = move || match this.is_agent_of(&of, &agent) {
            true => this.host.descendants(&agent),
            false => Vec::new(),
        };
        let found = blocking(look).await.unwrap_or_default();
        found.into_iter().map(|process| process.identity).collect()
    }

    /// Ends what an agent that is gone left behind; `seen` were below it.
    pub(super) async fn end_leftovers(
        self: &Arc<Self>,
        session: &HostedSession,
        seen: Vec<ProcessIdentity>,
    ) {
        let Ok(launch) = session.process_id.parse::<LaunchId>() else { return };
        let mut known: HashSet<ProcessIdentity> = seen.into_iter().collect();
        for _ in 0..ROUNDS {
            let left = self.left_of(session, &launch, &mut known).await;
            if left.is_empty() {
                return;
            }
            let count = left.len();
            warn!(bridge.id = %session.id, "Direct Session {} left {count} processes behind; they \
                are killed", session.id.short());
            if !kill_each(self.host.as_ref(), &left).await {
                break;
            }
        }
        let left = self.left_of(session, &launch, &mut known).await;
        if !left.is_empty() {
            let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
            warn!(bridge.id = %session.id, "processes of Direct Session {} could not be killed: \
                {}; see `svc strays`", session.id.short(), pids.join(", "));
        }
    }

    /// Live processes of a session whose agent is gone.
    ///
    /// `known` keeps those that were seen: they may have lost every mark by the next look.
    async fn left_of(
        self: &Arc<Self>,
        session: &HostedSession,
        launch: &LaunchId,
        known: &mut HashSet<ProcessIdentity>,
    ) -> Vec<ProcessIdentity> {
        let (this, launch) = (Arc::clone(self), launch.clone());
        let found = blocking(move || this.host.remains(None, &launch)).await.unwrap_or_default();
        known.extend(found.into_iter().map(|process| process.identity));
        known.retain(|process| {
            Some(process) != session.agent.as_ref()
                && matches!(self.host.probe(process), Verdict::Same)
        });
        known.iter().cloned().collect()
    }
}
