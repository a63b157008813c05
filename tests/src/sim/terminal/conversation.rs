//! Which conversation a session goes on with, and its transcript.

use std::fs;
use std::time::SystemTime;

use super::args::{Args, Begin};
use crate::sim::calls::now_ms;
use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::ids::Draw;
use crate::sim::transcript::{Source, Transcript};

/// The conversation of a session.
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) transcript: Transcript,
    /// It had turns before this process, under the same id.
    pub(super) resumed: bool,
}

/// Finds, forks or begins the conversation that `args` ask for.
pub(super) fn open(double: &Double, args: &Args) -> Result<Conversation, Failure> {
    let source = match &args.begin {
        Begin::New => None,
        Begin::Latest => Some(
            latest(double).ok_or_else(|| Failure::agent("No conversation found to continue"))?,
        ),
        Begin::Named(id) => Some(named(double, id)?),
    };
    match source {
        Some(id) if !args.fork => {
            let transcript = Transcript::resume(double, &id, Source::Interactive);
            Ok(Conversation { transcript, id, resumed: true })
        }
        Some(original) => {
            let id = fresh(double);
            let original = Transcript::new(double, &original, Source::Interactive);
            Transcript::new(double, &id, Source::Interactive)
                .copy_from(&original)
                .map_err(|e| Failure::agent(format!("Error: cannot fork: {e}")))?;
            let transcript = Transcript::resume(double, &id, Source::Interactive);
            Ok(Conversation { transcript, id, resumed: false })
        }
        None => {
            let id = double.knobs.session_id.clone().unwrap_or_else(|| fresh(double));
            let transcript = Transcript::resume(double, &id, Source::Interactive);
            Ok(Conversation { transcript, id, resumed: false })
        }
    }
}

// With the time, because a pid comes back.
fn fresh(double: &Double) -> String {
    let own = format!("{} {}", std::process::id(), now_ms());
    Draw::new(double.knobs.seed, &["conversation", &own]).uuid()
}

fn named(double: &Double, id: &str) -> Result<String, Failure> {
    let file = double.home.project_dir(&double.cwd).join(format!("{id}.jsonl"));
    let is_name = id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if is_name && file.is_file() {
        return Ok(id.to_owned());
    }
    Err(Failure::agent(format!("No conversation found with session ID: {id}")))
}

/// The transcript that was written last, of whatever session of this directory.
fn latest(double: &Double) -> Option<String> {
    let entries = fs::read_dir(double.home.project_dir(&double.cwd)).ok()?;
    let written = |entry: fs::DirEntry| -> Option<(SystemTime, String)> {
        let path = entry.path();
        let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?.to_owned();
        Some((entry.metadata().ok()?.modified().ok()?, id))
    };
    entries.filter_map(|entry| written(entry.ok()?)).max().map(|(_, id)| id)
}
