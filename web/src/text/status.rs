//! Words for states, kinds and modes.
//!
//! Lists, dialogs and messages use the same words.

/// Launched, not yet seen ready.
pub const STARTING: &str = "Starting";
/// Ready.
pub const RUNNING: &str = "Running";
/// Ready, and a session inside is at work.
pub const RUNNING_WORKING: &str = "Running · working";
/// The agent waits for a permission or an answer.
pub const WAITING: &str = "Waiting for you";
/// A stop is under way.
pub const STOPPING: &str = "Stopping";
/// Ended as meant.
pub const STOPPED: &str = "Stopped";
/// Ended without being asked, without having failed.
pub const INTERRUPTED: &str = "Interrupted";
/// Ended unexpectedly after it was ready.
pub const CRASHED: &str = "Crashed";
/// Never became ready.
pub const FAILED: &str = "Failed to start";
/// Alive without its daemon.
pub const ORPHANED: &str = "Orphaned";
/// The process is in doubt.
pub const HELD: &str = "Held";
/// The restart policy gave up.
pub const QUARANTINED: &str = "Quarantined";
/// A restart is scheduled.
pub const RESTARTING: &str = "Restarting";

/// Kind of a bridge, by its resume mode and channel as they stand on the wire.
#[must_use]
pub fn kind(channel: &str, resume_mode: &str) -> String {
    match (channel, resume_mode) {
        ("hosted", _) => "Direct Session".to_owned(),
        (_, "standard") => "Server Mode".to_owned(),
        (_, "pty") => "Interactive Session".to_owned(),
        (_, other) => other.to_owned(),
    }
}

/// Where sessions work.
#[must_use]
pub fn spawn_mode<'a>(resume_mode: &str, word: &'a str) -> &'a str {
    match word {
        "worktree" if resume_mode == "pty" => "Own worktree",
        "same-dir" => "Project folder",
        "worktree" => "Own worktree per session",
        "session" => "One session, then it ends",
        other => other,
    }
}

/// Where sessions work, behind the kind in a sentence.
#[must_use]
pub fn spawn_mode_where(resume_mode: &str, word: &str) -> String {
    match word {
        "same-dir" => "in the project folder".to_owned(),
        "worktree" if resume_mode == "pty" => "in a worktree of its own".to_owned(),
        "worktree" => "in a worktree per session".to_owned(),
        "session" => "for one session".to_owned(),
        other => format!("({other})"),
    }
}

/// What a choice of where sessions work means.
#[must_use]
pub fn spawn_mode_effect(resume_mode: &str, word: &str) -> &'static str {
    match word {
        "same-dir" if resume_mode == "pty" => {
            "The session works on the files of the project itself."
        }
        "worktree" if resume_mode == "pty" => {
            "A checkout and a branch of its own, so that no other session edits the same files."
        }
        "same-dir" => "Sessions work on the files of the project itself.",
        "worktree" => "Each session gets its own checkout, so two do not edit the same files.",
        "session" => "The bridge serves a single session and stops when that one ends.",
        _ => "",
    }
}

/// Chip of a spawn mode other than the usual one.
#[must_use]
pub fn spawn_mode_chip<'a>(resume_mode: &str, word: &'a str) -> Option<&'a str> {
    match word {
        "same-dir" => None,
        "worktree" if resume_mode == "pty" => Some("worktree"),
        "worktree" => Some("worktrees"),
        "session" => Some("single session"),
        other => Some(other),
    }
}

/// Words of the project list about what runs there.
pub mod rollup {
    /// Background sessions that wait for a person.
    #[must_use]
    pub fn blocked(n: usize) -> String {
        format!("{n} blocked")
    }
    /// Bridges that are starting.
    #[must_use]
    pub fn starting(n: usize) -> String {
        format!("{n} starting")
    }
    /// Bridges that run.
    #[must_use]
    pub fn running(n: usize) -> String {
        format!("{n} running")
    }
    /// Bridges that are stopping.
    #[must_use]
    pub fn stopping(n: usize) -> String {
        format!("{n} stopping")
    }
    /// Bridges that crashed.
    #[must_use]
    pub fn crashed(n: usize) -> String {
        format!("{n} crashed")
    }
    /// Bridges that never became ready.
    #[must_use]
    pub fn failed(n: usize) -> String {
        format!("{n} failed")
    }
    /// Bridges that are held.
    #[must_use]
    pub fn held(n: usize) -> String {
        format!("{n} held")
    }
    /// Nothing runs.
    pub const NONE: &str = "none live";
}
