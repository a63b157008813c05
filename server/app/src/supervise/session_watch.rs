//! What the watcher of an Interactive Session knows besides its log.
//! Its keeper, and the conversation that it holds.

use crate::supervise::keeper_watch::{KeeperWatch, Reach, View};
use std::time::Duration;
use svc_domain::agent_log::evidence::{Evidence, Readiness};
use svc_domain::bridge::{Bridge, Stage};
use svc_keeper::message::{Phase, Question};
use svc_shared::status::ExitReason;
use svc_watch::Subscription;
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
    /// Follows a keeper, and the entry of the agent where its registry is known.
    pub fn new(keeper: KeeperWatch, entry: Option<Subscription>) -> Self {
        Self { changes: keeper.changes(), keeper, entry }
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
            // A conversation that is continued may show the words of a question.
            Readiness::Ready => Ok(true),
            _ if state.phase == Phase::Failed => Err(Refusal {
                reason: match state.reason {
                    Some(Question::TrustRequired) => ExitReason::TrustRequired,
                    Some(Question::OnboardingRequired) | None => ExitReason::OnboardingRequired,
                },
                detail: None,
            }),
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

    /// How far the connection to the keeper is.
    pub fn reach(&self) -> Reach {
        self.keeper.view().reach
    }

    /// Whether the keeper is gone.
    pub fn has_lost_its_keeper(&self) -> bool {
        self.reach() == Reach::Gone
    }

    /// How long an agent is waited for whose terminal has hung up.
    pub fn hang_up() -> Duration {
        HANG_UP
    }
}
