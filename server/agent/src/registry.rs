//! The agent's registry of live sessions: one file per process (agent 2.1.197).
//!
//! It lists sessions. Whether their processes live is checked with the kernel, by pid and start.

use crate::plain_path::plain_directory;
use crate::regular_file::open_regular;
use crate::session_list::text;
use crate::stamp::Stamp;
use rustix::process::geteuid;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use svc_domain::identity::Pid;
use svc_shared::Timestamp;

/// Largest entry. Real ones have some hundred bytes.
const SIZE_CAP: u64 = 64 * 1024;

/// The version of the entries that is supported here.
const PROTOCOL: i64 = 1;

/// One session, as its process describes it.
/// Fields whose values a newer agent may extend are texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The process.
    pub pid: Pid,
    /// Start of the process in clock ticks since boot.
    /// An entry whose process started at another time is left over from an earlier one.
    pub start_ticks: u64,
    /// The agent's own id of the session. A credential: never shown.
    pub session_id: String,
    /// Working directory.
    pub cwd: PathBuf,
    /// When it was started.
    pub started_at: Timestamp,
    /// `interactive`, `background` (written `bg`), or another word; empty when missing.
    pub kind: String,
    /// How it was started: `cli`, `sdk-cli`, ….
    pub entrypoint: Option<String>,
    /// Version of the agent.
    pub version: Option<String>,
    /// Its title.
    pub name: Option<String>,
    /// Id of the background job, if it is one.
    pub job_id: Option<String>,
    /// `busy`, `shell`, `idle`, `waiting`, ….
    pub status: Option<String>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// Since when it has this status; an older agent tells only its start.
    pub status_since: Timestamp,
}

/// Leaves out session and title.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("pid", &self.pid)
            .field("start_ticks", &self.start_ticks)
            .field("kind", &self.kind)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// Whether this is a background job and not a session that a person works in.
    #[must_use]
    pub fn is_background(&self) -> bool {
        !matches!(self.kind.as_str(), "interactive" | "")
    }

    /// What the session does, in the words of the session lists.
    /// `working`, `blocked`, or empty when it is idle or does not say.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.status.as_deref() {
            Some("busy" | "shell") => "working",
            Some("waiting") => "blocked",
            Some(_) | None => "",
        }
    }
}

/// The content of the directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Usable entries, by pid.
    pub entries: Vec<Entry>,
    /// Files that look like entries and are not usable.
    /// They are torn, of another user, or in the format of a newer agent. Then the caller should ask
    /// the agent itself.
    pub unusable: usize,
}

/// Reads the registry. Each later read opens only files that changed.
#[derive(Debug)]
pub struct Registry {
    dir: PathBuf,
    known: HashMap<i64, (Stamp, Option<Entry>)>,
}

/// Reads a registry once. A missing directory is an empty registry. Blocks.
#[must_use]
pub fn read(dir: &Path) -> Vec<Entry> {
    match Registry::new(dir.to_owned()).read() {
        Ok(reading) => reading.entries,
        Err(error) => {
            tracing::debug!(
                path = %dir.display(), error = %error,
                "the agent's registry of sessions cannot be read"
            );
            Vec::new()
        }
    }
}

/// The entry of one process, if there is a usable one. Blocks for one small file.
#[must_use]
pub fn entry_of(dir: &Path, pid: Pid) -> Option<Entry> {
    let path = entry_file(dir, pid);
    let facts = fs::symlink_metadata(&path).ok()?;
    read_entry(&path, i64::from(pid.get()), &facts)
}

/// The file of the entry of one process.
#[must_use]
pub fn entry_file(dir: &Path, pid: Pid) -> PathBuf {
    dir.join(format!("{}.json", pid.get()))
}

impl Registry {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, known: HashMap::new() }
    }

    /// Reads the registry. A missing directory is an empty registry. Blocks.
    ///
    /// # Errors
    /// The directory cannot be listed: nothing is known about sessions.
    pub fn read(&mut self) -> io::Result<Reading> {
        let listed = match fs::read_dir(&self.dir) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.known.clear();
                return Ok(Reading::default());
            }
            Err(error) => return Err(error),
        };
        let mut before = std::mem::take(&mut self.known);
        for entry in listed {
            let entry = entry?;
            let Some(number) = number(&entry.file_name()) else { continue };
            // A file that vanishes meanwhile belonged to a process that ended.
            let Ok(facts) = entry.metadata() else { continue };
            let stamp = Stamp::of(&facts);
            let known = match before.remove(&number) {
                // A torn file is read again: its rest may arrive without a new modification time.
                Some((of, Some(entry))) if of == stamp => Some(entry),
                Some(_) | None => read_entry(&entry.path(), number, &facts),
            };
            self.known.insert(number, (stamp, known));
        }
        let mut entries: Vec<Entry> =
            self.known.values().filter_map(|(_, entry)| entry.clone()).collect();
        entries.sort_by_key(|entry| entry.pid);
        Ok(Reading { unusable: self.known.len() - entries.len(), entries })
    }
}

/// The pid in the name of an entry's file.
fn number(name: &std::ffi::OsStr) -> Option<i64> {
    let digits = name.to_str()?.strip_suffix(".json")?;
    let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

fn read_entry(path: &Path, number: i64, facts: &fs::Metadata) -> Option<Entry> {
    // A file of another user proves nothing about our processes.
    if facts.uid() != geteuid().as_raw() || !facts.is_file() || facts.len() > SIZE_CAP {
        return None;
    }
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(SIZE_CAP).read_to_end(&mut bytes).ok()?;
    let entry = parse(&bytes)?;
    (i64::from(entry.pid.get()) == number).then_some(entry)
}

fn parse(bytes: &[u8]) -> Option<Entry> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let fields = document.as_object()?;
    // An entry of a newer version may mean something else by the same fields.
    if fields.get("peerProtocol").is_some_and(|protocol| protocol.as_i64() != Some(PROTOCOL)) {
        return None;
    }
    let started_at = Timestamp::from_millis(fields.get("startedAt")?.as_i64()?);
    let time = |name: &str| Some(Timestamp::from_millis(fields.get(name)?.as_i64()?));
    Some(Entry {
        pid: Pid::new(fields.get("pid")?.as_i64()?)?,
        start_ticks: fields.get("procStart")?.as_str()?.parse().ok()?,
        session_id: text(fields, "sessionId")?,
        cwd: plain_directory(&text(fields, "cwd")?)?,
        started_at,
        kind: match text(fields, "kind") {
            Some(kind) if kind == "bg" => "background".to_owned(),
            kind => kind.unwrap_or_default(),
        },
        entrypoint: text(fields, "entrypoint"),
        version: text(fields, "version"),
        name: text(fields, "name"),
        job_id: text(fields, "jobId"),
        status: text(fields, "status"),
        waiting_for: text(fields, "waitingFor"),
        status_since: time("statusUpdatedAt").or_else(|| time("updatedAt")).unwrap_or(started_at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    fn entry(pid: i64, status: &str) -> String {
        format!(
            r#"{{"pid":{pid},"sessionId":"u-{pid}","cwd":"/p","startedAt":1764000000000,
            "procStart":"77010","version":"2.1.197","peerProtocol":1,"kind":"interactive",
            "entrypoint":"cli","name":"n","status":"{status}","updatedAt":5}}"#
        )
    }

    fn put(dir: &Path, pid: i64, text: &str) {
        fs::write(dir.join(format!("{pid}.json")), text).unwrap();
    }

    fn pids(reading: &Reading) -> Vec<i32> {
        reading.entries.iter().map(|entry| entry.pid.get()).collect()
    }

    #[test]
    fn sessions_come_change_and_go_with_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = Registry::new(dir.path().join("sessions"));
        assert_eq!(registry.read().unwrap(), Reading::default());
        let dir = dir.path().join("sessions");
        fs::create_dir(&dir).unwrap();
        put(&dir, 4242, &entry(4242, "busy"));
        put(&dir, 77, &entry(77, "idle"));
        let reading = registry.read().unwrap();
        assert_eq!(pids(&reading), [77, 4242]);
        let one = &reading.entries[1];
        assert_eq!((one.start_ticks, one.state(), one.is_background()), (77_010, "working", false));
        assert_eq!(one.version.as_deref(), Some("2.1.197"));
        assert!(!format!("{one:?}").contains("u-4242"));

        put(&dir, 4242, &entry(4242, "waiting"));
        fs::remove_file(dir.join("77.json")).unwrap();
        let reading = registry.read().unwrap();
        assert_eq!(pids(&reading), [4242]);
        assert_eq!(reading.entries[0].state(), "blocked");
        assert_eq!(read(&dir), reading.entries);
    }

    /// F54, F7, F87.
    #[test]
    fn f54_files_that_cannot_be_believed_are_left_out_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), 10, &entry(10, "busy"));
        put(dir.path(), 11, &entry(11, "busy")[..60]);
        put(dir.path(), 12, &entry(13, "busy"));
        put(dir.path(), 14, &entry(14, "busy").replace("\"peerProtocol\":1", "\"peerProtocol\":2"));
        put(dir.path(), 15, &entry(15, "busy").replace("\"77010\"", "77010"));
        put(dir.path(), 1, &entry(1, "busy"));
        put(dir.path(), 16, &"[".repeat(5000));
        put(dir.path(), 17, &" ".repeat(70_000));
        symlink(dir.path().join("10.json"), dir.path().join("18.json")).unwrap();
        fs::create_dir(dir.path().join("19.json")).unwrap();
        for other in ["x.json", "20.json.tmp", "-5.json", ".json"] {
            fs::write(dir.path().join(other), entry(20, "busy")).unwrap();
        }
        let reading = Registry::new(dir.path().to_owned()).read().unwrap();
        assert_eq!(pids(&reading), [10]);
        assert_eq!(reading.unusable, 9);
    }

    #[test]
    fn f54_a_torn_file_is_read_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = Registry::new(dir.path().to_owned());
        put(dir.path(), 10, "{");
        assert_eq!(registry.read().unwrap().unusable, 1);
        put(dir.path(), 10, &entry(10, "busy"));
        assert_eq!(pids(&registry.read().unwrap()), [10]);
    }

    #[test]
    fn f87_entries_of_older_and_newer_agents_are_read_as_far_as_they_go() {
        let with = |from: &str, to: &str| parse(entry(10, "busy").replace(from, to).as_bytes());
        assert!(with("\"peerProtocol\":1,", "").is_some());
        let states = [("shell", "working"), ("waiting", "blocked"), ("idle", ""), ("dreaming", "")];
        for (status, state) in states {
            let found = with("\"busy\"", &format!("\"{status}\"")).unwrap();
            assert_eq!((found.state(), found.status.as_deref()), (state, Some(status)));
        }
        assert_eq!(with("\"status\"", "\"other\"").unwrap().state(), "");
        let job = with("\"interactive\"", "\"bg\"").unwrap();
        assert_eq!((job.kind.as_str(), job.is_background()), ("background", true));
        assert!(!with("\"kind\":\"interactive\",", "").unwrap().is_background());
        assert!(with("\"cwd\"", "\"other\"").is_none());
        // A path that climbs belongs to another directory than its beginning says.
        for odd in ["/p/../etc", "/p/..", "p", "", "../p", "./p", "/p/a/../../../etc", "~"] {
            assert!(with("\"/p\"", &format!("\"{odd}\"")).is_none(), "{odd}");
        }
        assert!(with("\"/p\"", "\"/p/..a/b..\"").is_some());
    }

    /// F54: ten thousand files of dead processes. The time is printed, not judged.
    #[test]
    fn f54_ten_thousand_leftovers_are_read_once_each() {
        let dir = tempfile::tempdir().unwrap();
        for pid in 10..10_010 {
            put(dir.path(), pid, &entry(pid, "idle"));
        }
        let mut registry = Registry::new(dir.path().to_owned());
        let began = std::time::Instant::now();
        assert_eq!(registry.read().unwrap().entries.len(), 10_000);
        let first = began.elapsed();
        // Known files are not opened again, even if their content is gone.
        let began = std::time::Instant::now();
        assert_eq!(registry.read().unwrap().entries.len(), 10_000);
        println!("10,000 entries: first {first:?}, again {:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn f54_an_entry_with_broken_bytes_names_no_dangerous_process(
            at in any::<prop::sample::Index>(),
            cut in 0_usize..6,
            put in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut bytes = entry(4242, "busy").into_bytes();
            let from = at.index(bytes.len());
            let to = (from + cut).min(bytes.len());
            bytes.splice(from..to, put);
            if let Some(found) = parse(&bytes) {
                prop_assert!(found.pid.get() > 1);
                prop_assert!(!found.session_id.is_empty() && !found.cwd.as_os_str().is_empty());
                let shown = format!("{found:?}");
                prop_assert!(!shown.contains("u-4242"));
            }
        }
    }
}
