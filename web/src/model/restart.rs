//! What happens with a bridge by itself, as the page shows it.

use crate::model::time;
use crate::text::restart as words;
use svc_shared::Timestamp;
use svc_shared::api::instances::{Instance, Quarantine};
use svc_shared::status::RestartState;

/// Where the automatic restarts of a bridge stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A restart is scheduled.
    Waiting,
    /// Too many crashes ended the restarts.
    GaveUp,
}

/// Where they stand; `None` when nothing is scheduled and nothing was given up.
#[must_use]
pub fn stage(bridge: &Instance) -> Option<Stage> {
    if bridge.is_live() {
        return None;
    }
    if bridge.quarantined.as_ref().is_some_and(Quarantine::is_crash_loop) {
        return Some(Stage::GaveUp);
    }
    bridge.restart.state.is(&RestartState::Waiting).then_some(Stage::Waiting)
}

/// The record as if nothing happened with the bridge by itself.
#[must_use]
pub fn without(bridge: &Instance) -> Instance {
    let mut plain = bridge.clone();
    plain.restart.state = RestartState::Idle.into();
    plain.quarantined = plain.quarantined.filter(|hold| !hold.is_crash_loop());
    plain
}

/// The sentence of the card at this time, milliseconds.
#[must_use]
pub fn sentence(bridge: &Instance, now: i64) -> Option<String> {
    match stage(bridge)? {
        Stage::GaveUp => Some(words::gave_up(bridge.restart.crashes_in_window)),
        Stage::Waiting => {
            let left = bridge.restart.next_at?.as_millis() - now;
            let attempt = bridge.restart.attempt.saturating_add(1);
            Some(match left {
                ..=0 => words::due(attempt),
                // The last second counts as one: nought would read as now.
                left => words::waits(&time::span(left.max(1_000)), attempt),
            })
        }
    }
}

/// The short form on a row, at this time in milliseconds.
#[must_use]
pub fn fact(bridge: &Instance, now: i64) -> Option<String> {
    (stage(bridge)? == Stage::Waiting).then_some(())?;
    bridge.restart.sentence(Timestamp::from_millis(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::bridge;
    use svc_shared::status::{BridgeStatus, QuarantineKind};

    fn waiting() -> Instance {
        let mut row = bridge("a", BridgeStatus::Crashed);
        row.restart.state = RestartState::Waiting.into();
        row.restart.next_at = Some(Timestamp::from_millis(30_000));
        row
    }

    #[test]
    fn a_scheduled_restart_is_counted_down_to_its_moment() {
        let row = waiting();
        let now = |at| sentence(&row, at).unwrap_or_default();
        assert_eq!(now(0), "The service resumes this session in 30 s. This is attempt 1.");
        assert!(now(29_700).contains("in 1 s"), "{}", now(29_700));
        assert!(now(30_000).contains("now"), "{}", now(30_000));
        assert!(fact(&row, 0).is_some_and(|text| text.contains("restarts in 30 s")));
    }

    #[test]
    fn nothing_is_scheduled_for_what_runs() {
        let mut row = waiting();
        row.status = BridgeStatus::Running.into();
        assert_eq!((stage(&row), sentence(&row, 0), fact(&row, 0)), (None, None, None));
        assert_eq!(stage(&bridge("a", BridgeStatus::Crashed)), None);
    }

    #[test]
    fn a_policy_that_gave_up_says_after_how_many_crashes() {
        let mut row = bridge("a", BridgeStatus::Crashed);
        row.restart.crashes_in_window = 5;
        row.quarantined = Some(Quarantine {
            kind: QuarantineKind::CrashLoop.into(),
            code: "restart_quarantined".into(),
        });
        assert_eq!(stage(&row), Some(Stage::GaveUp));
        assert!(sentence(&row, 0).is_some_and(|text| text.starts_with("5 crashes")));
        assert_eq!(fact(&row, 0), None);
        row.quarantined =
            Some(Quarantine { kind: QuarantineKind::Identity.into(), code: "unkillable".into() });
        assert_eq!(stage(&row), None, "that hold is about the process, not about restarts");
    }
}
