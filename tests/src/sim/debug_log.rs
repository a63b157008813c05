//! The debug file: the agent's line shape, and the ways knobs disturb it.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::files;
use super::knobs::Knobs;
use super::values::Ansi;

/// Writes lines of the form `<ISO-8601 UTC ms>Z [LEVEL] text`.
/// The file is opened again for each flush, so a renamed or deleted file is created again (agent
/// 2.1.197).
#[derive(Debug, Clone)]
pub(crate) struct DebugLog {
    path: Option<PathBuf>,
    ansi: Ansi,
    split_utf8: bool,
}

/// Severity as written between the brackets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Debug,
    Warn,
    Error,
}

impl DebugLog {
    /// A log that writes nowhere if no file was asked for.
    pub(crate) fn new(path: Option<PathBuf>, knobs: &Knobs) -> Self {
        Self { path, ansi: knobs.ansi, split_utf8: knobs.split_utf8 }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(crate) fn debug(&self, text: &str) {
        self.line(Level::Debug, text);
    }

    pub(crate) fn line(&self, level: Level, text: &str) {
        self.raw(format!("{}{}\n", prefix(level), dress(text, self.ansi)).as_bytes());
    }

    /// Appends bytes as they are. A file that cannot be written is no reason to end.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        let Some(path) = &self.path else {
            return;
        };
        let (first, second) = match bytes.iter().position(|b| !b.is_ascii()) {
            // Cut behind the lead byte of the first long character.
            Some(at) if self.split_utf8 => bytes.split_at(at + 1),
            _ => (bytes, &[][..]),
        };
        let _ = files::append(path, first);
        if !second.is_empty() {
            let _ = files::append(path, second);
        }
    }
}

/// What every line starts with.
pub(crate) fn prefix(level: Level) -> String {
    let level = match level {
        Level::Debug => "DEBUG",
        Level::Warn => "WARN",
        Level::Error => "ERROR",
    };
    format!("{} [{level}] ", timestamp())
}

/// Now, in the agent's notation.
pub(crate) fn timestamp() -> String {
    let now = OffsetDateTime::now_utc();
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.millisecond()
    )
}

fn dress(text: &str, ansi: Ansi) -> String {
    let has_id = text.contains("env_") || text.contains("session_");
    match ansi {
        Ansi::None | Ansi::Unterminated => text.to_owned(),
        Ansi::Color => match text.split_once("] ") {
            Some((tag, rest)) => format!("{tag}] \x1b[36m{rest}\x1b[39m"),
            None => format!("\x1b[2m{text}\x1b[22m"),
        },
        Ansi::SplitIds if has_id => {
            let split =
                text.replace("env_", "env_\x1b[31m").replace("session_", "session_\x1b[31m");
            format!("{split}\x1b[39m")
        }
        Ansi::Osc if has_id => {
            let linked = text
                .replace("env_", "\x1b]8;;https://claude.ai/code\x1b\\env_")
                .replace("session_", "\x1b]8;;https://claude.ai/code\x07session_");
            format!("{linked}\x1b]8;;\x1b\\\x1b]0;claude\x07")
        }
        Ansi::SplitIds | Ansi::Osc => text.to_owned(),
    }
}
