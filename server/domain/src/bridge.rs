//! The record of one bridge, and what is true in each of its states.

use crate::argv::Argv;
use crate::conversation::ConversationId;
use crate::identity::{LaunchId, ProcessIdentity};
use crate::restart::{Reboot, Restarts};
use crate::worktree::WorktreeName;
use std::path::PathBuf;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{
    BridgeStatus, ExitReason, OnLimit, Origin, PermissionMode, Phase, QuarantineCode, ResumeMode,
    SpawnMode,
};

/// One bridge over all its generations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Stable over stop and resume.
    pub id: InstanceId,
    /// Its project by name.
    pub project: ProjectName,
    /// Real path of the project at the time of the launch.
    /// Signals, locks and logs use it even after the directory is gone.
    pub cwd: PathBuf,
    /// Name shown to the remote client instead of the project name.
    pub custom_name: Option<String>,
    /// Fixed at first launch.
    pub resume_mode: ResumeMode,
    /// Fixed at first launch.
    pub spawn_mode: SpawnMode,
    /// Mode the row resumes with.
    pub permission_mode: PermissionMode,
    /// How this service came to the present generation.
    pub origin: Origin,
    /// 1 at first launch, one more per resume.
    pub generation: u32,
    /// Where it stands.
    pub state: State,
    /// Last change of the public status.
    pub status_since: Timestamp,
    /// Launch of the present generation; `None` on rows that never ran here.
    pub started_at: Option<Timestamp>,
    /// The present generation's launch; `None` on rows that never ran here.
    pub launch: Option<Launch>,
    /// Process of the present generation, once known. Kept after its end as evidence.
    pub process: Option<ProcessIdentity>,
    /// The process that holds the terminal of an Interactive Session.
    /// Kept after the end as evidence; `None` in Server Mode and while the terminal is lost.
    pub keeper: Option<ProcessIdentity>,
    /// The git worktree of an Interactive Session; without one the project directory.
    pub worktree: Option<WorktreeName>,
    /// The conversation of an Interactive Session, once known; a resume continues it.
    pub conversation: Option<ConversationId>,
    /// What the agent registered; credentials, never shown.
    pub anchor: Anchor,
    /// Advice on a healthy row.
    pub notice: Option<String>,
    /// Why nothing may be signalled or deleted.
    pub quarantine: Option<QuarantineCode>,
    /// Automatic restarts.
    pub restarts: Restarts,
    /// What is done after a reboot.
    pub reboot: Reboot,
    /// What it does after a plan limit; `None` follows the configuration.
    pub on_limit: Option<OnLimit>,
}

/// One start of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Also in the child's environment and in the identity file.
    pub id: LaunchId,
    /// Program and arguments, as executed.
    pub argv: Argv,
    /// Common stem of the log files of this generation.
    pub log_stem: String,
    /// The automatic cold relaunch after a poisoned session was used.
    pub relaunched: bool,
}

/// Raw identifiers of the remote service.
/// Knowing them is enough to use them, so they never leave the store.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    /// `env_…`
    pub environment_id: Option<String>,
    /// `session_…`
    pub session_id: Option<String>,
}

impl std::fmt::Debug for Anchor {
    // A derived form would put credentials into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anchor")
            .field("environment", &self.environment_id.is_some())
            .field("session", &self.session_id.is_some())
            .finish()
    }
}

/// Where a bridge stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// A process exists or is about to.
    Live(Live),
    /// No process.
    Ended(Ended),
}

/// A generation that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// How far it came.
    pub stage: Stage,
    /// A deliberate stop was recorded; the end will be `stopped`, never `crashed`.
    pub stop_requested: bool,
}

/// How far a live generation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Recorded before anything was started.
    Launching {
        /// Until when it must be ready; `None` may not expire.
        deadline: Option<Timestamp>,
    },
    /// Started, waiting for the registration.
    Registering {
        /// Until when it must be ready; `None` may not expire.
        deadline: Option<Timestamp>,
    },
    /// Seen ready.
    Ready,
}

/// How a generation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The public status.
    pub outcome: Outcome,
    /// When the end was recorded.
    pub at: Timestamp,
    /// It was stopped on purpose.
    pub intentional: bool,
    /// The kill signal was needed.
    pub forced: bool,
    /// Why, as a word; `None` on rows that never ran here.
    pub reason: Option<ExitReason>,
    /// Exit code, when it could be collected.
    pub exit_code: Option<i32>,
    /// Signal number, when one ended it.
    pub exit_signal: Option<i32>,
    /// Redacted last output, at most 2000 characters.
    pub detail: Option<String>,
}

/// Public status of an ended generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// On purpose, with its host, or as planned.
    Stopped,
    /// Unexpectedly, after it was ready.
    Crashed,
    /// Before it was ready.
    Failed,
}

/// What a record begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// A new id.
    pub id: InstanceId,
    /// Its project by name.
    pub project: ProjectName,
    /// Real path of the project.
    pub cwd: PathBuf,
    /// How this service came to it.
    pub origin: Origin,
    /// Where it stands.
    pub state: State,
    /// The time of its first status.
    pub at: Timestamp,
}

impl Bridge {
    /// The record of a first generation in Server Mode of which nothing else is known.
    #[must_use]
    pub fn begin(of: Beginning) -> Self {
        let Beginning { id, project, cwd, origin, state, at } = of;
        Self {
            id,
            project,
            cwd,
            custom_name: None,
            resume_mode: ResumeMode::Standard,
            spawn_mode: SpawnMode::SameDir,
            permission_mode: PermissionMode::Inherit,
            origin,
            generation: 1,
            state,
            status_since: at,
            started_at: None,
            launch: None,
            process: None,
            keeper: None,
            worktree: None,
            conversation: None,
            anchor: Anchor::default(),
            notice: None,
            quarantine: None,
            restarts: Restarts::default(),
            reboot: Reboot::default(),
            on_limit: None,
        }
    }

    /// Label on every surface.
    #[must_use]
    pub fn label(&self) -> &str {
        self.custom_name.as_deref().unwrap_or(self.project.as_str())
    }

    /// The live part, if there is one.
    #[must_use]
    pub fn live(&self) -> Option<&Live> {
        match &self.state {
            State::Live(live) => Some(live),
            State::Ended(_) => None,
        }
    }

    /// The end, if there was one.
    #[must_use]
    pub fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Live(_) => None,
            State::Ended(ended) => Some(ended),
        }
    }

    /// Whether a process is expected to exist.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live().is_some()
    }

    /// Whether this is the one Server Mode bridge of its project.
    /// A held row whose process may live counts too.
    #[must_use]
    pub fn occupies_project(&self) -> bool {
        self.resume_mode == ResumeMode::Standard && self.is_live()
    }

    /// Whether it runs in a terminal, as an Interactive Session.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        match self.resume_mode {
            ResumeMode::Pty => true,
            ResumeMode::Standard => false,
        }
    }

    /// Where the agent works: the project's directory or the worktree of the session.
    #[must_use]
    pub fn work_dir(&self) -> PathBuf {
        match &self.worktree {
            Some(worktree) => worktree.path_in(&self.cwd),
            None => self.cwd.clone(),
        }
    }

    /// Why its process must not be signalled.
    /// A keeper of another version leaves no doubt about the agent: it is ended by signals.
    #[must_use]
    pub fn doubt(&self) -> Option<QuarantineCode> {
        self.quarantine.filter(|code| *code != QuarantineCode::KeeperVersion)
    }

    /// Public status.
    #[must_use]
    pub fn status(&self) -> BridgeStatus {
        match &self.state {
            State::Live(live) => match live.stage {
                Stage::Launching { .. } | Stage::Registering { .. } => BridgeStatus::Starting,
                Stage::Ready => BridgeStatus::Running,
            },
            State::Ended(ended) => match ended.outcome {
                Outcome::Stopped => BridgeStatus::Stopped,
                Outcome::Crashed => BridgeStatus::Crashed,
                Outcome::Failed => BridgeStatus::Error,
            },
        }
    }

    /// Progress word.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Live(live) if live.stop_requested => Phase::Stopping,
            State::Live(live) => match live.stage {
                Stage::Launching { .. } => Phase::Launching,
                Stage::Registering { .. } => Phase::Registering,
                Stage::Ready => Phase::Ready,
            },
            State::Ended(_) => Phase::Exited,
        }
    }

    /// Until when a start must be ready; `None` when it may take any time.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match self.live()?.stage {
            Stage::Launching { deadline } | Stage::Registering { deadline } => deadline,
            Stage::Ready => None,
        }
    }

    /// Whether a stop was asked for, or was the last end.
    #[must_use]
    pub fn intentional_stop(&self) -> bool {
        match &self.state {
            State::Live(live) => live.stop_requested,
            State::Ended(ended) => ended.intentional,
        }
    }
}
