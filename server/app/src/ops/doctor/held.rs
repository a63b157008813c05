//! The check `restart`: sessions that are not started again by themselves.

use super::verdict::{counted, passed, some_of, warned};
use svc_domain::bridge::Bridge;
use svc_shared::internal::Check;
use svc_shared::status::QuarantineCode;

/// Which rows are held, and why. `None`: nobody could say.
pub(super) fn held(bridges: Option<&[Bridge]>) -> Check {
    const NAME: &str = "restart";
    let Some(bridges) = bridges else {
        return warned(NAME, "could not be looked for", "see the check `db`");
    };
    let held: Vec<String> = bridges
        .iter()
        .filter_map(|bridge| {
            let why = match (&bridge.quarantine, bridge.restarts.quarantined_at) {
                (Some(code), _) => words(*code),
                (None, Some(_)) => "crashed too often",
                (None, None) => return None,
            };
            Some(format!("{} ({why})", bridge.project))
        })
        .collect();
    if held.is_empty() {
        return passed(NAME, "no session is held");
    }
    let detail = format!("{} held: {}", counted(held.len(), "session"), some_of(&held));
    let hint = "look at why on its page or with `svc logs INSTANCE`, then `svc resume INSTANCE`";
    warned(NAME, detail, hint)
}

fn words(code: QuarantineCode) -> &'static str {
    match code {
        QuarantineCode::IdentityUnknown => "its process could not be told apart",
        QuarantineCode::IdentityConflict => "two sessions name one process",
        QuarantineCode::Unkillable => "its process does not end",
        QuarantineCode::KeeperVersion => "its keeper is of another version",
        QuarantineCode::RowCorrupt => "its record is damaged",
        QuarantineCode::ForeignOwner => "its process belongs to another user",
        QuarantineCode::PointerConflict => "its process works on another project",
    }
}
