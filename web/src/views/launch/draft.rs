//! What was filled in and not sent.
//!
//! It survives a lost sign-in, a reload and a failure.

use crate::browser;
use crate::model::launch::Choice;
use crate::nav::Nav;

/// Storage key of the form, in this tab.
const DRAFT: &str = "svc.launch";
/// Longest prompt in an address, bytes.
const LONGEST_IN_ADDRESS: usize = 4_000;

/// The draft, if it was made at this very address.
pub(super) fn drafted(address: &str) -> Option<Choice> {
    let kept = browser::drafted(DRAFT)?;
    Some(Choice::read(kept.strip_prefix(address)?.strip_prefix('\n')?))
}

/// Keeps the draft of an address.
pub(super) fn keep(address: &str, choice: &Choice) {
    browser::draft(DRAFT, Some(&format!("{address}\n{}", choice.text())));
}

/// Forgets the draft.
pub(super) fn forget() {
    browser::draft(DRAFT, None);
}

/// Opens the dialog with everything that a launch which failed was asked for.
///
/// A long prompt does not go into the address: servers refuse what is too long there.
pub fn reopen(nav: Nav, project: &str, choice: &Choice) {
    let is_long = choice.get("prompt").is_some_and(|prompt| prompt.len() > LONGEST_IN_ADDRESS);
    if !is_long {
        nav.open_launch(project, choice);
        return;
    }
    let short = Choice::of(|name| match name {
        "prompt" => String::new(),
        name => choice.get(name).unwrap_or_default().to_owned(),
    });
    keep(&nav.launch_address(project, &short), choice);
    nav.open_launch(project, &short);
}
