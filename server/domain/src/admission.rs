//! May this launch happen? Preflight and launch ask this one function.

use crate::adoption::Unrecorded;
use crate::identity::Pid;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{PermissionMode, QuarantineCode, ResumeMode, SpawnMode};

/// The options of a launch that matter for its admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Kind of bridge.
    pub resume_mode: ResumeMode,
    /// Working directory strategy.
    pub spawn_mode: SpawnMode,
    /// Permission mode.
    pub permission_mode: PermissionMode,
    /// The caller acknowledges an untrusted directory.
    pub trust: bool,
    /// The session name would be read as an option by the agent.
    pub name_reads_as_option: bool,
}

/// Trust as the agent will see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Granted.
    Granted,
    /// Not granted; a grant could be written.
    Missing,
    /// The agent's file cannot be read or understood, and why.
    /// So nothing is trusted and nothing can be granted.
    Unreadable(String),
}

/// Whether the agent program can be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Found.
    Present,
    /// Not found or not executable. Says why.
    Missing(String),
}

/// The past conversation that a launch was asked to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picked {
    /// None.
    Nothing,
    /// A conversation of this project.
    Found,
    /// None of this project.
    Unknown,
    /// Two projects share one directory of transcripts, so nobody can tell whose it is.
    Shared,
}

/// What is so at the moment of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circumstances {
    /// The directory has another name that owns it.
    pub alias_of: Option<ProjectName>,
    /// It is in a git repository.
    pub is_git_repo: bool,
    /// Its repository has a commit.
    pub has_commit: bool,
    /// What makes a worktree of it write into another repository, if something does.
    pub foreign_git: Option<String>,
    /// The configuration allows bypassing permissions here.
    pub bypass_allowed: bool,
    /// The agent's own settings would bypass permissions when no flag is given.
    pub inherits_bypass: bool,
    /// The project's live Server Mode bridge.
    pub live_standard: Option<InstanceId>,
    /// The bridge that runs in the directory without a live record.
    pub unrecorded: Unrecorded,
    /// Trust.
    pub trust: Trust,
    /// Live bridges of this deployment.
    pub live_bridges: u32,
    /// Cap, if one is configured.
    pub max_bridges: Option<u32>,
    /// The agent program.
    pub program: Program,
    /// A terminal can be had for an Interactive Session.
    pub has_terminal: bool,
    /// The conversation to copy.
    pub picked: Picked,
    /// The log and state file systems have room.
    pub disk_has_room: bool,
}

impl Circumstances {
    /// What of them decides about a background job.
    #[must_use]
    pub fn of_a_job(&self) -> JobCircumstances<'_> {
        JobCircumstances {
            alias_of: self.alias_of.as_ref(),
            bypass_allowed: self.bypass_allowed,
            inherits_bypass: self.inherits_bypass,
            trust: &self.trust,
            program: &self.program,
            disk_has_room: self.disk_has_room,
        }
    }
}

/// Least free space for a launch and for a background job (`http-api` §2.6, H95).
/// Below it a half-written log or database is likely.
pub const MIN_FREE_BYTES: u64 = 64 * 1024 * 1024;

/// The verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// Go on; write the trust grant first when `grant_trust`.
    Launch {
        /// The directory is untrusted and the caller acknowledged it.
        grant_trust: bool,
    },
    /// Nothing new: this one is the answer.
    Reuse(InstanceId),
    /// Nothing new: the bridge with this process gets a record and is the answer.
    TakeOver(Pid),
    /// The record of this bridge says that it ended, but its process lives.
    /// Correct the record, then ask again.
    Correct(InstanceId),
    /// No.
    Refused(Obstacle),
}

/// One reason against a launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Another name is the project.
    #[error("it is the same directory as project `{0}`; start that one")]
    Alias(ProjectName),
    /// Another service started the bridge that runs in the directory.
    #[error("another service runs the bridge of this project (process {0}); stop it there")]
    OtherService(Pid),
    /// The bridge in the directory has a record on which actions are suspended.
    #[error(
        "instance {} of this project is held ({code}) and its process lives; see its details for the way out", .id.short()
    )]
    Held {
        /// The instance.
        id: InstanceId,
        /// Why it is held.
        code: QuarantineCode,
    },
    /// Nobody can tell whether the process of an ended record lives.
    #[error(
        "instance {} of this project may still have a process: the process table cannot be read for it; check how /proc is mounted (hidepid) and try again", .0.short()
    )]
    MayBeLive(InstanceId),
    /// Worktrees come from git.
    #[error(
        "`spawn_mode: worktree` needs a git repository; use `same-dir` or run `git init` there"
    )]
    NotGit,
    /// A worktree needs a commit to start from.
    #[error(
        "`spawn_mode: worktree` needs a repository with a commit; commit something first or use `same-dir`"
    )]
    NoCommit,
    /// The repository leads into another one.
    #[error(
        "`spawn_mode: worktree` could write into another repository, because {0}; correct that or use `same-dir`"
    )]
    ForeignGit(String),
    /// Single-session mode is a strategy of Server Mode.
    #[error(
        "`spawn_mode: session` is only for Server Mode; leave it out or use `resume_mode: standard`"
    )]
    SessionNeedsStandard,
    /// There is none of this project.
    #[error(
        "the conversation is none of this project; choose one of its own, or leave `conversation` and `resume_session_id` out"
    )]
    UnknownConversation,
    /// Two paths have one slug.
    #[error(
        "another project keeps its transcripts in the same directory of the agent, so the conversation may be its; start without `conversation` and `resume_session_id`"
    )]
    SharedTranscripts,
    /// No pseudo-terminal.
    #[error(
        "no terminal can be made for an Interactive Session on this machine; check /dev/ptmx and `svc doctor`"
    )]
    NoTerminal,
    /// The agent shows the project's name, and no other can be given.
    #[error(
        "the agent would read the project's name as an option, because it begins with `-`; rename the directory"
    )]
    ProjectReadsAsOption,
    /// The project name is the session name when none is given.
    #[error(
        "the agent would read the session name as an option, because it begins with `-`; give the session another `name`"
    )]
    NameReadsAsOption,
    /// Forbidden by configuration.
    #[error(
        "this project does not allow bypassing permissions; set `projects.<name>.allow_bypass_permissions: true` in the configuration or use another permission mode"
    )]
    BypassForbidden,
    /// Forbidden by configuration, asked for by the agent's settings.
    #[error(
        "`inherit` would bypass permissions here, because the agent's settings say so, and the configuration does not allow it; set `projects.<name>.allow_bypass_permissions: true` or choose a permission mode"
    )]
    InheritedBypassForbidden,
    /// Not trusted, and the caller did not acknowledge it.
    #[error("the directory is not trusted; look at it, then launch with `trust: true`")]
    NotTrusted,
    /// The trust file is broken.
    #[error("trust cannot be determined: {0}")]
    TrustUnreadable(String),
    /// The cap is reached.
    #[error(
        "all {max} bridges allowed by `instance_defaults.max_bridges` are live; stop one or raise the key"
    )]
    Capacity {
        /// The cap.
        max: u32,
    },
    /// No agent.
    #[error("{0}")]
    AgentMissing(String),
    /// Little space.
    #[error("less than 64 MiB are free where logs and state are kept; free some space")]
    DiskFull,
}

/// What the request itself gets wrong, in the order in which callers learn of it.
///
/// A bridge that is there already is judged after the options and before the circumstances
/// (`agent-cli` §9.2): an invalid request is never answered with a live bridge, and a live bridge
/// is returned whatever the directory's trust and however many others live.
fn option_obstacles(wanted: Wanted, now: &Circumstances) -> Vec<Obstacle> {
    let mut found = Vec::new();
    if let Some(name) = &now.alias_of {
        found.push(Obstacle::Alias(name.clone()));
    }
    if wanted.name_reads_as_option {
        found.push(match wanted.resume_mode {
            ResumeMode::Standard => Obstacle::NameReadsAsOption,
            ResumeMode::Pty => Obstacle::ProjectReadsAsOption,
        });
    }
    if wanted.spawn_mode == SpawnMode::Session && wanted.resume_mode == ResumeMode::Pty {
        found.push(Obstacle::SessionNeedsStandard);
    }
    if wanted.spawn_mode == SpawnMode::Worktree {
        if !now.is_git_repo {
            found.push(Obstacle::NotGit);
        } else if let Some(lead) = &now.foreign_git {
            found.push(Obstacle::ForeignGit(lead.clone()));
        } else if !now.has_commit {
            found.push(Obstacle::NoCommit);
        }
    }
    match now.picked {
        Picked::Nothing | Picked::Found => {}
        Picked::Unknown => found.push(Obstacle::UnknownConversation),
        Picked::Shared => found.push(Obstacle::SharedTranscripts),
    }
    found.extend(bypass_obstacle(wanted.permission_mode, now.bypass_allowed, now.inherits_bypass));
    found
}

/// What the caller of an admitted launch should know (`agent-cli` §4.8).
#[must_use]
pub fn advice(wanted: Wanted) -> Option<&'static str> {
    match (wanted.resume_mode, wanted.spawn_mode) {
        (ResumeMode::Pty, SpawnMode::SameDir) => Some(
            "the session works in the project's own directory, where others may edit the same \
             files; `spawn_mode: worktree` gives it a git worktree of its own",
        ),
        (ResumeMode::Pty, SpawnMode::Worktree | SpawnMode::Session) | (ResumeMode::Standard, _) => {
            None
        }
    }
}

/// The ceiling on permissions.
/// A bypass that was asked for, or that `inherits` from the settings.
#[must_use]
pub fn bypass_obstacle(mode: PermissionMode, allowed: bool, inherits: bool) -> Option<Obstacle> {
    match mode {
        _ if allowed => None,
        PermissionMode::BypassPermissions => Some(Obstacle::BypassForbidden),
        PermissionMode::Inherit => inherits.then_some(Obstacle::InheritedBypassForbidden),
        PermissionMode::Default
        | PermissionMode::Plan
        | PermissionMode::AcceptEdits
        | PermissionMode::Auto
        | PermissionMode::DontAsk => None,
    }
}

/// What trust there is against what a caller acknowledged.
#[must_use]
pub fn trust_obstacle(acknowledged: bool, trust: &Trust) -> Option<Obstacle> {
    match trust {
        Trust::Granted => None,
        Trust::Missing => (!acknowledged).then_some(Obstacle::NotTrusted),
        Trust::Unreadable(why) => Some(Obstacle::TrustUnreadable(why.clone())),
    }
}

fn state_obstacles(wanted: Wanted, now: &Circumstances) -> Vec<Obstacle> {
    let mut found = Vec::new();
    found.extend(trust_obstacle(wanted.trust, &now.trust));
    if let Some(max) = now.max_bridges
        && now.live_bridges >= max
    {
        found.push(Obstacle::Capacity { max });
    }
    if let Program::Missing(why) = &now.program {
        found.push(Obstacle::AgentMissing(why.clone()));
    }
    if wanted.resume_mode == ResumeMode::Pty && !now.has_terminal {
        found.push(Obstacle::NoTerminal);
    }
    if !now.disk_has_room {
        found.push(Obstacle::DiskFull);
    }
    found
}

/// What the bridge that is there already makes of a launch.
/// It stands between the options and the circumstances.
enum Present {
    /// There is none, or it ends before the launch goes on.
    Nothing,
    Answers(Admission),
    Blocks(Obstacle),
}

fn present(wanted: Wanted, now: &Circumstances) -> Present {
    if wanted.resume_mode != ResumeMode::Standard {
        return Present::Nothing;
    }
    if let Some(live) = &now.live_standard {
        return Present::Answers(Admission::Reuse(live.clone()));
    }
    match &now.unrecorded {
        Unrecorded::Nothing => Present::Nothing,
        Unrecorded::Adoptable(pid) => Present::Answers(Admission::TakeOver(*pid)),
        Unrecorded::OtherService(pid) => Present::Blocks(Obstacle::OtherService(*pid)),
        Unrecorded::WronglyEnded { id, .. } => Present::Answers(Admission::Correct(id.clone())),
        Unrecorded::Held { id, code } => {
            Present::Blocks(Obstacle::Held { id: id.clone(), code: *code })
        }
        Unrecorded::MayBeLive(id) => Present::Blocks(Obstacle::MayBeLive(id.clone())),
    }
}

/// Every reason against a launch, for a preflight.
#[must_use]
pub fn obstacles(wanted: Wanted, now: &Circumstances) -> Vec<Obstacle> {
    let mut found = option_obstacles(wanted, now);
    // A record that is corrected only to finish a stop leaves the place free.
    let makes_room = matches!(now.unrecorded, Unrecorded::WronglyEnded { is_stopping: true, .. });
    match present(wanted, now) {
        Present::Nothing => found.extend(state_obstacles(wanted, now)),
        Present::Answers(Admission::Correct(_)) if makes_room => {
            found.extend(state_obstacles(wanted, now));
        }
        Present::Answers(_) => {}
        Present::Blocks(obstacle) => found.push(obstacle),
    }
    found
}

/// The verdict on a launch.
pub fn admit(wanted: Wanted, now: &Circumstances) -> Admission {
    if let Some(first) = option_obstacles(wanted, now).into_iter().next() {
        return Admission::Refused(first);
    }
    match present(wanted, now) {
        Present::Answers(answer) => return answer,
        Present::Blocks(obstacle) => return Admission::Refused(obstacle),
        Present::Nothing => {}
    }
    match state_obstacles(wanted, now).into_iter().next() {
        Some(first) => Admission::Refused(first),
        None => Admission::Launch { grant_trust: now.trust == Trust::Missing },
    }
}

/// The obstacles for a background job, in the order in which callers see them.
/// A job may run beside a live bridge.
#[must_use]
pub fn job_obstacles(wanted: Wanted, now: &JobCircumstances<'_>) -> Vec<Obstacle> {
    let mut found = Vec::new();
    found.extend(now.alias_of.cloned().map(Obstacle::Alias));
    found.extend(bypass_obstacle(wanted.permission_mode, now.bypass_allowed, now.inherits_bypass));
    found.extend(trust_obstacle(wanted.trust, now.trust));
    if let Program::Missing(why) = now.program {
        found.push(Obstacle::AgentMissing(why.clone()));
    }
    if !now.disk_has_room {
        found.push(Obstacle::DiskFull);
    }
    found
}

/// What is so at the moment of a dispatch.
#[derive(Debug, Clone, Copy)]
pub struct JobCircumstances<'a> {
    /// The directory has another name that owns it.
    pub alias_of: Option<&'a ProjectName>,
    /// The configuration allows bypassing permissions here.
    pub bypass_allowed: bool,
    /// The agent's own settings would bypass permissions when no flag is given.
    pub inherits_bypass: bool,
    /// Trust.
    pub trust: &'a Trust,
    /// The agent program.
    pub program: &'a Program,
    /// Enough space where logs and state go.
    pub disk_has_room: bool,
}

#[cfg(test)]
mod tests;
