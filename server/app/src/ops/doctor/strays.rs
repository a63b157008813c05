//! The check `strays`.

use super::verdict::{counted, passed, some_of, warned};
use svc_shared::internal::Check;
use svc_shared::internal::strays::Stray;

/// Whether processes of ended bridges are left on this machine.
/// `None`: nobody could say.
pub(super) fn strays(found: Option<&[Stray]>) -> Check {
    const NAME: &str = "strays";
    let Some(found) = found else {
        return warned(NAME, "could not be looked for", "see the check `db`");
    };
    let Some(first) = found.first() else {
        return passed(NAME, "no process of an ended bridge is left");
    };
    let shown: Vec<String> = found
        .iter()
        .map(|stray| {
            let project = stray.project.as_deref().unwrap_or("no project");
            format!("{} ({}, {project}, {})", stray.pid, stray.program, stray.kind)
        })
        .collect();
    let count = match found.len() {
        1 => counted(1, "process"),
        many => format!("{many} processes"),
    };
    let detail = format!("{count} without a live bridge: {}", some_of(&shown));
    let hint =
        format!("look at them with `svc strays`, end one with `svc strays --kill {}`", first.pid);
    warned(NAME, detail, &hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::Timestamp;
    use svc_shared::status::CheckStatus;

    #[test]
    fn h105_strays_are_named_with_what_ends_them() {
        let stray = Stray {
            pid: 4242,
            kind: "leftover".into(),
            project: Some("app".into()),
            instance_id: None,
            program: "node".into(),
            started_at: Timestamp::from_millis(0),
            rss_bytes: 1,
        };
        let check = strays(Some(&[stray]));
        assert!(check.status.is(&CheckStatus::Warn));
        assert!(
            check.detail.contains("1 process without a live bridge: 4242 (node, app, leftover)")
        );
        assert!(check.hint.is_some_and(|hint| hint.contains("--kill")));
        assert!(strays(Some(&[])).status.is(&CheckStatus::Ok));
        assert!(strays(None).status.is(&CheckStatus::Warn));
    }
}
