//! The instance record and the bodies that launch, resume and change it.

use crate::api::activity::Activity;
use crate::api::limits::PlanLimit;
use crate::api::link::Link;
use crate::ids::{InstanceId, SessionRef};
use crate::status::{
    BridgeStatus, Channel, ConnectKind, ExitReason, LaunchMode, NotCreated, OnLimit, Origin,
    PermissionMode, Phase, QuarantineKind, RestartPolicy, RestartState, ResumeBlocked, ResumeMode,
    SandboxMode, SpawnMode,
};
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// Whether a link for the remote client exists. Only `connect` returns the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct ConnectInfo {
    /// A link can be had now.
    pub available: bool,
    /// Which link; null without one.
    pub kind: Option<Word<ConnectKind>>,
}

/// Why automatic and manual actions on a row are suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Quarantine {
    /// `identity` or `crash-loop`.
    pub kind: Word<QuarantineKind>,
    /// Which doubt, as a word.
    pub code: String,
}

impl Quarantine {
    /// Whether only the automatic restarts are suspended. A person may do everything.
    #[must_use]
    pub fn is_crash_loop(&self) -> bool {
        self.kind.is(&QuarantineKind::CrashLoop)
    }
}

/// Restart policy of a row and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Restart {
    /// The policy in force.
    pub policy: Word<RestartPolicy>,
    /// Idle, waiting for the next try, or given up.
    pub state: Word<RestartState>,
    /// Tries made in this window.
    pub attempt: u32,
    /// When the next try starts; null when none is pending.
    pub next_at: Option<Timestamp>,
    /// Crashes counted in the window.
    pub crashes_in_window: u32,
}

impl Restart {
    /// What happens by itself, as a sentence; `None` when nothing does.
    #[must_use]
    pub fn sentence(&self, now: Timestamp) -> Option<String> {
        match self.state.known()? {
            RestartState::Idle => None,
            RestartState::Waiting => {
                let attempt = self.attempt.saturating_add(1);
                let wait = self.next_at?.since(now).as_millis().div_ceil(1000);
                Some(match wait {
                    0 => format!("restarts now, attempt {attempt}"),
                    1..=119 => format!("restarts in {wait} s, attempt {attempt}"),
                    _ => format!("restarts in {} min, attempt {attempt}", wait / 60),
                })
            }
            RestartState::Quarantined => {
                let crashes = match self.crashes_in_window {
                    1 => "1 crash".to_owned(),
                    many => format!("{many} crashes"),
                };
                Some(format!("gave up after {crashes} in a short time; Resume tries again"))
            }
        }
    }
}

/// A tool request that waits for an answer (Direct Sessions).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct PendingPermission {
    /// Id to answer with.
    pub request_id: String,
    /// The request subtype.
    pub subtype: String,
    /// Since when it waits.
    pub since: Timestamp,
    /// The tool it is about; null when it is about none.
    pub tool: Option<String>,
    /// What the agent wants to do, redacted, at most 300 characters.
    pub summary: String,
    /// Whether the summary leaves something out.
    pub truncated: bool,
    /// When the question lapses by itself; null when it waits as long as its session.
    pub expires_at: Option<Timestamp>,
    /// What the agent offers to allow for its session, in its notation, redacted.
    #[serde(default)]
    pub session_rules: Vec<String>,
}

/// A managed bridge. Every member is always present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Instance {
    /// Stable for the life of the row, kept over restart and resume.
    pub instance_id: InstanceId,
    /// Project name.
    pub project: String,
    /// Custom session name, else the project name.
    pub label: String,
    /// How it is driven.
    pub channel: Word<Channel>,
    /// Where it stands.
    pub status: Word<BridgeStatus>,
    /// Fixed at launch.
    pub resume_mode: Word<ResumeMode>,
    /// Where its sessions work.
    pub spawn_mode: Word<SpawnMode>,
    /// Mode the row resumes with.
    pub permission_mode: Word<PermissionMode>,
    /// Inert; always `default`.
    pub sandbox_mode: Word<SandboxMode>,
    /// Null until a session attaches.
    pub session_ref: Option<SessionRef>,
    /// Null until the environment is registered.
    pub environment_ref: Option<SessionRef>,
    /// Whether a link for the remote client exists.
    pub connect: ConnectInfo,
    /// Hosted process id; null for bridges.
    pub process_id: Option<String>,
    /// Name handed to the agent's worktree flag; Interactive Sessions only.
    pub worktree_name: Option<String>,
    /// Live pid or null.
    pub bridge_pid: Option<i32>,
    /// Live pid or null.
    pub keeper_pid: Option<i32>,
    /// Live pid or null.
    pub agent_pid: Option<i32>,
    /// Time of the last status change.
    pub status_since: Timestamp,
    /// Launch of the current or last generation.
    pub started_at: Option<Timestamp>,
    /// Null while live.
    pub ended_at: Option<Timestamp>,
    /// 1 at first launch, one more per resume.
    pub generation: u32,
    /// Why the last generation ended; null while live.
    pub exit_reason: Option<Word<ExitReason>>,
    /// Signal that ended it, when it was one.
    pub exit_signal: Option<i32>,
    /// Progress of the generation.
    pub phase: Word<crate::status::Phase>,
    /// How the service came to it.
    pub origin: Word<Origin>,
    /// Why actions are suspended; null normally.
    pub quarantined: Option<Quarantine>,
    /// Restart policy and its state.
    pub restart: Restart,
    /// A deliberate stop is in progress or was the last end.
    pub intentional_stop: bool,
    /// Not launched by this service process.
    pub adopted: bool,
    /// Direct Sessions: alive without its daemon.
    pub is_orphan: bool,
    /// Release the live process runs; null when unknown.
    pub agent_version: Option<String>,
    /// Redacted end of the output, at most 2000 characters; `error` and `crashed` only.
    pub error_detail: Option<String>,
    /// Last known exit code.
    pub exit_code: Option<i32>,
    /// Advice on a healthy row.
    pub notice: Option<String>,
    /// A resume would be attempted.
    pub resumable: bool,
    /// Why it would not.
    pub resume_blocked: Option<Word<ResumeBlocked>>,
    /// Until when the agent can reconnect the old remote sessions.
    pub reuse_expires_at: Option<Timestamp>,
    /// A log can be read now.
    pub has_log: bool,
    /// The remote link. It never decides about `status`.
    pub link: Link,
    /// What it does; null while nothing is known, and after its end.
    pub activity: Option<Activity>,
    /// The plan limit that its conversation stopped at; null without one.
    pub limit: Option<PlanLimit>,
    /// What it does after a plan limit; a Server Mode bridge always waits.
    pub on_limit: Word<OnLimit>,
    /// Conversations of dead generations that nobody has continued or dismissed.
    pub stranded: u32,
    /// Direct Sessions; empty for bridges.
    pub pending_permissions: Vec<PendingPermission>,
    /// Direct Sessions; 0 for bridges.
    pub last_event_seq: u64,
}

impl Instance {
    /// The record of a row of which nothing is known but whose it is.
    ///
    /// Other records begin with it, so that a new member has one place for its absence.
    #[must_use]
    pub fn blank(instance_id: InstanceId, project: String) -> Self {
        Self {
            instance_id,
            label: project.clone(),
            project,
            channel: Channel::RemoteControl.into(),
            status: BridgeStatus::Error.into(),
            resume_mode: ResumeMode::Standard.into(),
            spawn_mode: SpawnMode::SameDir.into(),
            permission_mode: PermissionMode::Default.into(),
            sandbox_mode: SandboxMode::Default.into(),
            session_ref: None,
            environment_ref: None,
            connect: ConnectInfo { available: false, kind: None },
            process_id: None,
            worktree_name: None,
            bridge_pid: None,
            keeper_pid: None,
            agent_pid: None,
            status_since: Timestamp::from_millis(0),
            started_at: None,
            ended_at: None,
            generation: 1,
            exit_reason: None,
            exit_signal: None,
            phase: Phase::Exited.into(),
            origin: Origin::Spawned.into(),
            quarantined: None,
            restart: Restart {
                policy: RestartPolicy::Never.into(),
                state: RestartState::Idle.into(),
                attempt: 0,
                next_at: None,
                crashes_in_window: 0,
            },
            intentional_stop: false,
            adopted: false,
            is_orphan: false,
            agent_version: None,
            error_detail: None,
            exit_code: None,
            notice: None,
            resumable: false,
            resume_blocked: None,
            reuse_expires_at: None,
            has_log: false,
            link: Link::unknown(),
            activity: None,
            limit: None,
            on_limit: OnLimit::Wait.into(),
            stranded: 0,
            pending_permissions: Vec::new(),
            last_event_seq: 0,
        }
    }

    /// Whether a process is expected to exist; unknown words count as not live.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.status.known().is_some_and(|status| status.is_live())
    }

    /// Progress word, when this version knows it.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        self.phase.known().copied()
    }
}

/// Body of a launch. Absent and null mean the same for every optional member.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct SpawnRequest {
    /// Project name.
    pub project: String,
    /// `remote-control` (default) or `hosted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// `standard`, `pty` or `hosted`; sets `resume_mode` and `channel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// True acknowledges an untrusted directory; never assumed.
    #[serde(default)]
    pub trust: Option<bool>,
    /// `same-dir`, `worktree` or `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn_mode: Option<String>,
    /// One of the seven permission modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// `standard` or `pty`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_mode: Option<String>,
    /// Custom session name, at most 128 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", oai(validator(max_length = 128)))]
    pub name: Option<String>,
    /// Accepted, has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Past conversation to fork; Interactive Sessions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The same by the agent's own id; Interactive Sessions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_session_id: Option<String>,
    /// `never`, `on-crash` or `always`; null follows the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
    /// `offer`, `resume` or `never`; null follows the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_reboot: Option<String>,
    /// `wait` or `continue` after a plan limit; null follows the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<String>,
}

/// Optional body of a resume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct ResumeRequest {
    /// True acknowledges an untrusted directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
}

/// Body of a change of a row. An absent member stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PatchInstance {
    /// New session name; blank means the project name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Restart policy of the row; null follows the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<Option<String>>,
    /// What is done after a reboot; null follows the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_reboot: Option<Option<String>>,
    /// What it does after a plan limit; null follows the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<Option<String>>,
}

/// Optional body of a release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReleaseRequest {
    /// Start the bridge as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<bool>,
}

/// What a launch or a resume did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Outcome {
    /// A process was started by this request.
    pub created: bool,
    /// Why not, for a person.
    pub reason: Option<String>,
    /// Why not, as a word.
    pub reason_code: Option<Word<NotCreated>>,
    /// What the caller should know although it worked.
    pub warnings: Vec<String>,
}

/// The instance and what the request did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnResult {
    /// The record after the request.
    #[serde(flatten)]
    pub instance: Instance,
    /// What the request did.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The kind of launch that `mode`, `channel` and `resume_mode` ask for together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Server Mode or Interactive Session.
    Bridge(ResumeMode),
    /// Direct Session.
    Hosted,
}

impl From<LaunchMode> for Kind {
    fn from(mode: LaunchMode) -> Self {
        match mode {
            LaunchMode::Standard => Self::Bridge(ResumeMode::Standard),
            LaunchMode::Pty => Self::Bridge(ResumeMode::Pty),
            LaunchMode::Hosted => Self::Hosted,
        }
    }
}
