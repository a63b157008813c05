//! Why a session stopped, from what is recorded.
//!
//! The cause, its evidence and what to do next.

mod markdown;
mod next;

pub use markdown::markdown;
pub use next::{Choices, next_steps, of_job};

use crate::redact::redact_text;
use svc_shared::Timestamp;
use svc_shared::cause as words;
use svc_shared::internal::report::{Asked, LastUse};
use svc_shared::status::{BridgeStatus, ExitReason};

/// What is recorded of an end.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The status it ended with.
    pub status: BridgeStatus,
    /// The word of the cause.
    pub reason: Option<ExitReason>,
    /// Exit code.
    pub code: Option<i32>,
    /// Signal.
    pub signal: Option<i32>,
    /// The kill signal was needed.
    pub forced: bool,
    /// When the generation began.
    pub started_at: Option<Timestamp>,
    /// When it was seen ready.
    pub ready_at: Option<Timestamp>,
    /// When the end was recorded.
    pub ended_at: Option<Timestamp>,
    /// Who asked for a stop.
    pub asked: Option<&'a Asked>,
    /// What was used last.
    pub last_use: Option<&'a LastUse>,
    /// The ceiling for memory, bytes.
    pub memory_ceiling: Option<u64>,
    /// Advice on the row, such as a ceiling that was exceeded.
    pub notice: Option<&'a str>,
    /// The redacted end of the output; the line that decided is its last.
    pub detail: Option<&'a str>,
    /// Why the remote link was lost and never came back.
    pub link_lost: Option<&'a str>,
    /// Crashes that led to giving up automatic restarts.
    pub gave_up_after: Option<u32>,
}

/// The cause as a sentence.
#[must_use]
pub fn cause(facts: &Facts<'_>) -> String {
    let asked_by_svc = facts.asked.is_some_and(|asked| asked.by == SERVICE);
    let words = match facts.reason {
        Some(ExitReason::OperatorStop) if asked_by_svc => {
            "the service stopped it by itself".to_owned()
        }
        Some(ExitReason::OperatorStop) => match facts.asked {
            Some(asked) => format!("{} stopped it", person(&asked.by)),
            None => "it was stopped on purpose".to_owned(),
        },
        reason => reason
            .and_then(words::reason)
            .map(str::to_owned)
            .or_else(|| facts.signal.map(words::signal))
            .or_else(|| facts.code.map(words::exit_code))
            .unwrap_or_else(|| words::NO_STATUS.to_owned()),
    };
    sentence(&words)
}

/// The name of the service itself among those who ask for a stop.
pub const SERVICE: &str = "svc";

/// Somebody that the audit log names, in words.
#[must_use]
pub fn person(by: &str) -> String {
    match by.split_once(':') {
        None if by == SERVICE => "the service itself".to_owned(),
        None if by == "admin" => "the operator, in the browser or over HTTP,".to_owned(),
        None if by == "token" => "the token of the configuration".to_owned(),
        Some(("token", label)) => format!("the token `{}`", redact_text(label)),
        Some(("proxy", user)) => format!("{}, through the proxy,", redact_text(user)),
        Some(("cli", user)) => {
            format!("the user {} of this machine, by a command,", redact_text(user))
        }
        _ => redact_text(by),
    }
}

/// What the cause is known from.
#[must_use]
pub fn evidence(facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(asked) = facts.asked {
        found.push(format!(
            "A stop by {} was recorded at {}.",
            trimmed(&person(&asked.by)),
            asked.at
        ));
    }
    if facts.forced {
        found.push("It did not end in time, so the service sent the kill signal.".to_owned());
    }
    found.extend(exit_status(facts));
    found.extend(facts.reason.and_then(observed).map(str::to_owned));
    if facts.reason.is_some_and(is_said)
        && let Some(line) = facts.detail.and_then(|detail| detail.lines().last())
    {
        found.push(format!("The agent wrote: {}", line.trim()));
    }
    if let Some(notice) = facts.notice {
        found.push(sentence(&redact_text(notice)));
    }
    match (facts.ready_at, facts.started_at) {
        (Some(ready), Some(started)) => found.push(format!(
            "It was ready {} after its start.",
            span(ready.since(started).as_millis())
        )),
        (None, Some(_)) if facts.status == BridgeStatus::Error => {
            found.push("It was never seen ready.".to_owned());
        }
        _ => {}
    }
    if let Some(why) = facts.link_lost {
        found.push(format!(
            "Its remote link was lost before the end ({}).",
            redact_text(why).trim_end_matches('.')
        ));
    }
    found.extend(used(facts));
    if let Some(crashes) = facts.gave_up_after {
        found.push(format!(
            "It crashed {crashes} times in a short time, so it is not restarted by itself any more."
        ));
    }
    found
}

fn exit_status(facts: &Facts<'_>) -> Option<String> {
    match (facts.signal, facts.code) {
        (Some(signal), _) => Some(format!("Exit status: {}.", words::signal(signal))),
        (None, Some(code)) => Some(format!("Exit status: {}.", words::exit_code(code))),
        (None, None) => match facts.reason {
            Some(
                ExitReason::HostRestarted
                | ExitReason::BinaryNotFound
                | ExitReason::ExecFailed
                | ExitReason::LogCreateFailed
                | ExitReason::NoPty,
            ) => None,
            _ => Some("Nobody could collect the exit status.".to_owned()),
        },
    }
}

/// What the service itself saw.
fn observed(reason: ExitReason) -> Option<&'static str> {
    Some(match reason {
        ExitReason::OutOfMemory => {
            "The kernel counted a kill for lack of memory in the control group of the session."
        }
        ExitReason::Killed => "The signal did not come from this service.",
        ExitReason::ExternalStop => {
            "Its log names a signal that asked it to end, and this service had sent none."
        }
        ExitReason::HostRestarted => {
            "The machine has started again since: the boot id of its process is an earlier one."
        }
        ExitReason::DiedUnsupervised => {
            "Its process was gone when the service started, or looked again."
        }
        ExitReason::LaunchInterrupted => {
            "The record of the launch was written, and its process was never told to begin."
        }
        ExitReason::NotRegistered => {
            "It did not register with the remote service within `claude.startup_grace_seconds`."
        }
        ExitReason::KeeperLost => "The process that held its terminal ended before it did.",
        ExitReason::SessionEnded => "It served one session, and that session ended.",
        _ => return None,
    })
}

/// Whether this cause is found by a line of the agent, which the detail ends with.
fn is_said(reason: ExitReason) -> bool {
    matches!(
        reason,
        ExitReason::LoginRequired
            | ExitReason::RemoteControlUnavailable
            | ExitReason::TrustRequired
            | ExitReason::WorktreeUnavailable
            | ExitReason::BadArgument
            | ExitReason::AlreadyServed
            | ExitReason::RegistrationFailed
            | ExitReason::Network
            | ExitReason::ConfigError
            | ExitReason::PoisonedSession
            | ExitReason::OnboardingRequired
    )
}

fn used(facts: &Facts<'_>) -> Vec<String> {
    let Some(last) = facts.last_use else { return Vec::new() };
    let processes = match last.processes {
        1 => "1 process".to_owned(),
        many => format!("{many} processes"),
    };
    let mut found = vec![format!(
        "At {} it used {} of memory and {:.1} % of one core, in {processes}.",
        last.at,
        memory(last.rss_bytes),
        last.cpu_percent
    )];
    if last.peak_rss_bytes > last.rss_bytes {
        found.push(format!(
            "The most memory that was measured is {}, at {}.",
            memory(last.peak_rss_bytes),
            last.peak_at
        ));
    }
    if let Some(ceiling) = facts.memory_ceiling
        && last.peak_rss_bytes.saturating_mul(10) >= ceiling.saturating_mul(9)
    {
        found.push(format!("The ceiling `ceilings.memory_mb` is {}.", memory(ceiling)));
    }
    found
}

/// Bytes as a person says them.
#[must_use]
pub fn memory(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    let mib = bytes / MIB;
    let tenths = bytes.saturating_mul(10) / (1024 * MIB);
    match mib {
        0 => format!("{} KiB", bytes / 1024),
        1..=1023 => format!("{mib} MiB"),
        _ => format!("{}.{} GiB", tenths / 10, tenths % 10),
    }
}

/// A time span as a person says it.
#[must_use]
pub fn span(millis: u128) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..=9 => format!("{}.{} s", seconds, millis % 1000 / 100),
        10..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn trimmed(name: &str) -> &str {
    name.trim_end_matches(',')
}

/// A text that begins and ends like a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.trim().chars();
    let mut said: String = match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => return String::new(),
    };
    if !said.ends_with(['.', '!', '?']) {
        said.push('.');
    }
    said
}

#[cfg(test)]
mod tests;
