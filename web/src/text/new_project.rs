//! The sheet that makes a project.

use crate::model::new_project::BadUrl;

/// Title.
pub const CREATE_TITLE: &str = "Create a project";
/// Title.
pub const CLONE_TITLE: &str = "Clone a repository";
/// Button of the list.
pub const CREATE: &str = "Create";
/// Button of the list.
pub const CLONE: &str = "Clone";
/// Button of an empty list.
pub const CREATE_EMPTY: &str = "Create an empty project";
/// Label.
pub const REPOSITORY: &str = "Repository";
/// Example.
pub const EXAMPLE: &str = "https://git.example.org/team/project.git";
/// Label.
pub const NAME: &str = "Project name";
/// Box.
pub const GIT_INIT: &str = "Make it a git repository";
/// What the box is good for.
pub const GIT_INIT_HELP: &str = "Sessions can then work in worktrees of their own.";
/// Box.
pub const SHALLOW: &str = "Newest commit only";
/// What the box is good for.
pub const SHALLOW_HELP: &str = "Faster and smaller, without the history.";
/// Help.
pub const URL_HELP: &str =
    "https or ssh. The service uses the keys of its machine. Do not include a password.";
/// A project has this name.
pub const TAKEN: &str = "a project has this name already";
/// Nothing typed.
pub const NAME_WANTED: &str = "Give the project a name.";
/// Nothing typed.
pub const URL_WANTED: &str = "Give the address of a repository.";
/// The steps of a clone.
pub const STEPS: [&str; 3] = ["Address", "Copy", "Review"];
/// Heading of the progress.
pub const CLONING: &str = "Cloning";
/// Other clones run first.
pub const WAITING: &str = "Waiting for other clones";
/// The phases, in the order of the model.
pub const PHASES: [&str; 5] = [
    "Counting objects",
    "Compressing objects",
    "Receiving objects",
    "Resolving deltas",
    "Updating files",
];
/// What closing means.
pub const GOES_ON: &str = "You can close this sheet. The clone continues and is shown in the top bar. \
                           When it is done, you see what the repository contains before anything runs.";
/// Button.
pub const CANCEL_CLONE: &str = "Cancel clone";
/// Question of that button.
pub const CANCEL_SURE: &str = "Cancel this clone? The copied files are removed.";
/// The answer that cancels.
pub const CANCEL_YES: &str = "Cancel clone";
/// The answer that does not.
pub const CANCEL_NO: &str = "Keep cloning";
/// Button.
pub const CLOSE: &str = "Close";
/// Button.
pub const LATER: &str = "Later";
/// Button.
pub const TRY_AGAIN: &str = "Change and try again";
/// Button.
pub const TRUST_AND_LAUNCH: &str = "Trust and launch";
/// Button of a folder that is trusted.
pub const LAUNCH: &str = "Launch";
/// What later means.
pub const WITHOUT_TRUST: &str =
    "No session can start in this folder until you trust it. You can do that later, in Projects.";
/// Title of a failure.
pub const FAILED: &str = "Not cloned";
/// Title of a cancelled clone.
pub const CANCELLED: &str = "Cancelled. The copied files were removed.";
/// The record of a clone is gone.
pub const FORGOTTEN: &str = "This clone is no longer listed.";
/// Of a clone.
pub const NEWEST_ONLY: &str = "newest commit only";

/// Where it goes.
#[must_use]
pub fn goes_to(root: &str, name: &str) -> String {
    format!("Will be in {}/{name}.", root.trim_end_matches('/'))
}

/// Why an address is refused.
#[must_use]
pub fn bad_url(why: BadUrl) -> &'static str {
    match why {
        BadUrl::Scheme => "The address must begin with https:// or ssh://.",
        BadUrl::ShortForm => "Write it as ssh://user@host/path.",
        BadUrl::Password => {
            "The address holds a password. Remove it; the service uses the keys and the .netrc of \
             its machine."
        }
    }
}

/// A project is there.
#[must_use]
pub fn cloned(name: &str) -> String {
    format!("{name} is cloned. Nothing in it has run.")
}

/// A project is there.
#[must_use]
pub fn created(name: &str) -> String {
    format!("{name} is created.")
}

/// In the top bar.
#[must_use]
pub fn cloning(name: &str, percent: Option<u8>) -> String {
    match percent {
        Some(percent) => format!("Cloning {name}, {percent} %"),
        None => format!("Cloning {name}"),
    }
}

/// In the top bar, for several.
#[must_use]
pub fn cloning_several(n: usize) -> String {
    format!("Cloning {n} projects")
}
