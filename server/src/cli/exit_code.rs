//! Exit codes of commands: the one table from a result to the number a script sees.

use svc_app::{AppError, Class};
use svc_shared::error::ErrorCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or it was so already.
    Done,
    /// Attempted and failed.
    Failed,
    /// The request itself cannot be attempted.
    Refused,
    /// A strictness flag says no.
    Blocked,
    /// Ended by SIGINT.
    Interrupted,
    /// Ended by SIGTERM.
    Terminated,
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Blocked => 3,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

/// How a command ends whose use-case refused or failed.
pub(crate) fn of(error: &AppError) -> Exit {
    match error.class {
        Class::Invalid | Class::NotFound | Class::Forbidden | Class::TooLarge => Exit::Refused,
        Class::Conflict => of_conflict(error.code),
        Class::Unavailable | Class::Upstream | Class::Storage | Class::Internal => Exit::Failed,
    }
}

/// Whose turn it is after a conflict.
/// A conflict over the request is for the caller to solve. One over the present state is a failed
/// attempt.
fn of_conflict(code: ErrorCode) -> Exit {
    if matches!(
        code,
        ErrorCode::Ambiguous
            | ErrorCode::InvalidValue
            | ErrorCode::NotTrusted
            | ErrorCode::HeldElsewhere
            | ErrorCode::StillLive
            | ErrorCode::NotResumable
    ) {
        Exit::Refused
    } else {
        Exit::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: ErrorCode, class: Class, expected: u8) {
        assert_eq!(of(&AppError::new(code, class, "x")).code(), expected, "{}", code.as_str());
    }

    #[test]
    fn what_cannot_be_attempted_exits_2_and_what_failed_exits_1() {
        check(ErrorCode::UnknownProject, Class::NotFound, 2);
        check(ErrorCode::UnknownInstance, Class::NotFound, 2);
        check(ErrorCode::InvalidValue, Class::Invalid, 2);
        check(ErrorCode::BypassForbidden, Class::Forbidden, 2);
        check(ErrorCode::Ambiguous, Class::Conflict, 2);
        check(ErrorCode::InvalidValue, Class::Conflict, 2);
        check(ErrorCode::NotTrusted, Class::Conflict, 2);
        check(ErrorCode::StillLive, Class::Conflict, 2);
        check(ErrorCode::Capacity, Class::Conflict, 1);
        check(ErrorCode::Quarantined, Class::Conflict, 1);
        check(ErrorCode::Busy, Class::Unavailable, 1);
        check(ErrorCode::AgentMissing, Class::Unavailable, 1);
        check(ErrorCode::AgentFailed, Class::Upstream, 1);
        check(ErrorCode::DiskFull, Class::Storage, 1);
        check(ErrorCode::Internal, Class::Internal, 1);
    }
}
