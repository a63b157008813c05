//! What the watcher of an Interactive Session knows besides its log.
//! Its keeper, and the conversation that it holds.

use crate::AppError;
use crate::bridges::ends::Noticed;
use crate::bridges::terminator::Ended;
use crate::supervise::keeper_watch::{KeeperWatch, Reach, View};
use crate::supervise::watchers::Watchers;
use std::sync::Arc;
use std::time::Duration;
use svc_agent::registry::entry_file;
use svc_domain::agent_log::evidence::{Evidence, Readiness};
use svc_domain::bridge::{Bridge, Stage};
use svc_domain::observe::Fact;
use svc_keeper::message::{Phase, Question};
use svc_shared::status::{ExitReason, QuarantineCode};
use svc_watch::{Pace, Subscription};
use tokio::sync::watch;

/// An agent whose terminal hangs up ends within this time, or goes on without it.
const HANG_UP: Duration = Duration::from_secs(1);

/// A keeper tells the exit status of its agent within milliseconds.
const CONCLUSION: Duration = Duration::from_secs(2);

/// The keeper and the conversation of an Interactive Session.
pub(super) struct Session {
    keeper: KeeperWatch,
    changes: watch::Receiver<View>,
    entry: Option<Subscription>,
}

/// What changed.
pub(super) enum News {
    /// What is known of the keeper.
    Keeper,
    /// The agent's entry in its registry of sessions.
    Entry,
}

/// Why a session cannot become ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub reason: ExitReason,
    pub detail: Option<String>,
}

impl Session {
    /// Begins to follow a session; `None` for a Server Mode bridge.
    pub fn start(this: &Arc<Watchers>, bridge: &Bridge) -> Option<Self> {
        let pid = bridge.process.as_ref().filter(|_| bridge.is_interactive())?.pid;
        let keeper = KeeperWatch::start(&this.keepers, &this.tasks, bridge);
        let changes = keeper.changes();
        let entry = this.agent.sessions_dir().map(|dir| entry_file(&dir, pid));
        let entry = entry.map(|file| this.watcher.file(&file, Pace::START));
        Some(Self { keeper, changes, entry })
    }

    /// Waits for the next change.
    pub async fn changed(&mut self) -> News {
        let entry = async {
            match &mut self.entry {
                Some(entry) => entry.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changes.changed() => {
                if changed.is_err() {
                    // Its task has ended with the keeper: nothing more will change.
                    std::future::pending::<()>().await;
                }
                News::Keeper
            }
            _ = entry => News::Entry,
        }
    }

    /// Whether the agent must be given up as ready, refused, or is to be waited for.
    pub fn readiness(&self, bridge: &Bridge, evidence: &Evidence) -> Result<bool, Refusal> {
        let is_ready = bridge.live().is_some_and(|live| live.stage == Stage::Ready);
        let state = self.keeper.view().state;
        let has_url = state.phase == Phase::Ready;
        if is_ready {
            // What it quotes later refuses nothing.
            return Ok(evidence.attached || has_url);
        }
        match evidence.interactive_readiness() {
            Readiness::Refused(refusal) => {
                let detail = evidence.refusal_detail().map(str::to_owned);
                Err(Refusal { reason: refusal.exit_reason(), detail })
            }
            _ if state.phase == Phase::Failed => Err(Refusal {
                reason: match state.reason {
                    Some(Question::TrustRequired) => ExitReason::TrustRequired,
                    Some(Question::OnboardingRequired) | None => ExitReason::OnboardingRequired,
                },
                detail: None,
            }),
            Readiness::Ready => Ok(true),
            Readiness::Waiting | Readiness::ReadyAfterReattach => Ok(has_url),
        }
    }

    /// The remote session as the terminal shows it.
    pub fn remote_session(&self) -> Option<String> {
        self.keeper.view().state.session_id
    }

    /// Waits until the keeper told how its agent ended, or is gone.
    pub async fn concluded(&mut self) {
        self.keeper.concluded(CONCLUSION).await;
    }

    /// Whether the keeper is gone.
    pub fn has_lost_its_keeper(&self) -> bool {
        self.keeper.view().reach == Reach::Gone
    }

    /// How long an agent is waited for whose terminal has hung up.
    pub fn hang_up() -> Duration {
        HANG_UP
    }
}

impl Watchers {
    /// Records what the connection to the keeper says about the row.
    pub(super) async fn judge_keeper(
        &self,
        bridge: &Bridge,
        session: &Session,
    ) -> Result<(), AppError> {
        let is_held = bridge.quarantine == Some(QuarantineCode::KeeperVersion);
        let fact = match session.keeper.view().reach {
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
