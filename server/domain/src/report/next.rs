//! What to do after an end.

use super::Facts;
use svc_shared::internal::report::NextStep;
use svc_shared::status::{ExitReason, ResumeBlocked};

/// What can be done with a session that ended.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    /// The beginning of its id, for commands.
    pub id: &'a str,
    /// Its project.
    pub project: &'a str,
    /// Why a resume would be refused; `None` when it would be tried.
    pub blocked: Option<ResumeBlocked>,
    /// Its log can still be read.
    pub has_log: bool,
    /// Conversations that nobody has continued.
    pub stranded: u32,
}

/// What to do next: first what removes the cause, then how to go on.
#[must_use]
pub fn next_steps(facts: &Facts<'_>, choices: &Choices<'_>) -> Vec<NextStep> {
    let mut steps: Vec<NextStep> =
        facts.reason.and_then(|reason| remedy(reason, choices)).into_iter().collect();
    steps.extend(go_on(choices));
    if choices.stranded > 0 {
        steps.push(with(
            "Conversations hung on it: continue each as a background job.",
            "svc stranded",
        ));
    }
    if choices.has_log {
        steps.push(with("Read its whole log.", &format!("svc logs {}", choices.id)));
    }
    if facts.reason.is_none_or(is_unexplained) {
        steps.push(with("Check what every session needs.", "svc doctor"));
    }
    steps
}

fn plain(says: &str) -> NextStep {
    NextStep { says: says.to_owned(), command: None }
}

fn with(says: &str, command: &str) -> NextStep {
    NextStep { says: says.to_owned(), command: Some(command.to_owned()) }
}

fn is_unexplained(reason: ExitReason) -> bool {
    matches!(reason, ExitReason::Unknown | ExitReason::DiedUnsupervised | ExitReason::Killed)
}

/// What removes the cause.
fn remedy(reason: ExitReason, choices: &Choices<'_>) -> Option<NextStep> {
    Some(match reason {
        ExitReason::LoginRequired => with("Sign in the agent on this machine.", "claude"),
        ExitReason::RemoteControlUnavailable => plain(
            "Use an account with remote control, or ask the administrator of the organisation.",
        ),
        ExitReason::TrustRequired => with(
            "Trust the folder, if you know what is in it.",
            &format!("svc start {} --trust", shell_word(choices.project)),
        ),
        ExitReason::WorktreeUnavailable => {
            plain("Make a first commit in the repository, or launch in the project folder.")
        }
        ExitReason::BadArgument => {
            with("The agent may be too old or too new: compare its version.", "svc doctor")
        }
        ExitReason::AlreadyServed => {
            with("Stop the other bridge of this folder first.", "svc status")
        }
        ExitReason::RegistrationFailed | ExitReason::Network => {
            plain("Check that this machine reaches the remote service.")
        }
        ExitReason::ConfigError | ExitReason::OnboardingRequired => {
            with("Run the agent once on this machine and follow its instructions.", "claude")
        }
        ExitReason::PoisonedSession => with(
            "Launch a new session: the remote side of this one is gone.",
            &format!("svc start {}", shell_word(choices.project)),
        ),
        ExitReason::OutOfMemory => plain(
            "Free memory on this machine, or set `ceilings.memory_mb` so that you are warned \
             before the kernel acts.",
        ),
        ExitReason::Killed | ExitReason::ExternalStop => plain(
            "Find who sent the signal: the kernel log names kills for lack of memory, and other \
             users and scripts can end it too.",
        ),
        ExitReason::NotRegistered => with(
            "Read in the log how far the start came; a slow machine needs a longer time.",
            "svc config get claude.startup_grace_seconds",
        ),
        ExitReason::BinaryNotFound | ExitReason::ExecFailed => {
            with("Install the agent, or set `claude.binary` to its path.", "svc doctor")
        }
        ExitReason::LogCreateFailed => {
            with("Check free space and permissions of the state directory.", "svc doctor")
        }
        ExitReason::NoPty => plain("The machine has no free pseudo-terminal: close some."),
        ExitReason::HostRestarted => {
            with("Restore all sessions that the restart ended.", "svc restore-sessions --all")
        }
        ExitReason::KeeperLost => {
            plain("Nothing but a crash or a kill ends a keeper: look at the log of the service.")
        }
        ExitReason::DiedUnsupervised
        | ExitReason::LaunchInterrupted
        | ExitReason::CleanExit
        | ExitReason::Unknown
        | ExitReason::OperatorStop
        | ExitReason::SessionEnded => return None,
    })
}

/// How the session goes on.
fn go_on(choices: &Choices<'_>) -> Option<NextStep> {
    let resume = |says| Some(with(says, &format!("svc resume {}", choices.id)));
    let start = |says| Some(with(says, &format!("svc start {}", shell_word(choices.project))));
    match choices.blocked {
        None => resume("Resume it."),
        Some(ResumeBlocked::StandardAlreadyLive) => {
            Some(with("Another bridge of the project is live: look at that one.", "svc status"))
        }
        Some(ResumeBlocked::NoSession | ResumeBlocked::BadSessionRef) => {
            start("Nothing was saved that could be resumed: start a new one.")
        }
        Some(ResumeBlocked::NotTrusted) => Some(with(
            "The folder is not trusted: trust it, then resume.",
            &format!("svc start {} --trust", shell_word(choices.project)),
        )),
        Some(ResumeBlocked::UnknownProject) => {
            Some(plain("The folder of the project is gone: bring it back, then resume."))
        }
        Some(ResumeBlocked::BypassForbidden) => Some(plain(
            "Its permission mode is not allowed any more: \
             `projects.<name>.allow_bypass_permissions` decides about it.",
        )),
        Some(ResumeBlocked::HostedUnavailable) => {
            Some(with("The daemon of Direct Sessions is not connected.", "svc doctor"))
        }
        Some(ResumeBlocked::Orphan) => Some(with(
            "Its process survived its daemon: stop it first.",
            &format!("svc stop {}", choices.id),
        )),
        Some(ResumeBlocked::NotGit) => {
            Some(plain("The folder is no git repository any more, so it has no worktrees."))
        }
        Some(ResumeBlocked::PtyUnavailable) => {
            Some(with("Terminals are not available on this machine.", "svc doctor"))
        }
        Some(ResumeBlocked::StillLive | ResumeBlocked::Quarantined) => {
            Some(with("Actions on it are suspended: the record says why.", "svc status"))
        }
    }
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    match !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Cause, evidence and next steps of a background job in this state.
#[must_use]
pub fn of_job(
    state: &str,
    id: &str,
    detail: &str,
    needs_worker: bool,
) -> (String, Vec<String>, Vec<NextStep>) {
    let said = |says: &str| match detail.trim() {
        "" => vec![says.to_owned()],
        detail => vec![says.to_owned(), format!("Its last progress line: {detail}")],
    };
    let resume = with("Continue it as a new job.", &format!("svc jobs resume {id}"));
    match state {
        "done" => (
            "The job finished its work.".to_owned(),
            said("The agent's own record of the job says `done`."),
            vec![resume],
        ),
        "failed" => (
            "The job failed.".to_owned(),
            said("The agent's own record of the job says `failed`."),
            vec![with("Check what the agent needs.", "svc doctor"), resume],
        ),
        "stopped" => (
            "The job was stopped.".to_owned(),
            said("The agent's own record of the job says `stopped`."),
            vec![resume],
        ),
        _ => {
            let mut evidence = said("The agent's record of the job still calls it open.");
            if needs_worker {
                evidence.push("No process has worked on it for more than ten seconds.".to_owned());
            }
            ("The process of the job was lost.".to_owned(), evidence, vec![resume])
        }
    }
}
