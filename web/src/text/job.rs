//! Sentences about background and external sessions.

/// Kind.
pub const KIND: &str = "Background session";
/// State.
pub const WORKING: &str = "Working";
/// State.
pub const BLOCKED: &str = "Blocked";
/// State.
pub const DONE: &str = "Done";
/// State.
pub const FAILED: &str = "Failed";
/// State.
pub const STOPPED: &str = "Stopped";
/// State: not ended on disk, but nobody works on it.
pub const LOST: &str = "Lost";
/// State that is not reported.
pub const UNKNOWN: &str = "Unknown";
/// What it waits for.
#[must_use]
pub fn needs(what: &str) -> String {
    format!("needs: {what}")
}
/// Where a waiting job is answered.
#[must_use]
pub fn answer_how(is_remote: bool) -> &'static str {
    if is_remote {
        "Answer in the remote client, or in a terminal on the machine:"
    } else {
        "Answer in a terminal on the machine:"
    }
}
/// The command with which it is answered.
#[must_use]
pub fn answer_command(id: &str) -> String {
    format!("claude attach {id}")
}
/// Menu entry.
pub const COPY_ANSWER: &str = "Copy the command to answer";
/// Chip.
pub const REMOTE: &str = "remote";
/// Why Resume cannot work.
pub const NO_CONVERSATION: &str = "Can't resume: no conversation was saved";
/// Buttons and menu entries.
pub const REMOVE: &str = "Remove";
/// Shows prompt and result.
pub const MORE: &str = "Prompt and result";
/// Shows the prompt, while there is no result.
pub const PROMPT: &str = "Prompt";
/// Label of the final text.
pub const RESULT: &str = "Result";
/// Field.
pub const AGENT: &str = "Agent release";
/// Question before a stop.
pub const STOP_QUESTION: &str =
    "? Ends the job and removes it from the list. The conversation is kept.";

/// Outcome of a dispatch.
#[must_use]
pub fn started(project: &str) -> String {
    format!("Background session started in {project}")
}
/// Outcome of a stop.
#[must_use]
pub fn stopped(object: &str) -> String {
    format!("Stopped the job in {object}")
}
/// Outcome of a stop without confirmation.
#[must_use]
pub fn not_settled(object: &str) -> String {
    format!("Stopped the job in {object}; the remote service has not confirmed it")
}
/// Outcome of a removal.
#[must_use]
pub fn removed(object: &str) -> String {
    format!("Removed the job in {object}")
}
/// The row stayed.
#[must_use]
pub fn not_removed(object: &str) -> String {
    format!("The job in {object} is still listed")
}
/// Outcome of a resume.
#[must_use]
pub fn resumed(object: &str) -> String {
    format!("Resumed in {object} as a new job")
}
/// A remark about a dispatch.
#[must_use]
pub fn remark(project: &str) -> String {
    format!("About the background session in {project}")
}

/// Sections of the background page beside those of Home.
pub const WAITING: &str = "Waiting for you";
/// Nothing there.
pub const EMPTY: &str =
    "A background session works alone from a first prompt. You find the result here.";
/// Button.
#[must_use]
pub fn start_in(project: &str) -> String {
    format!("Start in {project}")
}

/// Link beside it.
pub const ELSEWHERE: &str = "Choose another project";
/// The job of the address is not there.
pub const GONE: &str =
    "There is no background session with this id. It may have been removed or resumed.";

/// External sessions.
pub mod external {
    /// Kind.
    pub const KIND: &str = "External session";
    /// Status.
    pub const WORD: &str = "External";
    /// What can be done with it.
    pub const OBSERVE: &str = "observe only";
    /// … when it can be taken over.
    pub const CAN_MANAGE: &str = "started elsewhere, can be managed here";
    /// Why there is no Manage.
    pub const NOT_ADOPTABLE: &str =
        "Interactive terminal session: it can be watched here, but not managed";
    /// Button.
    pub const MANAGE: &str = "Manage";
    /// Question before it.
    pub const QUESTION: &str = "? You can stop it here from then on. Its log stays where it was started, and a later Resume starts a new conversation.";
    /// Outcome.
    #[must_use]
    pub fn managed(project: &str) -> String {
        format!("{project} is managed here now")
    }
    /// View.
    pub const TITLE: &str = "External sessions";
    /// Nothing there.
    pub const EMPTY: &str = "Sessions of the agent that were started by hand on this machine appear here. There are none now.";
    /// Sessions of one project.
    #[must_use]
    pub fn sessions(n: usize) -> String {
        if n == 1 { "1 session".to_owned() } else { format!("{n} sessions") }
    }
    /// A session without a name.
    #[must_use]
    pub fn pid(pid: i32) -> String {
        format!("process {pid}")
    }
    /// Other processes work on the session of this one.
    #[must_use]
    pub fn same_session(pids: &[i32]) -> String {
        let mut named = "Processes".to_owned();
        for (at, pid) in pids.iter().enumerate() {
            named += match pids.len() - at {
                _ if at == 0 => " ",
                1 => " and ",
                _ => ", ",
            };
            named += &pid.to_string();
        }
        named + " work on the same session without knowing of each other. End one of them."
    }
    /// What a session waits for.
    #[must_use]
    pub fn waits(what: &str) -> String {
        format!("waits for {what}")
    }
}
