//! What the watcher of an Interactive Session records about it.

use crate::AppError;
use crate::bridges::ends::Noticed;
use crate::bridges::terminator::Ended;
use crate::supervise::keeper_watch::{KeeperWatch, Reach};
use crate::supervise::session_watch::{Refusal, Session};
use crate::supervise::watchers::Watchers;
use svc_agent::registry::entry_file;
use svc_domain::bridge::{Bridge, Stage};
use svc_domain::observe::Fact;
use svc_shared::status::QuarantineCode;
use svc_watch::Pace;

impl Watchers {
    /// Begins to follow a session; `None` for a Server Mode bridge.
    pub(super) fn session(&self, bridge: &Bridge) -> Option<Session> {
        let pid = bridge.process.as_ref().filter(|_| bridge.is_interactive())?.pid;
        let keeper = KeeperWatch::start(&self.keepers, &self.tasks, bridge);
        let entry = self.agent.sessions_dir().map(|dir| entry_file(&dir, pid));
        let entry = entry.map(|file| self.watcher.file(&file, Pace::START));
        Some(Session::new(keeper, entry))
    }

    /// Records what the connection to the keeper says about the row.
    pub(super) async fn judge_keeper(
        &self,
        bridge: &Bridge,
        session: &Session,
    ) -> Result<(), AppError> {
        let is_held = bridge.quarantine == Some(QuarantineCode::KeeperVersion);
        let fact = match session.reach() {
            Reach::OtherVersion if bridge.quarantine.is_none() => {
                Fact::Doubt(QuarantineCode::KeeperVersion)
            }
            Reach::Connected if is_held => Fact::Certain,
            Reach::OtherVersion | Reach::Connected | Reach::Away | Reach::Gone => return Ok(()),
        };
        self.transitions().observe(&bridge.id, bridge.generation, fact).await.map(drop)
    }

    /// Records that a session goes on without its terminal.
    pub(super) async fn terminal_lost(&self, bridge: &Bridge) -> Result<(), AppError> {
        let Some(current) = self.registry().live_generation(bridge).await? else { return Ok(()) };
        if self.terminator.under_way.contains(&bridge.id) {
            return Ok(());
        }
        let fact = Fact::TerminalLost;
        self.transitions().observe(&current.id, current.generation, fact).await.map(drop)
    }

    /// Ends a session that said it cannot become ready, and records why.
    /// Its process is gone before that is public. Tells whether the generation has ended.
    pub(super) async fn refused(
        &self,
        bridge: &Bridge,
        refusal: Refusal,
    ) -> Result<bool, AppError> {
        let _lock = self.locks.project(&bridge.cwd).await?;
        let Some(current) = self.registry().live_generation(bridge).await? else {
            return Ok(true);
        };
        let is_ready = current.live().is_some_and(|live| live.stage == Stage::Ready);
        let Some(identity) = current.process.clone().filter(|_| !is_ready) else {
            return Ok(false);
        };
        let _mark = self.terminator.under_way.mark(&bridge.id);
        let (noticed, is_over) = match self.terminator.end(&current, &identity).await {
            Ended::Gone { report, .. } => {
                self.keepers.finish(&current).await;
                let Refusal { reason, detail } = refusal;
                (Noticed::Refused { reason, detail, report }, true)
            }
            Ended::Alive(code) => (Noticed::Alive(code), false),
        };
        self.ends.record(&current, noticed).await?;
        Ok(is_over)
    }
}
