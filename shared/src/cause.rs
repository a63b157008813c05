//! Words for why a bridge ended, on the page and in commands.

use crate::status::ExitReason;

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
        ExitReason::WorktreeUnavailable => "no worktree could be created",
        ExitReason::BadArgument => "the agent refused an option",
        ExitReason::AlreadyServed => "another environment serves this folder",
        ExitReason::RegistrationFailed => "the remote service refused the registration",
        ExitReason::Network => "the remote service could not be reached",
        ExitReason::ConfigError => "the agent's own configuration is broken",
        ExitReason::PoisonedSession => "the remote session is gone",
        ExitReason::OutOfMemory => "killed, out of memory",
        ExitReason::Killed | ExitReason::Unknown | ExitReason::CleanExit => return None,
        ExitReason::ExternalStop => "terminated by another process",
        ExitReason::OperatorStop => "stopped on purpose",
        ExitReason::SessionEnded => "the session ended",
        ExitReason::NotRegistered => "not ready before the startup timeout",
        ExitReason::BinaryNotFound => "the agent program was not found",
        ExitReason::ExecFailed => "the agent program could not be started",
        ExitReason::LogCreateFailed => "the log files could not be created",
        ExitReason::NoPty => "no terminal could be created",
        ExitReason::HostRestarted => "host restarted",
        ExitReason::DiedUnsupervised => "ended while the service was down",
        ExitReason::LaunchInterrupted => "the service ended during the launch",
        ExitReason::OnboardingRequired => "the agent was never set up",
        ExitReason::KeeperLost => "the keeper was lost",
    })
}

/// Nobody here knows how it ended.
pub const NO_STATUS: &str = "exit status not known";

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
}
