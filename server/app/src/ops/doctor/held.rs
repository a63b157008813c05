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
    let held: Vec<(&Bridge, String)> = bridges
        .iter()
        .filter_map(|bridge| {
            let why = match (&bridge.quarantine, bridge.restarts.quarantined_at) {
                (Some(code), _) => words(*code),
                (None, Some(_)) => "crashed too often",
                (None, None) => return None,
            };
            Some((bridge, format!("{} ({why})", bridge.project)))
        })
        .collect();
    let Some((first, _)) = held.first() else {
        return passed(NAME, "no session is held");
    };
    // What is held for its process is not resumed: its page says what is to be done first.
    let given_up = held.iter().map(|(bridge, _)| bridge).find(|one| one.quarantine.is_none());
    let hint = match given_up.map(|bridge| bridge.id.short()) {
        Some(id) => format!(
            "look at why on its page or with `svc logs {id}`, then continue it with \
             `svc resume {id}`"
        ),
        None => format!("look at why on its page or with `svc logs {}`", first.id.short()),
    };
    let shown: Vec<&String> = held.iter().map(|(_, shown)| shown).collect();
    let detail = format!("{} held: {}", counted(held.len(), "session"), some_of(&shown));
    warned(NAME, detail, &hint)
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
