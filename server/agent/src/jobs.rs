//! Background jobs on the agent's disk: one directory per job (agent 2.1.197).
//!
//! The files are the agent's. They are read tolerantly, each only after a change, and never
//! written. In one case a whole directory is removed.

pub mod answer;
pub mod ending;
pub mod roster;

use crate::plain_path::plain_directory;
use crate::regular_file::open_regular;
use crate::stamp::Stamp;
use rustix::process::geteuid;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::ids::JobId;

/// Largest state file. It contains the prompt and the final text.
const SIZE_CAP: u64 = 4 * 1024 * 1024;

/// Longest text of a short field, in bytes.
const FIELD_CAP: usize = 64 * 1024;

/// One job, as the agent describes it.
/// Fields whose values a newer agent may extend are texts.
#[derive(Clone, PartialEq, Eq)]
pub struct JobFile {
    /// Its directory.
    pub id: JobId,
    /// `working`, `blocked`, `done`, `failed`, `stopped`, or a word of a newer agent.
    pub state: String,
    /// Progress line.
    pub detail: String,
    /// `active`, `blocked`, `idle`, ….
    pub tempo: String,
    /// What it waits for.
    pub needs: Option<String>,
    /// Final text.
    pub result: Option<String>,
    /// What it was asked to do.
    pub intent: String,
    /// Its title.
    pub name: Option<String>,
    /// The agent's own id of its session. A credential: never shown.
    pub session_id: Option<String>,
    /// Working directory.
    pub cwd: Option<PathBuf>,
    /// It is connected to the remote service.
    pub is_registered: bool,
    /// Flags with which the agent starts it again.
    pub flags: Vec<String>,
    /// Release of the agent, or empty.
    pub cli_version: String,
    /// As written, or empty.
    pub created_at: String,
    /// As written, or empty.
    pub updated_at: String,
    /// When the file was last written.
    pub written_at: Timestamp,
}

/// Leaves out prompt and session.
impl std::fmt::Debug for JobFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobFile")
            .field("id", &self.id)
            .field("state", &self.state)
            .field("tempo", &self.tempo)
            .finish_non_exhaustive()
    }
}

/// The content of the directory of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Readable jobs, by id.
    pub jobs: Vec<Arc<JobFile>>,
    /// Directories of jobs whose state could not be read.
    pub unreadable: Vec<JobId>,
}

/// Reads the jobs. Each later read opens only files that changed.
#[derive(Debug, Default)]
pub struct Jobs {
    known: HashMap<JobId, (Stamp, Option<Arc<JobFile>>)>,
}

/// The file with the state of a job.
#[must_use]
pub fn state_file(jobs_dir: &Path, id: &JobId) -> PathBuf {
    jobs_dir.join(id.as_str()).join("state.json")
}

/// Whether a job has a directory. A link does not count.
#[must_use]
pub fn exists(jobs_dir: &Path, id: &JobId) -> bool {
    fs::symlink_metadata(jobs_dir.join(id.as_str())).is_ok_and(|facts| facts.is_dir())
}

/// Removes the directory of a job. Links in it are not followed.
/// A missing directory is fine.
///
/// # Errors
/// It exists and cannot be removed, or is no directory.
pub fn remove(jobs_dir: &Path, id: &JobId) -> io::Result<()> {
    let dir = jobs_dir.join(id.as_str());
    match fs::symlink_metadata(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(facts) if !facts.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => fs::remove_dir_all(&dir),
    }
}

impl Jobs {
    /// Reads all jobs. A missing directory has none. Blocks.
    ///
    /// # Errors
    /// The directory cannot be listed: nothing is known about jobs.
    pub fn read(&mut self, jobs_dir: &Path) -> io::Result<Reading> {
        let listed = match fs::read_dir(jobs_dir) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.known.clear();
                return Ok(Reading::default());
            }
            Err(error) => return Err(error),
        };
        let mut before = std::mem::take(&mut self.known);
        let mut reading = Reading::default();
        for entry in listed {
            let entry = entry?;
            // Other names are no jobs, such as `pins.json`.
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = state_file(jobs_dir, &id);
            let Ok(facts) = fs::symlink_metadata(&path) else {
                // The directory exists before its first state and is removed after it.
                reading.unreadable.push(id);
                continue;
            };
            let stamp = Stamp::of(&facts);
            let job = match before.remove(&id) {
                // A torn file is read again: its rest may arrive without a new modification time.
                Some((of, Some(job))) if of == stamp => Some(job),
                Some(_) | None => read_job(&path, &id, &facts).map(Arc::new),
            };
            match &job {
                Some(job) => reading.jobs.push(Arc::clone(job)),
                None => reading.unreadable.push(id.clone()),
            }
            self.known.insert(id, (stamp, job));
        }
        reading.jobs.sort_by(|a, b| a.id.cmp(&b.id));
        reading.unreadable.sort();
        Ok(reading)
    }
}

fn read_job(path: &Path, id: &JobId, facts: &fs::Metadata) -> Option<JobFile> {
    // A file of another user proves nothing about our processes.
    if facts.uid() != geteuid().as_raw() || !facts.is_file() || facts.len() > SIZE_CAP {
        return None;
    }
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(SIZE_CAP).read_to_end(&mut bytes).ok()?;
    let written_at = Timestamp::from_millis(
        facts.mtime().saturating_mul(1000).saturating_add(facts.mtime_nsec() / 1_000_000),
    );
    parse(&bytes, id, written_at)
}

/// Reads one `state.json`; `None` when it is no JSON object.
fn parse(bytes: &[u8], id: &JobId, written_at: Timestamp) -> Option<JobFile> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let fields = document.as_object()?;
    let word = |key: &str| text(fields, key, FIELD_CAP).unwrap_or_default();
    let flags: Vec<String> = fields
        .get("respawnFlags")
        .and_then(Value::as_array)
        .map(|flags| flags.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    Some(JobFile {
        id: id.clone(),
        state: word("state"),
        detail: word("detail"),
        tempo: word("tempo"),
        needs: text(fields, "needs", FIELD_CAP),
        result: fields.get("output").and_then(result),
        intent: text(fields, "intent", usize::MAX).unwrap_or_default(),
        name: text(fields, "name", FIELD_CAP),
        session_id: text(fields, "sessionId", FIELD_CAP),
        cwd: text(fields, "cwd", FIELD_CAP).and_then(|cwd| plain_directory(&cwd)),
        is_registered: text(fields, "bridgeSessionId", FIELD_CAP).is_some(),
        flags,
        cli_version: word("cliVersion"),
        created_at: word("createdAt"),
        updated_at: word("updatedAt"),
        written_at,
    })
}

fn result(output: &Value) -> Option<String> {
    let result = output.as_object()?.get("result")?.as_str()?;
    (!result.is_empty()).then(|| result.to_owned())
}

/// A non-empty text field, cut at a character near the limit.
fn text(fields: &Map<String, Value>, key: &str, cap: usize) -> Option<String> {
    let text = fields.get(key)?.as_str()?;
    let end = (0..=cap.min(text.len())).rev().find(|at| text.is_char_boundary(*at))?;
    text.get(..end).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const SESSION: &str = "450f4654-059b-4282-b68e-91a110e7f06b";

    fn id(raw: &str) -> JobId {
        raw.parse().unwrap()
    }

    fn state(word: &str) -> String {
        format!(
            r#"{{"state":"{word}","detail":"d","tempo":"active","output":null,"intent":"say hi",
            "sessionId":"{SESSION}","cwd":"/p","createdAt":"2026-01-01T00:00:00.000Z",
            "respawnFlags":["--model","sonnet",5],"future":{{"x":[1]}}}}"#
        )
    }

    fn put(dir: &Path, id: &str, text: &str) {
        fs::create_dir_all(dir.join(id)).unwrap();
        fs::write(dir.join(id).join("state.json"), text).unwrap();
    }

    fn states(reading: &Reading) -> Vec<(&str, &str)> {
        reading.jobs.iter().map(|job| (job.id.as_str(), job.state.as_str())).collect()
    }

    #[test]
    fn jobs_come_change_and_go_with_their_directories() {
        let tree = tempfile::tempdir().unwrap();
        let dir = tree.path().join("jobs");
        let mut jobs = Jobs::default();
        assert_eq!(jobs.read(&dir).unwrap(), Reading::default());
        put(&dir, "450f4654", &state("working"));
        put(&dir, "0a1b2c3d", &state("blocked"));
        let reading = jobs.read(&dir).unwrap();
        assert_eq!(states(&reading), [("0a1b2c3d", "blocked"), ("450f4654", "working")]);
        let job = &reading.jobs[1];
        assert_eq!((job.intent.as_str(), job.cwd.as_deref()), ("say hi", Some(Path::new("/p"))));
        assert_eq!(job.flags, ["--model", "sonnet"]);
        assert!(!job.is_registered && job.result.is_none() && job.needs.is_none());
        assert!(!format!("{job:?}").contains("say hi") && !format!("{job:?}").contains(SESSION));

        let done = r#"{"state":"done","output":{"result":"all good"},"needs":"",
            "bridgeSessionId":"cse_x"}"#;
        put(&dir, "450f4654", done);
        fs::remove_dir_all(dir.join("0a1b2c3d")).unwrap();
        let reading = jobs.read(&dir).unwrap();
        assert_eq!(states(&reading), [("450f4654", "done")]);
        let job = &reading.jobs[0];
        assert_eq!(job.result.as_deref(), Some("all good"));
        assert!(job.is_registered && job.needs.is_none() && job.cwd.is_none());
    }

    #[test]
    fn f73_a_job_that_cannot_be_read_costs_the_list_nothing() {
        let tree = tempfile::tempdir().unwrap();
        let dir = tree.path();
        put(dir, "00000001", &state("paused"));
        put(dir, "00000002", &state("working")[..40]);
        put(dir, "00000003", "[]");
        put(dir, "00000004", &"[".repeat(5000));
        put(dir, "00000005", &" ".repeat(5 * 1024 * 1024));
        fs::create_dir_all(dir.join("00000006")).unwrap();
        fs::create_dir_all(dir.join("00000007/state.json")).unwrap();
        put(dir, "NOTHEX00", &state("working"));
        fs::write(dir.join("pins.json"), "{}").unwrap();
        fs::write(dir.join("0000000a"), state("working")).unwrap();
        symlink(dir.join("00000001"), dir.join("0000000b")).unwrap();
        let reading = Jobs::default().read(dir).unwrap();
        assert_eq!(states(&reading), [("00000001", "paused")], "an unknown word is shown");
        assert_eq!(reading.unreadable.len(), 6);
    }

    #[test]
    fn a_torn_state_is_read_once_it_is_whole() {
        let tree = tempfile::tempdir().unwrap();
        let mut jobs = Jobs::default();
        put(tree.path(), "00000001", "{\"state\":\"wor");
        assert_eq!(jobs.read(tree.path()).unwrap().unreadable, [id("00000001")]);
        put(tree.path(), "00000001", &state("working"));
        assert_eq!(states(&jobs.read(tree.path()).unwrap()), [("00000001", "working")]);
    }

    #[test]
    fn h42_only_the_directory_itself_is_removed() {
        let tree = tempfile::tempdir().unwrap();
        let (dir, precious) = (tree.path().join("jobs"), tree.path().join("precious"));
        fs::create_dir_all(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        put(&dir, "00000001", &state("done"));
        symlink(&precious, dir.join("00000001/link")).unwrap();
        symlink(&precious, dir.join("00000002")).unwrap();
        assert!(exists(&dir, &id("00000001")) && !exists(&dir, &id("00000002")));
        remove(&dir, &id("00000001")).unwrap();
        remove(&dir, &id("00000001")).unwrap();
        assert!(remove(&dir, &id("00000002")).is_err());
        assert!(precious.join("file").exists() && !dir.join("00000001").exists());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(0_u8.., 0..400)) {
            let _ = parse(&bytes, &id("00000001"), Timestamp::from_millis(0));
        }
    }
}
