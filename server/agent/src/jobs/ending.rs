//! The end of a job in the background service's log (agent 2.1.197, `daemon.log`).

use crate::regular_file::open_regular;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use svc_shared::ids::JobId;

/// Most bytes to read. During a stop, which takes seconds, less is written.
const CAP: u64 = 1024 * 1024;

/// A position in the log, from which later lines are read.
#[derive(Debug, Clone)]
pub struct Since {
    log: PathBuf,
    offset: u64,
}

impl Since {
    /// The current end of the log. Blocks briefly.
    #[must_use]
    pub fn now(log: &Path) -> Self {
        let offset = std::fs::metadata(log).map_or(0, |facts| facts.len());
        Self { log: log.to_owned(), offset }
    }

    /// The logged word for the end of the job: `done`, `killed`, `crashed`, ….
    /// Blocks for one small read.
    #[must_use]
    pub fn word(&self, id: &JobId) -> Option<String> {
        let mut file = open_regular(&self.log).ok()?;
        let length = file.metadata().ok()?.len();
        // A shorter log is a new one.
        let from = if length < self.offset { 0 } else { self.offset };
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(CAP).read_to_end(&mut bytes).ok()?;
        word(&String::from_utf8_lossy(&bytes), id)
    }
}

/// The last end counts: a job may have been started again.
fn word(text: &str, id: &JobId) -> Option<String> {
    let said = format!(" settled {id} (");
    text.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once(&said)?;
        Some(rest.split_once(')')?.0.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "[2026-01-01T00:00:00.000Z] [bg] bg settled 450f4654 (killed)\n";

    #[test]
    fn only_what_was_logged_since_counts() {
        let tree = tempfile::tempdir().unwrap();
        let log = tree.path().join("daemon.log");
        let id: JobId = "450f4654".parse().unwrap();
        assert_eq!(Since::now(&log).word(&id), None);
        std::fs::write(&log, OLD).unwrap();
        let since = Since::now(&log);
        assert_eq!(since.word(&id), None);
        let new = "[t] [bg] bg settled 0a1b2c3d (killed)\n[t] [bg] bg settled 450f4654 (done)\n";
        std::fs::write(&log, format!("{OLD}{new}[t] [bg] bg settled 4")).unwrap();
        assert_eq!(since.word(&id).as_deref(), Some("done"));
        std::fs::write(&log, "[t] [bg] bg settled 450f4654 (done)\n").unwrap();
        assert_eq!(since.word(&id).as_deref(), Some("done"), "a log that was begun anew");
    }
}
