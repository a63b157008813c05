//! Direct Sessions: what may happen to one, and what its agent asks.
//!
//! [`decide`] takes a command, which can be refused; [`observe`] takes a fact, which cannot.

pub mod frame;
pub mod history;
pub mod prompt;

use crate::identity::ProcessIdentity;
use std::path::PathBuf;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{BridgeStatus, ExitReason, OnLimit, PermissionMode};

/// A Direct Session as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedSession {
    /// Stable over restarts and resumes.
    pub id: InstanceId,
    /// The daemon's name of the current process; a resume brings another.
    pub process_id: String,
    /// Project name.
    pub project: ProjectName,
    /// Real path of the project.
    pub cwd: PathBuf,
    /// Custom name.
    pub label: Option<String>,
    /// Mode handed to the agent.
    pub permission_mode: PermissionMode,
    /// The agent's id of the conversation, as it said it first. A credential.
    pub session_uuid: Option<String>,
    /// Where it stands.
    pub state: State,
    /// Since when.
    pub status_since: Timestamp,
    /// 1 at first, one more per resume.
    pub generation: u32,
    /// The agent, once it is known.
    pub agent: Option<ProcessIdentity>,
    /// Launch of this generation.
    pub started_at: Option<Timestamp>,
    /// When the row was made.
    pub created_at: Timestamp,
    /// What it does after a plan limit; `None` follows the configuration.
    pub on_limit: Option<OnLimit>,
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Recorded; the daemon may or may not have started it.
    Starting,
    /// The daemon runs it.
    Running,
    /// A stop is recorded.
    Stopping,
    /// No process that anybody holds.
    Ended(Ended),
}

/// An end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which status it gives.
    pub outcome: Outcome,
    /// When.
    pub at: Timestamp,
    /// Why, when it is known.
    pub reason: Option<ExitReason>,
    /// Exit code.
    pub code: Option<i32>,
    /// Signal.
    pub signal: Option<i32>,
    /// Redacted last words.
    pub detail: Option<String>,
    /// It was asked for.
    pub intentional: bool,
    /// The agent lives without a daemon; it must be killed before a resume.
    pub is_orphan: bool,
}

/// What kind of end it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// On purpose, with its host, or by itself with code 0.
    Stopped,
    /// Unexpected.
    Crashed,
    /// It never ran, or nobody knows what became of it.
    Failed,
}

impl HostedSession {
    /// Where it stands, as a word.
    #[must_use]
    pub fn status(&self) -> BridgeStatus {
        match &self.state {
            State::Starting => BridgeStatus::Starting,
            State::Running => BridgeStatus::Running,
            State::Stopping => BridgeStatus::Stopping,
            State::Ended(ended) => match ended.outcome {
                Outcome::Stopped => BridgeStatus::Stopped,
                Outcome::Crashed => BridgeStatus::Crashed,
                Outcome::Failed => BridgeStatus::Error,
            },
        }
    }

    /// Whether a process is expected to exist.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }

    /// How it ended; `None` while it is live.
    #[must_use]
    pub fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            State::Starting | State::Running | State::Stopping => None,
        }
    }

    /// Whether its agent lives without a daemon.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        self.ended().is_some_and(|ended| ended.is_orphan)
    }

    /// Its name for people.
    #[must_use]
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(self.project.as_str())
    }

    /// The conversation that a resume continues.
    #[must_use]
    pub fn usable_uuid(&self) -> Option<&str> {
        self.session_uuid.as_deref().filter(|uuid| is_usable_uuid(uuid))
    }
}

/// Whether a value may stand after `--resume`: it can never be read as an option.
#[must_use]
pub fn is_usable_uuid(raw: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=64).contains(&raw.len())
        && raw.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && raw.bytes().all(rest)
}

/// What somebody asks of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// End it.
    Stop,
    /// Run it again, as this process.
    Resume {
        /// The daemon's name of the new process.
        process_id: String,
    },
}

/// Why a command is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It runs, or may.
    Live,
    /// Its agent lives without a daemon.
    Orphan,
    /// The agent never said which conversation it is.
    NoSession,
    /// What it said cannot be handed to an agent.
    BadSession,
}

/// What was noticed about a process of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// The daemon runs it, and this is the agent.
    Running(Option<ProcessIdentity>),
    /// The daemon did not start it.
    NotStarted {
        /// Why.
        reason: ExitReason,
        /// Redacted words.
        detail: Option<String>,
    },
    /// The agent said which conversation it is.
    Named(String),
    /// It has ended, and the daemon saw how.
    Exited {
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<i32>,
        /// Redacted last words.
        detail: Option<String>,
    },
    /// The daemon does not know it, and the agent lives.
    Orphaned,
    /// The daemon does not know it, and the agent is gone.
    Lost,
    /// The machine was restarted since.
    HostRestarted,
    /// An orphan is gone.
    OrphanGone,
}

/// What becomes of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Nothing changes.
    Unchanged,
    /// This.
    Becomes(Box<HostedSession>),
}

/// Judges a command.
///
/// # Errors
/// The session is not in a state for it.
pub fn decide(session: &HostedSession, command: Command, now: Timestamp) -> Result<Step, Refusal> {
    match command {
        Command::Stop => Ok(match session.state {
            State::Starting | State::Running => becomes(session, State::Stopping, now),
            State::Stopping | State::Ended(_) => Step::Unchanged,
        }),
        Command::Resume { process_id } => {
            match &session.state {
                State::Starting | State::Running | State::Stopping => return Err(Refusal::Live),
                State::Ended(ended) if ended.is_orphan => return Err(Refusal::Orphan),
                State::Ended(_) => {}
            }
            match &session.session_uuid {
                None => return Err(Refusal::NoSession),
                Some(uuid) if !is_usable_uuid(uuid) => return Err(Refusal::BadSession),
                Some(_) => {}
            }
            Ok(Step::Becomes(Box::new(HostedSession {
                process_id,
                state: State::Starting,
                status_since: now,
                generation: session.generation.saturating_add(1),
                agent: None,
                started_at: Some(now),
                ..session.clone()
            })))
        }
    }
}

/// Applies a fact about the current process.
pub fn observe(session: &HostedSession, fact: Fact, now: Timestamp) -> Step {
    let is_stopping = session.state == State::Stopping;
    let plain = |outcome, reason| Ended {
        outcome,
        at: now,
        reason: Some(reason),
        code: None,
        signal: None,
        detail: None,
        intentional: is_stopping,
        is_orphan: false,
    };
    let end = |ended| becomes(session, State::Ended(ended), now);
    if let State::Ended(ended) = &session.state {
        return match fact {
            Fact::OrphanGone if ended.is_orphan => {
                let ended = Ended { is_orphan: false, ..ended.clone() };
                Step::Becomes(Box::new(HostedSession {
                    state: State::Ended(ended),
                    ..session.clone()
                }))
            }
            // A start that was given up and came about all the same.
            Fact::Running(Some(agent)) if ended.reason == Some(ExitReason::LaunchInterrupted) => {
                running(session, Some(agent), now)
            }
            _ => Step::Unchanged,
        };
    }
    match fact {
        Fact::Running(agent) => match session.state {
            State::Starting => running(session, agent, now),
            // A stop came between the request and its answer: it finds the process all the same.
            _ if session.agent.is_none() && agent.is_some() => {
                Step::Becomes(Box::new(HostedSession { agent, ..session.clone() }))
            }
            _ => Step::Unchanged,
        },
        Fact::NotStarted { reason, detail } => {
            let outcome = if is_stopping { Outcome::Stopped } else { Outcome::Failed };
            end(Ended { detail, ..plain(outcome, reason) })
        }
        // First come, never overwritten.
        Fact::Named(uuid) if session.session_uuid.is_none() => {
            Step::Becomes(Box::new(HostedSession { session_uuid: Some(uuid), ..session.clone() }))
        }
        Fact::Named(_) | Fact::OrphanGone => Step::Unchanged,
        Fact::Exited { code, signal, detail } => {
            let (outcome, reason) = match (is_stopping, code) {
                (true, _) => (Outcome::Stopped, ExitReason::OperatorStop),
                (false, Some(0)) => (Outcome::Stopped, ExitReason::CleanExit),
                (false, None) if signal.is_some() => (Outcome::Crashed, ExitReason::Killed),
                (false, _) => (Outcome::Crashed, ExitReason::Unknown),
            };
            let detail = detail.filter(|_| outcome == Outcome::Crashed);
            end(Ended { code, signal, detail, ..plain(outcome, reason) })
        }
        Fact::Orphaned => {
            end(Ended { is_orphan: true, ..plain(Outcome::Crashed, ExitReason::KeeperLost) })
        }
        Fact::Lost if is_stopping => end(plain(Outcome::Stopped, ExitReason::OperatorStop)),
        Fact::Lost if session.state == State::Starting => {
            end(plain(Outcome::Failed, ExitReason::LaunchInterrupted))
        }
        Fact::Lost => end(plain(Outcome::Crashed, ExitReason::KeeperLost)),
        Fact::HostRestarted => end(plain(Outcome::Stopped, ExitReason::HostRestarted)),
    }
}

fn becomes(session: &HostedSession, state: State, now: Timestamp) -> Step {
    Step::Becomes(Box::new(HostedSession { state, status_since: now, ..session.clone() }))
}

fn running(session: &HostedSession, agent: Option<ProcessIdentity>, now: Timestamp) -> Step {
    Step::Becomes(Box::new(HostedSession {
        agent,
        state: State::Running,
        status_since: now,
        ..session.clone()
    }))
}

#[cfg(test)]
mod tests;
