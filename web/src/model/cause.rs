//! The cause of an end, in place: one line for the row, the whole tail on demand.

use crate::model::{status, time};
use crate::text::cause as words;
use svc_shared::api::instances::Instance;
use svc_shared::status::{BridgeStatus, ExitReason};

/// Why a bridge ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What happened, in words.
    pub headline: String,
    /// The last thing it said; `None` when nothing was captured.
    pub line: Option<String>,
    /// Whether the last line is what the reason was found by, and not just output.
    pub is_evidence: bool,
    /// The captured tail, oldest first, without blank lines at its ends.
    pub output: Vec<String>,
    /// What to do about it.
    pub advice: Option<&'static str>,
}

/// How long the last generation lived, milliseconds.
#[must_use]
pub fn uptime(bridge: &Instance) -> Option<i64> {
    let started = bridge.started_at?.as_millis();
    let ended = bridge.ended_at?.as_millis();
    (ended >= started).then_some(ended - started)
}

/// What ended it, in words: the reason, the signal or the exit code.
///
/// Never the output: its last line may have nothing to do with the end.
#[must_use]
pub fn headline(bridge: &Instance) -> Option<String> {
    let said = bridge.exit_reason.as_ref().and_then(|reason| match reason.known() {
        Some(known) => words::reason(*known).map(str::to_owned),
        None => Some(reason.to_string()),
    });
    said.or_else(|| bridge.exit_signal.map(words::signal))
        .or_else(|| bridge.exit_code.map(words::exit_code))
}

/// The cause, for rows that ended in a way that wants explaining.
#[must_use]
pub fn cause(bridge: &Instance) -> Option<Cause> {
    let ended_badly =
        bridge.status.is(&BridgeStatus::Crashed) || bridge.status.is(&BridgeStatus::Error);
    let interrupted = bridge.status.is(&BridgeStatus::Stopped) && !status::ended_as_meant(bridge);
    if !ended_badly && !interrupted {
        return None;
    }
    let mut output: Vec<String> = bridge
        .error_detail
        .as_deref()
        .unwrap_or_default()
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    while output.last().is_some_and(String::is_empty) {
        output.pop();
    }
    let blank = output.iter().take_while(|line| line.is_empty()).count();
    output.drain(..blank);
    let line = output.last().map(|line| line.trim_start().to_owned());
    let reason = bridge.exit_reason.as_ref().and_then(|reason| reason.known());
    let found = headline(bridge);
    let advice = match (&found, reason) {
        (Some(_), Some(reason)) => words::advice(*reason),
        (Some(_), None) => None,
        (None, _) => Some(words::NO_STATUS_WHY),
    };
    Some(Cause {
        headline: found.unwrap_or_else(|| words::NO_STATUS.to_owned()),
        line,
        is_evidence: reason.is_some_and(|reason| was_said(*reason)),
        output,
        advice,
    })
}

/// Whether the service finds this reason in the output.
///
/// It puts the line it found last.
fn was_said(reason: ExitReason) -> bool {
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
    )
}

/// The facts of the second line of an ended row, in order.
#[must_use]
pub fn ended_facts(bridge: &Instance) -> Vec<String> {
    let mut facts = vec![headline(bridge).unwrap_or_else(|| words::NO_STATUS.to_owned())];
    if let Some(lived) = uptime(bridge) {
        facts.push(crate::text::session::after(&time::span(lived)));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::bridge;
    use svc_shared::Word;

    #[test]
    fn the_cause_line_is_the_last_thing_it_said() {
        let mut row = bridge("a", BridgeStatus::Crashed);
        row.error_detail = Some("\n  first\nfatal: no memory   \n\n".into());
        row.exit_signal = Some(9);
        let cause = cause(&row).unwrap();
        assert_eq!(cause.line.as_deref(), Some("fatal: no memory"));
        assert_eq!(cause.output, ["  first", "fatal: no memory"]);
        assert_eq!(cause.headline, "killed by signal KILL (137), possibly out of memory");
    }

    #[test]
    fn without_an_exit_status_the_row_says_so_and_why() {
        let mut row = bridge("a", BridgeStatus::Crashed);
        row.exit_reason = Some(ExitReason::Unknown.into());
        row.error_detail = Some("first\nspace to show QR code".into());
        let unknown = cause(&row).unwrap();
        assert_eq!(unknown.headline, "exit status not known");
        assert_eq!(unknown.advice, Some(words::NO_STATUS_WHY));
        assert_eq!(unknown.line.as_deref(), Some("space to show QR code"));
        assert!(!unknown.is_evidence);
        assert_eq!(ended_facts(&row), ["exit status not known", "after 1 min"]);
    }

    #[test]
    fn only_the_line_that_decided_is_evidence() {
        let mut row = bridge("a", BridgeStatus::Crashed);
        row.error_detail = Some("first\nError: already served".into());
        for (reason, is_evidence) in [
            (ExitReason::AlreadyServed, true),
            (ExitReason::Network, true),
            (ExitReason::Killed, false),
            (ExitReason::Unknown, false),
            (ExitReason::DiedUnsupervised, false),
        ] {
            row.exit_reason = Some(reason.into());
            assert_eq!(cause(&row).unwrap().is_evidence, is_evidence, "{reason:?}");
        }
    }

    #[test]
    fn without_output_the_row_still_says_what_happened() {
        let mut row = bridge("a", BridgeStatus::Crashed);
        row.error_detail = Some(" \n ".into());
        row.exit_code = Some(3);
        let silent = cause(&row).unwrap();
        assert_eq!((silent.line, silent.headline.as_str()), (None, "exit code 3"));
        row.exit_code = None;
        assert_eq!(cause(&row).unwrap().headline, "exit status not known");
    }

    #[test]
    fn a_known_reason_comes_with_advice_and_an_unknown_one_as_its_word() {
        let mut row = bridge("a", BridgeStatus::Error);
        row.exit_reason = Some(ExitReason::LoginRequired.into());
        row.exit_code = Some(1);
        let known = cause(&row).unwrap();
        assert_eq!(known.headline, "the agent is not signed in");
        assert!(known.advice.is_some());
        row.exit_reason = Some(Word::Other("cosmic_ray".into()));
        let newer = cause(&row).unwrap();
        assert_eq!((newer.headline.as_str(), newer.advice), ("cosmic_ray", None));
    }

    #[test]
    fn a_stop_on_purpose_needs_no_cause() {
        let mut row = bridge("a", BridgeStatus::Stopped);
        assert!(cause(&row).is_some());
        row.intentional_stop = true;
        assert_eq!(cause(&row), None);
        assert_eq!(cause(&bridge("a", BridgeStatus::Running)), None);
    }

    #[test]
    fn a_clock_that_stepped_back_gives_no_uptime() {
        let mut row = bridge("a", BridgeStatus::Crashed);
        assert_eq!(uptime(&row), Some(60_000));
        row.started_at = Some(svc_shared::Timestamp::from_millis(70_000));
        assert_eq!(uptime(&row), None);
    }
}
