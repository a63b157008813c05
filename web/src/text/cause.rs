//! Why bridges end, in words, and what to do about it.

pub use svc_shared::cause::{NO_STATUS, exit_code, reason, signal};
use svc_shared::status::{ExitReason, QuarantineCode};

/// What to do about a known cause.
#[must_use]
pub fn advice(reason: ExitReason) -> Option<&'static str> {
    Some(match reason {
        ExitReason::LoginRequired => {
            "Sign in the agent: run claude on this machine and follow the instructions. Then resume."
        }
        ExitReason::RemoteControlUnavailable => {
            "Use an account with remote control, or ask the administrator of your organisation."
        }
        ExitReason::TrustRequired => "Trust the project, then resume.",
        ExitReason::WorktreeUnavailable => {
            "Make a first commit in the repository, or launch in the project folder."
        }
        ExitReason::BadArgument => "The agent may be too old or too new. The log has its message.",
        ExitReason::AlreadyServed => "Stop the other bridge of this folder, then resume.",
        ExitReason::RegistrationFailed | ExitReason::Network => {
            "Check the log and the network of this machine, then resume."
        }
        ExitReason::ConfigError | ExitReason::OnboardingRequired => {
            "Run claude once on this machine and follow the instructions."
        }
        ExitReason::PoisonedSession => "Launch a new session. The old one cannot be resumed.",
        ExitReason::OutOfMemory => "Free some memory, then resume.",
        ExitReason::NotRegistered => {
            "The log shows how far the start got. claude.startup_grace_seconds sets the timeout."
        }
        ExitReason::BinaryNotFound | ExitReason::ExecFailed => {
            "Install the agent on this machine, or set claude.binary to its path."
        }
        ExitReason::LogCreateFailed => {
            "Check free space and permissions of the service's state directory."
        }
        _ => return None,
    })
}

/// Why nobody knows, and where to look.
pub const NO_STATUS_WHY: &str = "The service did not start this process itself, so the system gave \
                                 the exit status to another process. The end of the log may say more.";
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
            "The process table cannot be read. The service tries again automatically."
        }
        Ok(QuarantineCode::IdentityConflict) => {
            "Two records name the same process. End that process by hand."
        }
        Ok(QuarantineCode::Unkillable) => {
            "The process survives the kill signal. End it by hand or restart the machine."
        }
        Ok(QuarantineCode::KeeperVersion) => {
            "The keeper has another version. End the keeper by hand."
        }
        Ok(QuarantineCode::RowCorrupt) => "The record is damaged. The service log names the field.",
        Ok(QuarantineCode::ForeignOwner) => {
            "The process belongs to another user. End it as that user."
        }
        Ok(QuarantineCode::PointerConflict) => {
            "A file of the agent names a process of another project. End that process by hand."
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
    fn an_unknown_hold_is_named_by_its_word() {
        assert_eq!(held("moon_phase"), "Actions are suspended: moon_phase.");
    }
}
