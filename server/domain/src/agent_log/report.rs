//! What the lines say about link and attached sessions (`agent-cli` §3.5).
//!
//! Seen in agent 2.1.197. Nothing here decides about the status of a bridge. Texts of conversations
//! are in some of these lines: only the words that the agent itself puts before them are read.

mod link;
mod sessions;

pub use link::{Link, Loss, SILENCE};
pub use sessions::{Activity, LoggedSession, Stage, Work};

use svc_shared::Timestamp;
use svc_shared::status::EvidenceSource;

use super::lines::LogPiece;
use super::marker::header;
use crate::redact::strip_ansi;
use sessions::Sessions;

/// Lines after a conversation text that may still belong to it.
const QUOTED_LINES: u32 = 256;

/// How far the clock of a file's last write may be behind the time of a line in it.
const CLOCK_SLACK_MILLIS: i64 = 2_000;

/// The sum of all lines so far. Begins empty with each generation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogReport {
    link: Link,
    sessions: Sessions,
    quoted: Option<Quoted>,
    version: u64,
}

/// A conversation text of which further lines may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quoted {
    at: Timestamp,
    lines_left: u32,
}

impl LogReport {
    /// Adds a line of the debug file.
    ///
    /// `written_by` is when the file was last written, if known: no line in it is later. A line
    /// that follows a conversation text counts only if its time lies between the two. So a text
    /// with line breaks cannot pass for a line of the agent, unless it names the moment in which it
    /// will be logged.
    pub fn debug_line(&mut self, piece: LogPiece<'_>, written_by: Option<Timestamp>) {
        if !piece.begins_line {
            return;
        }
        let quoted = self.quoted.take();
        self.quoted = quoted.and_then(Quoted::next);
        let Some((time, text)) = header(piece.text) else { return };
        let tagged = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if quoted.is_none() && tagged.is_none() {
            return;
        }
        let Ok(at) = time.parse::<Timestamp>() else { return };
        if quoted.is_some_and(|quoted| !quoted.may_be_followed_at(at, written_by)) {
            return;
        }
        self.quoted = None;
        let Some((tag, text)) = tagged else { return };
        let text = text.trim_start_matches(' ');
        let changed = match tag {
            "bridge:activity" | "bridge:perm" | "bridge:repl" => {
                self.quoted = Some(Quoted { at, lines_left: QUOTED_LINES });
                self.conversation_line(tag, text, at)
            }
            "bridge:session" | "bridge:ws" => {
                let changed = self.sessions.session_line(tag, text, at);
                if changed && tag == "bridge:session" {
                    self.link.has_room();
                }
                changed
            }
            _ if tag.starts_with("bridge:") => self.link.debug_line(tag, &strip_ansi(text), at),
            _ => false,
        };
        self.note(changed);
    }

    /// Adds a line of the captured output, which was written at `at` or before.
    pub fn output_line(&mut self, piece: LogPiece<'_>, at: Option<Timestamp>) {
        if piece.begins_line {
            let changed = self.link.output_line(&strip_ansi(piece.text), at);
            self.note(changed);
        }
    }

    /// The remote link.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// What the attached sessions do, taken together; `None` without one.
    #[must_use]
    pub fn activity(&self) -> Option<Activity> {
        self.sessions.activity()
    }

    /// The sessions that were attached, in the order of their identifiers.
    pub fn sessions(&self) -> impl Iterator<Item = &LoggedSession> {
        self.sessions.iter()
    }

    /// Counts the changes that a reader can see.
    /// A line that only repeats what is known changes nothing.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    fn note(&mut self, changed: bool) {
        self.version = self.version.wrapping_add(u64::from(changed));
    }

    fn conversation_line(&mut self, tag: &str, text: &str, at: Timestamp) -> bool {
        match tag {
            "bridge:activity" => self.sessions.activity_line(text, at),
            "bridge:perm" => self.sessions.permission_line(text, at),
            _ => self.link.flag_form_line(text, at),
        }
    }
}

impl Quoted {
    fn next(self) -> Option<Self> {
        let lines_left = self.lines_left.checked_sub(1)?;
        Some(Self { lines_left, ..self })
    }

    fn may_be_followed_at(self, at: Timestamp, written_by: Option<Timestamp>) -> bool {
        let is_late = |by: Timestamp| at.as_millis() > by.as_millis() + CLOCK_SLACK_MILLIS;
        at >= self.at && !written_by.is_some_and(is_late)
    }
}

/// The source of a value that a line of the debug file gave.
const DEBUG_FILE: EvidenceSource = EvidenceSource::DebugFile;

#[cfg(test)]
mod tests;
