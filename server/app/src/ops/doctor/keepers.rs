//! The check `keepers`.

use super::verdict::{counted, passed, some_of, warned};
use svc_shared::internal::Check;
use svc_shared::internal::keepers::Keeper;

/// Whether each process that holds a terminal belongs to a session.
/// `None`: nobody could say.
pub(super) fn keepers(found: Option<&[Keeper]>) -> Check {
    const NAME: &str = "keepers";
    let Some(found) = found else {
        return warned(NAME, "could not be looked for", "see the check `db`");
    };
    let wrong: Vec<&Keeper> = found.iter().filter(|one| one.orphan || one.damaged).collect();
    if wrong.is_empty() {
        return match found.len() {
            0 => passed(NAME, "no terminal is held"),
            1 => passed(NAME, "1 keeper, and its session is known"),
            many => passed(NAME, format!("{many} keepers, and their sessions are known")),
        };
    }
    let shown: Vec<String> = wrong
        .iter()
        .map(|one| {
            let what = match (one.orphan, one.damaged) {
                (true, true) => "orphaned, record damaged",
                (true, false) => "orphaned",
                (false, _) => "record damaged",
            };
            format!("{} ({}, {what})", one.keeper_pid, one.project)
        })
        .collect();
    let detail =
        format!("{} without a usable session: {}", counted(wrong.len(), "keeper"), some_of(&shown));
    let hint = match wrong.iter().find(|one| one.orphan) {
        Some(orphan) => format!(
            "look at them with `svc keepers`, end an orphan with `svc keepers --kill {}`",
            orphan.keeper_pid
        ),
        None => "look at them with `svc keepers`".to_owned(),
    };
    warned(NAME, detail, &hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::Timestamp;
    use svc_shared::status::CheckStatus;

    fn keeper(orphan: bool, damaged: bool) -> Keeper {
        Keeper {
            keeper_pid: 4242,
            project: "app".into(),
            bridge_pid: None,
            session_ref: None,
            state: "ready".into(),
            instance_id: None,
            started_at: Some(Timestamp::from_millis(0)),
            orphan,
            damaged,
            version: None,
            outdated: false,
        }
    }

    #[test]
    fn keepers_without_a_session_are_named_with_what_ends_them() {
        let check = keepers(Some(&[keeper(true, false), keeper(false, false)]));
        assert!(check.status.is(&CheckStatus::Warn));
        assert!(check.detail.contains("1 keeper without a usable session: 4242 (app, orphaned)"));
        assert!(check.hint.is_some_and(|hint| hint.contains("--kill")));
        assert!(keepers(Some(&[keeper(false, false)])).status.is(&CheckStatus::Ok));
        assert!(keepers(Some(&[])).status.is(&CheckStatus::Ok));
        assert!(keepers(None).status.is(&CheckStatus::Warn));
    }

    #[test]
    fn a_keeper_with_a_damaged_record_is_named_although_its_session_is_known() {
        let check = keepers(Some(&[keeper(false, true)]));
        assert!(check.status.is(&CheckStatus::Warn));
        assert!(check.detail.contains("record damaged"), "{}", check.detail);
    }
}
