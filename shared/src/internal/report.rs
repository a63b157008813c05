//! The report of why a session stopped.

use crate::status::ExitReason;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// Why a session stopped, what proves it, and what to do next. Redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// Id of the session or of the background job.
    pub id: String,
    /// `server-mode`, `interactive`, `direct` or `job`.
    pub kind: String,
    /// Its project; null for a job outside of the projects.
    pub project: Option<String>,
    /// Its name, else the name of the project.
    pub label: String,
    /// Which start ended; 1 for jobs.
    pub generation: u32,
    /// The status it ended with.
    pub status: String,
    /// When the generation began.
    pub started_at: Option<Timestamp>,
    /// When its end was recorded.
    pub ended_at: Option<Timestamp>,
    /// The word of the cause; null where only the agent knows it.
    pub reason: Option<Word<ExitReason>>,
    /// The cause, as a sentence.
    pub cause: String,
    /// What the cause is known from, a sentence each.
    pub evidence: Vec<String>,
    /// What to do next, the most useful first.
    pub next: Vec<NextStep>,
    /// Exit code, when it is known.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub exit_signal: Option<i32>,
    /// The kernel killed it because memory ran out.
    pub out_of_memory: bool,
    /// The kill signal was needed for a stop.
    pub forced: bool,
    /// Who asked for the stop; null when nobody did.
    pub asked: Option<Asked>,
    /// The last sample before the end; null when it was never measured.
    pub last_use: Option<LastUse>,
    /// The last screen, output or log lines.
    pub output: Vec<LastOutput>,
    /// What happened, the oldest first.
    pub timeline: Vec<ReportEvent>,
    /// The whole report as Markdown.
    pub markdown: String,
}

/// Something that can be done about an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// What to do.
    pub says: String,
    /// A command that does it; null when none does.
    pub command: Option<String>,
}

/// A request for a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Who asked, as the audit log names them; `svc` for the service itself.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What a session used before its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastUse {
    /// When it was measured last.
    pub at: Timestamp,
    /// Processor time in percent of one core.
    pub cpu_percent: f64,
    /// Resident memory of all its processes.
    pub rss_bytes: u64,
    /// Processes that were alive.
    pub processes: u32,
    /// The most resident memory that was measured.
    pub peak_rss_bytes: u64,
    /// When that was.
    pub peak_at: Timestamp,
}

/// Last lines of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOutput {
    /// `screen`, `output`, `log` or `result`.
    pub source: String,
    /// The lines, oldest first.
    pub lines: Vec<String>,
}

/// One event of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportEvent {
    /// When.
    pub at: Timestamp,
    /// What happened, as a word.
    ///
    /// Those of the history, and `stop_asked`, `asked`, `answered`, `restart_due`.
    pub kind: String,
    /// What happened, for a person.
    pub says: String,
}
