//! Sentences of the frame around the views, of lists, errors and empty places.

/// Product name.
pub const PRODUCT: &str = "svc";
/// Mark under `svc demo`.
pub const DEMO: &str = "DEMO";
/// What the mark means.
pub const DEMO_HELP: &str =
    "A demonstration: a simulated agent and sample projects in a temporary folder.";
/// Views.
pub mod nav {
    /// Landmark.
    pub const LABEL: &str = "Main";
    /// View.
    pub const HOME: &str = "Home";
    /// View.
    pub const PROJECTS: &str = "Projects";
    /// View.
    pub const BACKGROUND: &str = "Background";
    /// View.
    pub const ABOUT: &str = "About";
    /// What is not in the bar of a phone.
    pub const MORE: &str = "More";
    /// View.
    pub const SESSION: &str = "Session";
    /// View.
    pub const MISSING: &str = "Not found";
    /// Landmark of the path above a detail view.
    pub const BREADCRUMB: &str = "Breadcrumb";
    /// First link of the page.
    pub const SKIP: &str = "Skip to content";
}
/// Title of the browser tab.
#[must_use]
pub fn title(view: &str, host: &str, unseen: usize) -> String {
    let name = if host.is_empty() { PRODUCT } else { host };
    if unseen == 0 { format!("{view} · {name}") } else { format!("({unseen}) {view} · {name}") }
}
/// A view was opened.
#[must_use]
pub fn opened(view: &str) -> String {
    format!("{view} opened")
}

/// State of the connection.
pub mod link {
    /// Connected.
    pub const LIVE: &str = "Live";
    /// First connection.
    pub const CONNECTING: &str = "Connecting";
    /// Lost.
    pub const RECONNECTING: &str = "Reconnecting";
    /// Age of what is shown.
    #[must_use]
    pub fn as_of(clock: &str) -> String {
        format!("data from {clock}")
    }
    /// Age, in a heading.
    #[must_use]
    pub fn as_of_offline(clock: &str) -> String {
        format!("from {clock}, offline")
    }
    /// Next try.
    #[must_use]
    pub fn next_try(span: &str) -> String {
        format!("next try in {span}")
    }
    /// The try is on its way.
    pub const TRYING: &str = "trying now";
    /// What offline means.
    pub const WAIT: &str = "Actions are disabled until the service responds.";
    /// Button.
    pub const RETRY: &str = "Retry now";
    /// Reason of every button while offline.
    pub const OFFLINE: &str = "offline";
    /// Before a status of unknown age.
    #[must_use]
    pub fn last_seen(clock: &str) -> String {
        format!("last seen {clock}")
    }
    /// Since when, while offline.
    #[must_use]
    pub fn since(clock: &str) -> String {
        format!("since {clock}")
    }
    /// Caught up.
    #[must_use]
    pub fn caught_up(changes: u64) -> String {
        match changes {
            0 => "Up to date.".to_owned(),
            1 => "Up to date. 1 change while you were away.".to_owned(),
            n => format!("Up to date. {n} changes while you were away."),
        }
    }
    /// The service was restarted.
    pub const RESTARTED: &str = "The service was restarted. Up to date.";
    /// Steps were missed.
    pub const GAP: &str = "Up to date. Some history is missing.";
    /// Another version serves now.
    pub const NEW_VERSION: &str = "A new version is available.";
    /// This page and the server do not understand each other.
    pub const OTHER_PROTOCOL: &str =
        "This page is older than the service. Reload it to see changes again.";
    /// Button.
    pub const RELOAD: &str = "Reload";
    /// Button.
    pub const LATER: &str = "Later";
}

/// A view whose module did not come.
pub mod lazy {
    /// Heading.
    pub const TITLE: &str = "This view could not be loaded";
    /// What happened, and what helps.
    pub const WHY: &str = "Its part of the page did not arrive. Sessions and the service are not affected. Check the connection and try again; reload if the service was updated meanwhile.";
    /// Button.
    pub const RETRY: &str = "Try again";
    /// Button.
    pub const RELOAD: &str = "Reload";
}
/// A view with unsaved edits is left.
pub mod unsaved {
    /// Title.
    pub const TITLE: &str = "Leave without saving?";
    /// What is lost.
    pub const TEXT: &str = "What you changed in this view is not saved and would be lost.";
    /// Button.
    pub const LEAVE: &str = "Discard and leave";
    /// Button.
    pub const STAY: &str = "Stay";
}

/// Theme.
pub mod theme {
    /// Follows the system.
    pub const SYSTEM: &str = "Theme: system";
    /// Light.
    pub const LIGHT: &str = "Theme: light";
    /// Dark.
    pub const DARK: &str = "Theme: dark";
}

/// Sections of Home.
pub mod home {
    /// Trouble.
    pub const NEEDS_LOOK: &str = "Needs attention";
    /// Live bridges.
    pub const LIVE: &str = "Live";
    /// Ended bridges.
    pub const ENDED: &str = "Ended";
    /// Projects.
    pub const PROJECTS: &str = "Projects";
    /// Link.
    pub const SHOW_ALL: &str = "Show all";
    /// Link.
    pub const SHOW_FEWER: &str = "Show fewer";
    /// Link.
    pub const ALL_PROJECTS: &str = "All projects";
    /// Group of chips.
    pub const FILTER: &str = "Kind";
    /// Button on phones that shows the chips.
    pub const SHOW_FILTER: &str = "Filter";
    /// Checks that fail.
    #[must_use]
    pub fn blocking(n: usize) -> String {
        if n == 1 {
            "1 readiness check fails.".to_owned()
        } else {
            format!("{n} readiness checks fail.")
        }
    }
    /// Nothing of the chosen kind runs.
    pub const NONE_SHOWN: &str = "Nothing matches.";
    /// Nothing runs.
    pub const NO_LIVE: &str =
        "A session is a bridge between a project here and the remote client on any device.";
    /// Button.
    #[must_use]
    pub fn launch_in(project: &str) -> String {
        format!("Launch in {project}")
    }
    /// Nothing at all.
    pub const NO_PROJECTS: &str = "No projects yet";
    /// Before the path.
    pub const BECOMES_A: &str = "Every folder in ";
    /// After the path.
    pub const BECOMES_B: &str = " becomes a project.";
    /// How to begin.
    pub const BEGIN: &str = "Create one here, or copy a folder there. It appears automatically.";
    /// Heading of the steps.
    pub const STEPS: &str = "First steps";
    /// Steps done.
    #[must_use]
    pub fn steps_done(done: usize, of: usize) -> String {
        format!("{done} of {of} done")
    }
    /// Button of the card.
    pub const DISMISS: &str = "Dismiss";
    /// Mark of the step to take.
    pub const NEXT: &str = "Next";
    /// Mark of a step taken.
    pub const DONE: &str = "Done";
    /// Step.
    pub const STEP_SIGN_IN: &str = "Sign in the agent";
    /// … how.
    pub const STEP_SIGN_IN_HOW: &str =
        "Run claude once on this machine and follow the instructions.";
    /// Step.
    pub const STEP_INSTALL: &str = "Install the agent";
    /// … how.
    pub const STEP_INSTALL_HOW: &str =
        "Install claude on this machine, or set the key claude.binary to its path.";
    /// Step.
    pub const STEP_ADD: &str = "Add a project";
    /// … how.
    #[must_use]
    pub fn step_add_how(root: &str) -> String {
        format!("Clone one, or copy a folder into {root}. It appears automatically.")
    }
    /// Step.
    pub const STEP_LAUNCH: &str = "Trust the project and launch";
    /// … how.
    pub const STEP_LAUNCH_HOW: &str = "You see what the folder contains before anything runs.";
    /// Step.
    pub const STEP_OPEN: &str = "Open the session in the client";
    /// … how.
    pub const STEP_OPEN_HOW: &str = "Open a running session, or scan its QR code with a phone.";
    /// The agent is not signed in.
    pub const NOT_SIGNED_IN: &str = "The agent is not signed in on this machine.";
    /// … what to do.
    pub const NOT_SIGNED_IN_HOW: &str =
        "Run claude there once and follow the instructions. Launches fail until then.";
    /// … what it means, where it can be signed in from here.
    pub const NOT_SIGNED_IN_WHY: &str = "Launches fail until then.";
    /// The agent was not found.
    pub const NO_AGENT: &str = "The agent was not found, or does not work, on this machine.";
    /// … what to do.
    pub const NO_AGENT_HOW: &str =
        "Install the agent, or set claude.binary to its path. Launches fail until then.";
    /// Clocks differ.
    #[must_use]
    pub fn skew(span: &str) -> String {
        format!("The clock of this device differs from the service by {span}.")
    }
    /// Shows the captured tail.
    pub const SHOW_OUTPUT: &str = "Show output";
    /// Hides it.
    pub const HIDE_OUTPUT: &str = "Hide output";
}

pub mod projects;

/// The page of a project.
pub mod project {
    /// Name of the path, for the button that copies it.
    pub const PATH: &str = "path";
    /// Nothing runs or ended there.
    pub const EMPTY: &str = "No session has been started here yet.";
}

/// The session page.
pub mod session {
    /// Tab.
    pub const TAB_LOG: &str = "Log";
    /// Tab.
    pub const TAB_DETAILS: &str = "Details";
    /// Landmark of the tabs.
    pub const TABS: &str = "About this session";
    /// Link to the log.
    pub const OPEN_LOG: &str = "Go to end of log";
    /// Heading of the tail.
    pub const LAST_OUTPUT: &str = "Last output";
    /// Lines of the tail.
    #[must_use]
    pub fn lines_before_end(n: usize) -> String {
        if n == 1 { "Last line".to_owned() } else { format!("Last {n} lines") }
    }
    /// Button.
    pub const COPY: &str = "Copy";
    /// It is on the clipboard.
    pub const COPIED: &str = "Copied";
    /// No clipboard here; the text follows.
    pub const NO_CLIPBOARD: &str = "This browser can copy only over HTTPS. The text:";
    /// No clipboard here.
    pub const PRESS_COPY: &str = "Selected. Press Ctrl+C to copy.";
    /// No such row.
    pub const UNKNOWN: &str = "There is no session with this id";
    /// … why.
    pub const UNKNOWN_WHY: &str =
        "The session may have been forgotten. Check the first characters of the id.";
    /// Several rows.
    pub const SEVERAL: &str = "Several sessions begin with this id";
    /// Label of the new name.
    pub const NEW_NAME: &str = "New name";
    /// Button.
    pub const SAVE: &str = "Save";
    /// Short label of the id.
    pub const ID: &str = "id";
    /// Short label of the reference.
    pub const REF: &str = "ref";
    /// Generation.
    #[must_use]
    pub fn generation(n: u32) -> String {
        format!("generation {n}")
    }
    /// How long it has been so.
    #[must_use]
    pub fn for_span(span: &str) -> String {
        format!("for {span}")
    }
    /// Why Resume would be declined, as a sentence.
    #[must_use]
    pub fn resume_declined(why: &str) -> String {
        format!("{}.", why.trim_end_matches('.'))
    }
    /// Names of the fields of the details.
    pub mod field {
        use svc_shared::Word;
        use svc_shared::status::Origin;

        /// Field.
        pub const PROJECT: &str = "Project";
        /// Field.
        pub const LABEL: &str = "Session name";
        /// Field.
        pub const KIND: &str = "Kind";
        /// Field.
        pub const STATUS: &str = "Status";
        /// Field.
        pub const SINCE: &str = "Since";
        /// Field.
        pub const ACTIVITY: &str = "Activity";
        /// Field.
        pub const STARTED: &str = "Started";
        /// Field.
        pub const ENDED: &str = "Ended";
        /// Field.
        pub const REASON: &str = "Cause";
        /// Field.
        pub const CODE: &str = "Exit code";
        /// Field.
        pub const SIGNAL: &str = "Exit signal";
        /// Field.
        pub const MAY_DO: &str = "Permissions";
        /// Field.
        pub const RUNS_IN: &str = "Runs in";
        /// Field.
        pub const ORIGIN: &str = "Origin";
        /// Field.
        pub const GENERATION: &str = "Generation";
        /// Field.
        pub const PID: &str = "Bridge process";
        /// Field.
        pub const AGENT: &str = "Agent release";
        /// Field.
        pub const ID: &str = "Id";
        /// Field.
        pub const SESSION_REF: &str = "Session ref";
        /// Field.
        pub const ENVIRONMENT_REF: &str = "Environment ref";
        /// Field.
        pub const REUSE: &str = "Sessions can reconnect until";
        /// Field.
        pub const KEEPER: &str = "Keeper process";
        /// Field.
        pub const AGENT_PID: &str = "Agent process";
        /// Field.
        pub const WORKTREE: &str = "Worktree";
        /// Field.
        pub const ON_LIMIT: &str = "After a plan limit";
        /// Field.
        pub const RESTART: &str = "Auto-restart";
        /// Field.
        pub const NOTICE: &str = "Notice";
        /// Field.
        pub const LINK: &str = "Link for the client";
        /// Field.
        pub const RESUMABLE: &str = "Can be resumed";
        /// Field.
        pub const COMMANDS: &str = "CLI commands";
        /// How the service came to it.
        #[must_use]
        pub fn origin(origin: &Word<Origin>) -> String {
            match origin.known() {
                Some(Origin::Spawned) => "Started by this service".to_owned(),
                Some(Origin::Adopted) => "Taken over".to_owned(),
                Some(Origin::Rediscovered) => "Found running without a record".to_owned(),
                None => origin.to_string(),
            }
        }
        /// It is so.
        pub const YES: &str = "Yes";
        /// It is not so.
        pub const NO: &str = "No";
    }
}

/// The page between Open and the client.
pub mod open {
    /// Title.
    #[must_use]
    pub fn title(project: &str) -> String {
        format!("Open {project}")
    }
    /// Asking.
    pub const ASKING: &str = "Asking the service for the link…";
    /// Leaving.
    #[must_use]
    pub fn leaving(host: &str) -> String {
        format!("Opening {host}…")
    }
    /// Not a link to follow.
    pub const REFUSED: &str =
        "The link of this session does not lead to the remote client, so it was not opened.";
    /// Under `svc demo` there is no client to open.
    pub const DEMO: &str = "This is a demonstration, so nothing is opened. A real session opens \
                            in the client here.";
    /// What to do about it.
    pub const REFUSED_HOW: &str =
        "Stop and resume the session. If that does not help, read its log.";
    /// Button.
    pub const RETRY: &str = "Retry";
    /// Link.
    pub const BACK: &str = "Back to the session";
}

/// The link as a picture.
pub mod qr {
    /// Button.
    pub const LABEL: &str = "QR code";
    /// Title, and name of the picture.
    #[must_use]
    pub fn title(project: &str) -> String {
        format!("QR code to open {project}")
    }
    /// Below the picture.
    pub const WARNING: &str =
        "Anyone who scans it can open this session. The code disappears when you leave this tab.";
    /// There is no picture.
    pub const NONE: &str = "There is no link now. The session may have ended.";
}

/// About.
pub mod about {
    /// Field.
    pub const VERSION: &str = "Version";
    /// Field.
    pub const BUILD: &str = "Page build";
    /// Field.
    pub const HOST: &str = "Machine";
    /// Field.
    pub const ROOT: &str = "Projects folder";
    /// Field.
    pub const AGENT: &str = "Agent";
    /// Field.
    pub const SIGN_IN: &str = "Agent sign-in";
    /// Field.
    pub const GRACE: &str = "Startup timeout";
    /// Field.
    pub const CAP: &str = "Max. live bridges";
    /// Value.
    pub const NO_CAP: &str = "no limit";
    /// Value.
    pub const SIGNED_IN: &str = "signed in";
    /// Value.
    pub const NOT_SIGNED_IN: &str = "not signed in";
    /// Value.
    pub const UNKNOWN: &str = "unknown";
    /// Value.
    pub const NOT_FOUND: &str = "not found";
    /// Heading.
    pub const LICENCE: &str = "Licence";
    /// Licence.
    pub const LICENCE_TEXT: &str = "MIT";
    /// Link to the gallery.
    pub const COMPONENTS: &str = "Component gallery";
}

/// An address outside the page.
pub const MISSING: &str = "There is no page at this address.";
/// Link.
pub const GO_HOME: &str = "Go to Home";
/// Loading.
pub const LOADING: &str = "Loading…";
/// Dismisses a message.
pub const DISMISS: &str = "Dismiss";
/// Region of messages.
pub const MESSAGES: &str = "Messages";
/// Takes back what was just done.
pub const UNDO: &str = "Undo";
/// Repeats a request.
pub const REPEAT: &str = "Try again";

/// No answer.
pub const NO_ANSWER: &str =
    "The service did not respond, so the result is unknown. Check the row before you try again.";
/// A defect of the service.
#[must_use]
pub fn internal(id: &str) -> String {
    format!("The service failed. Its log has the details under {id}.")
}
/// Not our server's answer.
#[must_use]
pub fn unreadable(status: u16) -> String {
    format!(
        "This page does not understand the answer (HTTP {status}). Reload. If that does not help, check the proxy between this browser and the service."
    )
}
/// Failed actions.
#[must_use]
pub fn not_done(action: &str, object: &str) -> String {
    format!("Couldn't {} {object}", action.to_lowercase())
}
/// The start failed.
pub const NO_START: &str = "The service does not respond";
/// The address is not allowed.
pub const WRONG_ADDRESS: &str = "This address is not allowed";
/// … what to do.
#[must_use]
pub fn wrong_address_how(origin: &str) -> String {
    format!(
        "The page is open at {origin}, and the service accepts no actions from there. Open the page at another address of the service, or add this address to auth.allowed_origins and restart the service."
    )
}
/// The session has ended.
pub const SIGNED_OUT: &str = "You are signed out";
/// … what happens next.
pub const SIGNED_OUT_HOW: &str =
    "Sign in again in another tab to continue. What you typed here is kept.";
/// Link.
pub const SIGN_IN: &str = "Sign in";
/// Link.
pub const SIGN_OUT: &str = "Sign out";
/// The page crashed.
pub const CRASH: &str = "The page stopped working";
/// … what to do.
pub const CRASH_HOW: &str = "Sessions and the service are not affected. Reload to continue. If this happens again, report this text:";
/// Messages left unread.
#[must_use]
pub fn and_more(n: usize) -> String {
    format!("And {n} more.")
}
