//! Why bridges end, in words, and what to do about it.

use svc_shared::status::{ExitReason, QuarantineCode};

/// Words for an exit code.
#[must_use]
pub fn exit_code(code: i32) -> String {
    match code {
        0 => "ended by itself".to_owned(),
        126 => "exit code 126, not executable".to_owned(),
        127 => "exit code 127, command not found".to_owned(),
        129..=192 => signal(code - 128),
        n => format!("exit code {n}"),
    }
}

/// Words for a signal, with the code a shell would show for it.
#[must_use]
pub fn signal(number: i32) -> String {
    let code = number.saturating_add(128);
    match (number, signal_name(number)) {
        (9, _) => "killed by signal KILL (137), possibly out of memory".to_owned(),
        (_, Some(name)) => format!("killed by signal {name} ({code})"),
        (_, None) => format!("killed by signal {number} ({code})"),
    }
}

/// Names of the signals of Linux on the architectures the service is built for.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        5 => "TRAP",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        10 => "USR1",
        11 => "SEGV",
        12 => "USR2",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        31 => "SYS",
        _ => return None,
    })
}

/// Words for a reason; `None` where exit code or signal say it better.
#[must_use]
pub fn reason(reason: ExitReason) -> Option<&'static str> {
    Some(match reason {
        ExitReason::LoginRequired => "the agent is not signed in",
        ExitReason::RemoteControlUnavailable => "this account cannot use remote control",
        ExitReason::TrustRequired => "the agent does not trust the folder",
        ExitReason::WorktreeUnavailable => "no worktree could be made",
        ExitReason::BadArgument => "the agent refused an option",
        ExitReason::AlreadyServed => "another environment serves this folder",
        ExitReason::RegistrationFailed => "the remote service refused the registration",
        ExitReason::Network => "the remote service could not be reached",
        ExitReason::ConfigError => "the agent's own configuration is broken",
        ExitReason::PoisonedSession => "the remote session is gone",
        ExitReason::OutOfMemory => "killed, out of memory",
        ExitReason::Killed | ExitReason::Unknown | ExitReason::CleanExit => return None,
        ExitReason::ExternalStop => "ended by a signal from outside",
        ExitReason::OperatorStop => "by you",
        ExitReason::SessionEnded => "its session ended",
        ExitReason::NotRegistered => "not ready within the time allowed",
        ExitReason::BinaryNotFound => "the agent program was not found",
        ExitReason::ExecFailed => "the agent program could not be started",
        ExitReason::LogCreateFailed => "its log files could not be made",
        ExitReason::NoPty => "no terminal could be made",
        ExitReason::HostRestarted => "host restarted",
        ExitReason::DiedUnsupervised => "ended while the service was down",
        ExitReason::LaunchInterrupted => "the service ended during the launch",
        ExitReason::OnboardingRequired => "the agent was never set up",
        ExitReason::KeeperLost => "its keeper was lost",
    })
}

/// What to do about a known cause.
#[must_use]
pub fn advice(reason: ExitReason) -> Option<&'static str> {
    Some(match reason {
        ExitReason::LoginRequired => {
            "Sign the agent in on this machine (run claude there and follow it), then resume."
        }
        ExitReason::RemoteControlUnavailable => {
            "Use an account with remote control, or ask who manages the organisation."
        }
        ExitReason::TrustRequired => "Trust the project, then resume.",
        ExitReason::WorktreeUnavailable => {
            "Make a first commit in the repository, or launch in the project folder."
        }
        ExitReason::BadArgument => {
            "The agent release may be too old or too new; the log has its own words."
        }
        ExitReason::AlreadyServed => "Stop the other bridge of this folder, then resume.",
        ExitReason::RegistrationFailed | ExitReason::Network => {
            "Look at the log and the network of this machine, then resume."
        }
        ExitReason::ConfigError | ExitReason::OnboardingRequired => {
            "Start the agent once by hand on this machine and follow what it says."
        }
        ExitReason::PoisonedSession => "Launch a new bridge; the old session cannot come back.",
        ExitReason::OutOfMemory => "Free memory or stop something else first, then resume.",
        ExitReason::NotRegistered => {
            "The log shows how far it came; startup_grace_seconds sets the time allowed."
        }
        ExitReason::BinaryNotFound | ExitReason::ExecFailed => {
            "Install the agent on this machine, or set the key claude.binary to its path."
        }
        ExitReason::LogCreateFailed => {
            "Look at free space and permissions of the service's state directory."
        }
        _ => return None,
    })
}

/// Nobody here knows how it ended.
pub const NO_STATUS: &str = "exit status not known";
/// Why nobody knows, and where to look.
pub const NO_STATUS_WHY: &str =
    "The service did not start this process itself, so the system gave the exit status to another \
     process. The end of the log may say more.";
/// Before a line that is output and no cause.
pub const LAST_OUTPUT: &str = "Last output:";
/// A line that is output and no cause, in a message.
#[must_use]
pub fn with_output(line: &str) -> String {
    format!("{LAST_OUTPUT} {line}")
}
/// No output was captured.
pub const NO_OUTPUT: &str = "No output was captured.";

/// Why a row is held and the manual way out.
#[must_use]
pub fn held(code: &str) -> String {
    match code.parse::<QuarantineCode>() {
        Ok(QuarantineCode::IdentityUnknown) => {
            "The process table cannot be read; the service looks again by itself."
        }
        Ok(QuarantineCode::IdentityConflict) => {
            "Two records name the same process; end that process by hand."
        }
        Ok(QuarantineCode::Unkillable) => {
            "The process survives the kill signal; end it by hand or restart the machine."
        }
        Ok(QuarantineCode::KeeperVersion) => {
            "Its keeper speaks another version; end the keeper by hand."
        }
        Ok(QuarantineCode::RowCorrupt) => "The record is damaged; the service log names the field.",
        Ok(QuarantineCode::ForeignOwner) => {
            "The process belongs to another user; end it as that user."
        }
        Ok(QuarantineCode::PointerConflict) => {
            "A file of the agent names a process of another project; end that process by hand."
        }
        Err(_) => return format!("Actions are suspended: {code}."),
    }
    .to_owned()
}

/// Several crashes in a short time.
#[must_use]
pub fn crash_loop(crashes: u32) -> String {
    format!("{crashes} crashes in a short time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_read_as_a_person_would_say_them() {
        for (code, words) in [
            (0, "ended by itself"),
            (3, "exit code 3"),
            (126, "exit code 126, not executable"),
            (127, "exit code 127, command not found"),
            (137, "killed by signal KILL (137), possibly out of memory"),
            (139, "killed by signal SEGV (139)"),
            (192, "killed by signal 64 (192)"),
            (255, "exit code 255"),
            (-1, "exit code -1"),
        ] {
            assert_eq!(exit_code(code), words);
        }
        assert_eq!(signal(i32::MAX), format!("killed by signal {0} ({0})", i32::MAX));
    }

    #[test]
    fn an_unknown_hold_is_named_by_its_word() {
        assert_eq!(held("moon_phase"), "Actions are suspended: moon_phase.");
    }
}
