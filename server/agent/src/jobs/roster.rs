//! Which process works on which job, from the background service's roster.
//!
//! Seen with agent 2.1.197. The file holds secrets of that service and prompts: only pid and start
//! time leave this parser.

use crate::regular_file::open_regular;
use rustix::process::geteuid;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use svc_domain::identity::Pid;
use svc_shared::Timestamp;
use svc_shared::ids::JobId;

/// Largest roster. It contains prompts.
const SIZE_CAP: u64 = 16 * 1024 * 1024;

/// The host process of one job. The session process is its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// The process.
    pub pid: Pid,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
}

/// The processes by job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roster {
    /// The valid entries.
    pub workers: HashMap<JobId, Worker>,
    /// When the file was last written; `None` without one.
    pub written_at: Option<Timestamp>,
}

/// There is a roster, but it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// When it was last written, if known.
    pub written_at: Option<Timestamp>,
}

/// Reads the roster. A missing roster is empty. Blocks.
///
/// # Errors
/// It is torn, too large, of another user, or cannot be opened. That does not prove that jobs ended.
pub fn read(path: &Path) -> Result<Roster, Unreadable> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Roster::default()),
        Err(_) => return Err(Unreadable { written_at: None }),
    };
    let facts = file.metadata().map_err(|_| Unreadable { written_at: None })?;
    let written_at = Some(Timestamp::from_millis(
        facts.mtime().saturating_mul(1000).saturating_add(facts.mtime_nsec() / 1_000_000),
    ));
    let unreadable = Unreadable { written_at };
    if facts.uid() != geteuid().as_raw() || facts.len() > SIZE_CAP {
        return Err(unreadable);
    }
    let mut bytes = Vec::new();
    file.take(SIZE_CAP).read_to_end(&mut bytes).map_err(|_| unreadable)?;
    Ok(Roster { workers: parse(&bytes).ok_or(unreadable)?, written_at })
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    workers: HashMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct Entry {
    pid: i64,
    #[serde(rename = "procStart")]
    start: String,
}

/// The valid entries. `None` if it is no roster.
fn parse(bytes: &[u8]) -> Option<HashMap<JobId, Worker>> {
    let document: Document<'_> = serde_json::from_slice(bytes).ok()?;
    let believable = |(id, raw): (String, &RawValue)| {
        let entry: Entry = serde_json::from_str(raw.get()).ok()?;
        let worker = Worker { pid: Pid::new(entry.pid)?, start_ticks: entry.start.parse().ok()? };
        Some((id.parse().ok()?, worker))
    };
    Some(document.workers.into_iter().filter_map(believable).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pid: &str, start: &str) -> String {
        format!(
            r#"{{"proto":1,"supervisorPid":5,"workers":{{"450f4654":{{"pid":{pid},
            "procStart":{start},"rvAuth":"s","dispatch":{{"launch":{{"args":["--","x"]}}}}}},
            "other":{{"pid":77,"procStart":"5"}},"0a1b2c3d":{{}}}}}}"#
        )
    }

    #[test]
    fn a_worker_is_known_by_pid_and_start() {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join("roster.json");
        assert_eq!(read(&file), Ok(Roster::default()));
        std::fs::write(&file, one("4242", "\"77010\"")).unwrap();
        let roster = read(&file).unwrap();
        let worker = Worker { pid: Pid::new(4242).unwrap(), start_ticks: 77_010 };
        assert_eq!(roster.workers, HashMap::from([("450f4654".parse().unwrap(), worker)]));
        assert!(roster.written_at.is_some());
    }

    #[test]
    fn f7_a_number_that_is_no_pid_names_nobody() {
        for pid in ["-1", "0", "1", "2147483648", "true", "\"12\"", "1e3", "null"] {
            assert_eq!(parse(one(pid, "\"5\"").as_bytes()), Some(HashMap::new()), "{pid}");
        }
        for start in ["5", "\"\"", "\"x\"", "null"] {
            assert_eq!(parse(one("4242", start).as_bytes()), Some(HashMap::new()), "{start}");
        }
    }

    #[test]
    fn a_roster_that_cannot_be_read_is_not_one_that_names_nobody() {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join("roster.json");
        for odd in ["", "[]", "{}", r#"{"workers":[]}"#, "{\"workers\":", &"[".repeat(5000)] {
            std::fs::write(&file, odd).unwrap();
            assert!(read(&file).unwrap_err().written_at.is_some(), "{odd}");
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert_eq!(read(&file), Err(Unreadable { written_at: None }));
        std::fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink(tree.path().join("elsewhere"), &file).unwrap();
        assert_eq!(read(&file), Err(Unreadable { written_at: None }));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(0_u8.., 0..400)) {
            let _ = parse(&bytes);
        }
    }
}
