//! Sentences about one bridge: facts, actions, outcomes.

/// How long it lived before it ended.
#[must_use]
pub fn after(span: &str) -> String {
    format!("after {span}")
}

/// How long it has been starting, of the time allowed.
#[must_use]
pub fn starting_for(span: &str, allowed: &str) -> String {
    format!("for {span} of {allowed}")
}

/// Taken over while starting: it has no deadline.
pub const WAITING_READY: &str = "waiting until ready";
/// The link will come.
pub const LINK_PENDING: &str = "preparing the link";
/// A Direct Session has no remote client.
pub const HERE_ONLY: &str = "viewable here only";
/// The link should have come by now.
pub const NO_LINK_YET: &str = "no link yet";
/// A stop that takes long.
pub const SLOW_STOP: &str = "taking longer than usual";
/// An interrupted row that can go on.
pub const RESUME_TO_CONTINUE: &str = "Resume to continue";
/// Chip of a bridge that this service did not launch.
pub const ADOPTED: &str = "adopted";

/// Chip of a bad end that nobody has looked at yet.
pub const NEW: &str = "new";

/// Chip with the agent's release.
#[must_use]
pub fn agent(version: &str) -> String {
    format!("agent {version}")
}

/// Working sessions below a bridge.
#[must_use]
pub fn inside(n: usize) -> String {
    if n == 1 { "1 session inside".to_owned() } else { format!("{n} sessions inside") }
}

/// Buttons and menu entries.
pub mod act {
    /// Opens the remote client.
    pub const OPEN: &str = "Open";
    /// Shows the live view of a Direct Session.
    pub const VIEW_HERE: &str = "View live";
    /// Shows the log.
    pub const LOG: &str = "Log";
    /// Stops.
    pub const STOP: &str = "Stop";
    /// Restarts what has lost its remote link.
    pub const HEAL: &str = "Restart";
    /// Rest of the question before it.
    pub const HEAL_QUESTION: &str =
        "? Its link is lost. The process ends and comes back with its conversations.";
    /// Resumes.
    pub const RESUME: &str = "Resume";
    /// Trusts the folder and resumes.
    pub const TRUST_RESUME: &str = "Trust and resume…";
    /// Goes to the bridge that is in the way.
    pub const VIEW_LIVE: &str = "View running session";
    /// Stops that one.
    pub const STOP_LIVE: &str = "Stop running session…";
    /// Launches another.
    pub const LAUNCH_NEW: &str = "Launch new…";
    /// Removes the row.
    pub const FORGET: &str = "Forget";
    /// Puts a bad end away.
    pub const DISMISS: &str = "Dismiss";
    /// Changes the name.
    pub const RENAME: &str = "Rename";
    /// The session page.
    pub const DETAILS: &str = "Details";
    /// The session page, from a message.
    pub const VIEW: &str = "View";
    /// Copies the id.
    pub const COPY_ID: &str = "Copy id";
    /// Copies the reference.
    pub const COPY_REF: &str = "Copy session ref";
    /// Copies the command.
    pub const COPY_COMMAND: &str = "Copy command";
    /// Declines an action.
    pub const CANCEL: &str = "Cancel";
    /// Declines a stop.
    pub const KEEP_RUNNING: &str = "Keep running";
    /// Opens the menu.
    pub const MORE: &str = "More";
}

/// Name of a row's button for people who do not see the row.
#[must_use]
pub fn named(action: &str, object: &str) -> String {
    format!("{action} {object}")
}

/// Question before a stop.
#[must_use]
pub fn stop_question(inside: usize) -> &'static str {
    match inside {
        0 => "?",
        1 => "? 1 session in it ends too.",
        _ => "? The sessions in it end too.",
    }
}

/// Why Resume would not work now.
pub mod blocked {
    /// Before each of the reasons.
    #[must_use]
    pub fn cannot(why: &str) -> String {
        format!("Can't resume: {why}")
    }

    /// Another Server Mode bridge lives.
    pub const ALREADY_LIVE: &str = "already running";
    /// Its process lives.
    pub const STILL_LIVE: &str = "the process is still alive";
    /// Nothing saved.
    pub const NO_SESSION: &str = "no conversation was saved";
    /// The folder is gone.
    pub const UNKNOWN_PROJECT: &str = "project folder not found";
    /// Not trusted.
    pub const NOT_TRUSTED: &str = "the folder is not trusted";
    /// Bypass is forbidden now.
    pub const BYPASS: &str = "bypassing permissions is no longer allowed here";
    /// The daemon is not there.
    pub const HOSTED: &str = "not available in this version";
    /// The surviving process must go first.
    pub const ORPHAN: &str = "kill the surviving process first";
    /// The row is suspended.
    pub const QUARANTINED: &str = "this session is held";
    pub const NOT_GIT: &str =
        "it works in a git worktree, and the project is no longer a git repository";
    pub const NO_TERMINAL: &str = "this machine cannot open a terminal for it";
}

/// Outcome of a launch that is ready.
#[must_use]
pub fn started(kind: &str, project: &str) -> String {
    format!("{kind} started in {project}")
}
/// Outcome of a launch that is under way.
#[must_use]
pub fn starting_in(project: &str) -> String {
    format!("Starting in {project}")
}
/// It usually takes seconds.
pub const STARTING_BODY: &str = "This message changes when the session is ready.";
/// Outcome of a launch that failed.
#[must_use]
pub fn failed_in(project: &str) -> String {
    format!("Failed to start in {project}")
}
/// A bridge ended unexpectedly.
#[must_use]
pub fn crashed_in(project: &str) -> String {
    format!("{project} crashed")
}
/// Nothing was launched because one runs.
#[must_use]
pub fn reused(project: &str) -> String {
    format!("Nothing new was started in {project}")
}
/// … since when, and what of the request did not count.
#[must_use]
pub fn reused_body(since: &str, not_applied: &[&str]) -> String {
    if not_applied.is_empty() {
        format!("Server Mode already runs there, since {since}.")
    } else {
        let options = not_applied.join(", ");
        format!("Server Mode already runs there, since {since}. Not applied: {options}.")
    }
}
/// Found running.
#[must_use]
pub fn reattached(project: &str) -> String {
    format!("Found running in {project}")
}
/// … and managed from now on.
pub const REATTACHED_BODY: &str =
    "The session was started elsewhere. It is managed here from now on.";
/// Outcome of a resume.
#[must_use]
pub fn resumed(project: &str) -> String {
    format!("Resumed {project}")
}
/// A resume that was declined.
#[must_use]
pub fn not_resumed(project: &str) -> String {
    format!("Couldn't resume {project}")
}
/// … because another lives.
pub const NOT_RESUMED_LIVE: &str = "Server Mode already runs in this project.";
/// … because it lives itself.
pub const NOT_RESUMED_RUNNING: &str = "The session is already running.";
/// Outcome of a stop.
#[must_use]
pub fn stopped(project: &str) -> String {
    format!("Stopped {project}")
}
/// A bad end was put away.
#[must_use]
pub fn dismissed(project: &str) -> String {
    format!("Dismissed {project}")
}
/// Outcome of a forget.
#[must_use]
pub fn forgotten(project: &str) -> String {
    format!("Forgot {project}")
}
/// Outcome of a rename.
#[must_use]
pub fn renamed(label: &str) -> String {
    format!("Renamed to {label}")
}
/// When the client sees the new name.
pub const RENAMED_BODY: &str = "The remote client shows the new name after the next resume.";
/// Outcome of a trust.
#[must_use]
pub fn trusted(project: &str) -> String {
    format!("{project} is trusted")
}
/// A remark of the server about something that worked.
#[must_use]
pub fn remark(project: &str) -> String {
    format!("About the launch in {project}")
}
/// A launch that ended before anybody could say that it was ready.
#[must_use]
pub fn ended_early(project: &str, status: &str) -> String {
    format!("{project}: {status}")
}
