//! Sentences about conversations.

/// Tab and heading.
pub const TITLE: &str = "Conversations";
/// Tab and heading of one.
pub const ONE: &str = "Conversation";
/// A turn of the person.
pub const YOU: &str = "You";
/// A turn of the agent.
pub const AGENT: &str = "Agent";
/// A turn of neither.
pub const SYSTEM: &str = "System";
/// A part.
pub const THOUGHT: &str = "Thought";
/// A call of a tool without a name.
pub const TOOL: &str = "Tool";
/// What a tool answered.
pub const RESULT: &str = "Result";
/// What a tool answered.
pub const FAILED: &str = "Failed";
/// A part that cannot be shown.
pub const OTHER: &str = "Not shown";
/// Badge.
pub const LIVE: &str = "Live";
/// Badge.
pub const SUBAGENT: &str = "Subagent";
/// Switch of the list.
pub const SHOW_SUBAGENTS: &str = "Show subagents";
/// A conversation without a prompt.
pub const NO_PROMPT: &str = "Without a first message";
/// An empty list.
pub const EMPTY: &str = "Conversations appear here after the first session.";
/// A session whose conversation is not known.
pub const NONE_OF_SESSION: &str =
    "No conversation is known for this session. It appears after the first message.";
/// Link.
pub const ALL: &str = "All conversations of the project";
/// Button.
pub const FORK: &str = "Fork into new session";
/// What the button does.
pub const FORK_HELP: &str =
    "Starts an Interactive Session with a copy. The original is not changed.";
/// After the button.
pub const FORKED: &str = "The session is starting with a copy of this conversation";
/// Link.
pub const OPEN_SESSION: &str = "Open session";
/// Field.
pub const FIND: &str = "Find in this conversation";
/// Button.
pub const CLOSE_FIND: &str = "Close the search";
/// Button.
pub const MORE_HITS: &str = "Search further";
/// Nothing found.
pub const NO_HITS: &str = "Nothing found in this conversation.";
/// Link of a hit.
pub const SHOW_HERE: &str = "Show in conversation";
/// Button.
pub const OLDER: &str = "Load older turns";
/// Button.
pub const NEWER: &str = "Load newer turns";
/// While reading.
pub const READING: &str = "Reading";
/// Switch.
pub const FOLLOW: &str = "Follow";
/// Link of a turn, by its time.
#[must_use]
pub fn link(clock: &str) -> String {
    format!("{clock}, link to this turn")
}
/// Button in a long text.
pub const SHOW_MORE: &str = "Show more";
/// Mark of a text that the service has cut.
pub const CUT: &str = "Only the first 64 KiB of this text are shown.";
/// The file is gone.
pub const GONE: &str = "This conversation no longer exists. The agent may have removed its file.";
/// The file was replaced.
pub const REPLACED: &str =
    "The file of this conversation was replaced. The page shows the new one.";
/// The socket is lost.
pub const LOST: &str = "New turns are not shown while the connection is lost.";

/// How many turns.
#[must_use]
pub fn turns(n: u64) -> String {
    if n == 1 { "1 turn".to_owned() } else { format!("{n} turns") }
}

/// How many of them are shown.
#[must_use]
pub fn part(shown: usize, of: u64) -> String {
    format!("{shown} of {} shown", turns(of))
}

/// Button at the end.
#[must_use]
pub fn fresh(n: usize) -> String {
    if n == 1 { "1 new turn".to_owned() } else { format!("{n} new turns") }
}

/// Result of a search.
#[must_use]
pub fn hits(n: usize, is_all: bool) -> String {
    match (n, is_all) {
        (1, true) => "1 turn".to_owned(),
        (n, true) => format!("{n} turns"),
        (n, false) => format!("{n} turns so far"),
    }
}

/// A worktree.
#[must_use]
pub fn worktree(name: &str) -> String {
    format!("worktree {name}")
}

/// Lines that could not be read.
#[must_use]
pub fn skipped(n: u64) -> String {
    match n {
        1 => "1 line of the file could not be read".to_owned(),
        n => format!("{n} lines of the file could not be read"),
    }
}

/// Files that are still being read.
#[must_use]
pub fn pending(n: u64) -> String {
    match n {
        1 => "1 file is still being read".to_owned(),
        n => format!("{n} files are still being read"),
    }
}

/// More turns of a conversation, title.
pub const NOT_READ: &str = "More of the conversation could not be read";
