//! May this launch happen? Preflight and launch ask this one function.

use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{PermissionMode, ResumeMode, SpawnMode};

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
    /// The agent's file cannot be understood or read, so nothing is trusted and nothing can be
    /// granted. Says why.
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

/// What is so at the moment of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circumstances {
    /// The directory has another name that owns it.
    pub alias_of: Option<ProjectName>,
    /// It is in a git repository.
    pub is_git_repo: bool,
    /// Its repository has a commit.
    pub has_commit: bool,
    /// The configuration allows bypassing permissions here.
    pub bypass_allowed: bool,
    /// The agent's own settings would bypass permissions when no flag is given.
    pub inherits_bypass: bool,
    /// The project's live Server Mode bridge.
    pub live_standard: Option<InstanceId>,
    /// Trust.
    pub trust: Trust,
    /// Live bridges of this deployment.
    pub live_bridges: u32,
    /// Cap, if one is configured.
    pub max_bridges: Option<u32>,
    /// The agent program.
    pub program: Program,
    /// The log and state file systems have room.
    pub disk_has_room: bool,
}

/// Least free space for a launch: below it a half-written log or database is likely.
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
    /// No.
    Refused(Obstacle),
}

/// One reason against a launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Another name is the project.
    #[error("it is the same directory as project `{0}`; start that one")]
    Alias(ProjectName),
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
    /// Single-session mode is a strategy of Server Mode.
    #[error(
        "`spawn_mode: session` is only for Server Mode; leave it out or use `resume_mode: standard`"
    )]
    SessionNeedsStandard,
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

/// Every reason against a launch, in the order in which callers learn of them.
///
/// Reuse stands between the options and the circumstances: an invalid request is never answered
/// with a live bridge, and a live bridge is returned whatever the directory's trust.
fn option_obstacles(wanted: Wanted, now: &Circumstances) -> Vec<Obstacle> {
    let mut found = Vec::new();
    if let Some(name) = &now.alias_of {
        found.push(Obstacle::Alias(name.clone()));
    }
    if wanted.name_reads_as_option {
        found.push(Obstacle::NameReadsAsOption);
    }
    if wanted.spawn_mode == SpawnMode::Session && wanted.resume_mode == ResumeMode::Pty {
        found.push(Obstacle::SessionNeedsStandard);
    }
    if wanted.spawn_mode == SpawnMode::Worktree {
        if !now.is_git_repo {
            found.push(Obstacle::NotGit);
        } else if !now.has_commit {
            found.push(Obstacle::NoCommit);
        }
    }
    if !now.bypass_allowed {
        match wanted.permission_mode {
            PermissionMode::BypassPermissions => found.push(Obstacle::BypassForbidden),
            PermissionMode::Inherit if now.inherits_bypass => {
                found.push(Obstacle::InheritedBypassForbidden);
            }
            PermissionMode::Default
            | PermissionMode::Plan
            | PermissionMode::AcceptEdits
            | PermissionMode::Auto
            | PermissionMode::DontAsk
            | PermissionMode::Inherit => {}
        }
    }
    found
}

fn state_obstacles(wanted: Wanted, now: &Circumstances) -> Vec<Obstacle> {
    let mut found = Vec::new();
    match &now.trust {
        Trust::Granted => {}
        Trust::Missing if wanted.trust => {}
        Trust::Missing => found.push(Obstacle::NotTrusted),
        Trust::Unreadable(why) => found.push(Obstacle::TrustUnreadable(why.clone())),
    }
    if let Some(max) = now.max_bridges
        && now.live_bridges >= max
    {
        found.push(Obstacle::Capacity { max });
    }
    if let Program::Missing(why) = &now.program {
        found.push(Obstacle::AgentMissing(why.clone()));
    }
    if !now.disk_has_room {
        found.push(Obstacle::DiskFull);
    }
    found
}

/// The bridge that would be handed out instead of a new one.
fn reused(wanted: Wanted, now: &Circumstances) -> Option<&InstanceId> {
    now.live_standard.as_ref().filter(|_| wanted.resume_mode == ResumeMode::Standard)
}

/// Every reason against a launch, for a preflight.
#[must_use]
pub fn obstacles(wanted: Wanted, now: &Circumstances) -> Vec<Obstacle> {
    let mut found = option_obstacles(wanted, now);
    if reused(wanted, now).is_none() {
        found.extend(state_obstacles(wanted, now));
    }
    found
}

/// The verdict on a launch.
pub fn admit(wanted: Wanted, now: &Circumstances) -> Admission {
    if let Some(first) = option_obstacles(wanted, now).into_iter().next() {
        return Admission::Refused(first);
    }
    if let Some(live) = reused(wanted, now) {
        return Admission::Reuse(live.clone());
    }
    match state_obstacles(wanted, now).into_iter().next() {
        Some(first) => Admission::Refused(first),
        None => Admission::Launch { grant_trust: now.trust == Trust::Missing },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            resume_mode: ResumeMode::Standard,
            spawn_mode: SpawnMode::SameDir,
            permission_mode: PermissionMode::Default,
            trust: false,
            name_reads_as_option: false,
        }
    }

    fn fine() -> Circumstances {
        Circumstances {
            alias_of: None,
            is_git_repo: true,
            has_commit: true,
            bypass_allowed: false,
            inherits_bypass: false,
            live_standard: None,
            trust: Trust::Granted,
            live_bridges: 0,
            max_bridges: None,
            program: Program::Present,
            disk_has_room: true,
        }
    }

    fn live() -> InstanceId {
        "3a375c2e-0a3b-4c5d-8e9f-001122334455".parse().unwrap()
    }

    #[track_caller]
    fn refused(wanted: Wanted, now: &Circumstances, obstacle: &Obstacle) {
        assert_eq!(admit(wanted, now), Admission::Refused(obstacle.clone()));
        assert!(obstacles(wanted, now).contains(obstacle));
    }

    #[test]
    fn a_plain_launch_in_a_trusted_directory_is_admitted() {
        assert_eq!(admit(wanted(), &fine()), Admission::Launch { grant_trust: false });
        assert_eq!(obstacles(wanted(), &fine()), []);
    }

    #[test]
    fn an_untrusted_directory_needs_an_explicit_acknowledgement() {
        let now = Circumstances { trust: Trust::Missing, ..fine() };
        refused(wanted(), &now, &Obstacle::NotTrusted);
        let acknowledged = Wanted { trust: true, ..wanted() };
        assert_eq!(admit(acknowledged, &now), Admission::Launch { grant_trust: true });
    }

    #[test]
    fn a_broken_trust_file_refuses_even_an_acknowledged_launch() {
        let why = "broken".to_owned();
        let now = Circumstances { trust: Trust::Unreadable(why.clone()), ..fine() };
        refused(Wanted { trust: true, ..wanted() }, &now, &Obstacle::TrustUnreadable(why));
    }

    #[test]
    fn a_live_server_mode_bridge_is_reused_regardless_of_trust_and_capacity() {
        let now = Circumstances {
            live_standard: Some(live()),
            trust: Trust::Missing,
            live_bridges: 3,
            max_bridges: Some(3),
            ..fine()
        };
        assert_eq!(admit(wanted(), &now), Admission::Reuse(live()));
        assert_eq!(obstacles(wanted(), &now), [], "a preflight says the same");
    }

    #[test]
    fn an_invalid_request_is_never_answered_with_a_live_bridge() {
        let now = Circumstances { live_standard: Some(live()), is_git_repo: false, ..fine() };
        refused(Wanted { spawn_mode: SpawnMode::Worktree, ..wanted() }, &now, &Obstacle::NotGit);
        let bypass = Wanted { permission_mode: PermissionMode::BypassPermissions, ..wanted() };
        refused(bypass, &now, &Obstacle::BypassForbidden);
    }

    #[test]
    fn an_interactive_session_may_run_beside_a_server_mode_bridge() {
        let now = Circumstances { live_standard: Some(live()), ..fine() };
        let pty = Wanted { resume_mode: ResumeMode::Pty, ..wanted() };
        assert_eq!(admit(pty, &now), Admission::Launch { grant_trust: false });
    }

    #[test]
    fn bypass_is_forbidden_whichever_way_it_is_asked_for() {
        let now = Circumstances { inherits_bypass: true, ..fine() };
        let inherit = Wanted { permission_mode: PermissionMode::Inherit, ..wanted() };
        refused(inherit, &now, &Obstacle::InheritedBypassForbidden);
        let allowed = Circumstances { bypass_allowed: true, ..now };
        assert_eq!(admit(inherit, &allowed), Admission::Launch { grant_trust: false });
        let bypass = Wanted { permission_mode: PermissionMode::BypassPermissions, ..wanted() };
        assert_eq!(admit(bypass, &allowed), Admission::Launch { grant_trust: false });
    }

    #[test]
    fn circumstances_refuse_in_the_documented_order() {
        let mut now = Circumstances {
            trust: Trust::Missing,
            live_bridges: 2,
            max_bridges: Some(2),
            program: Program::Missing("no agent".into()),
            disk_has_room: false,
            ..fine()
        };
        refused(wanted(), &now, &Obstacle::NotTrusted);
        now.trust = Trust::Granted;
        refused(wanted(), &now, &Obstacle::Capacity { max: 2 });
        now.max_bridges = Some(3);
        refused(wanted(), &now, &Obstacle::AgentMissing("no agent".into()));
        now.program = Program::Present;
        refused(wanted(), &now, &Obstacle::DiskFull);
    }

    #[test]
    fn an_alias_cannot_be_started() {
        let name: ProjectName = "real".parse().unwrap();
        let now = Circumstances { alias_of: Some(name.clone()), ..fine() };
        refused(wanted(), &now, &Obstacle::Alias(name));
    }

    #[test]
    fn a_worktree_needs_a_commit() {
        let now = Circumstances { has_commit: false, ..fine() };
        refused(Wanted { spawn_mode: SpawnMode::Worktree, ..wanted() }, &now, &Obstacle::NoCommit);
    }

    #[test]
    fn single_session_mode_is_only_for_server_mode() {
        let pty =
            Wanted { resume_mode: ResumeMode::Pty, spawn_mode: SpawnMode::Session, ..wanted() };
        refused(pty, &fine(), &Obstacle::SessionNeedsStandard);
    }
}
