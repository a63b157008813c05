//! Which process works on which job, as the agent's background service writes it (agent 2.1.197).
//!
//! The file holds secrets of that service and prompts: only pid and start leave this parser.

use crate::log_set::open_regular;
use rustix::process::geteuid;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use svc_domain::identity::Pid;
use svc_shared::Timestamp;
use svc_shared::ids::JobId;

/// Prompts are in it, too.
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
    /// Believable entries.
    pub workers: HashMap<JobId, Worker>,
    /// When the file was last written; `None` without one.
    pub written_at: Option<Timestamp>,
}

/// Reads the roster; one that is missing, torn or of another user names nobody. Blocks.
#[must_use]
pub fn read(path: &Path) -> Roster {
    let Ok(file) = open_regular(path) else { return Roster::default() };
    let Ok(facts) = file.metadata() else { return Roster::default() };
    if facts.uid() != geteuid().as_raw() || facts.len() > SIZE_CAP {
        return Roster::default();
    }
    let mut bytes = Vec::new();
    if file.take(SIZE_CAP).read_to_end(&mut bytes).is_err() {
        return Roster::default();
    }
    let written_at = Timestamp::from_millis(
        facts.mtime().saturating_mul(1000).saturating_add(facts.mtime_nsec() / 1_000_000),
    );
    Roster { workers: parse(&bytes), written_at: Some(written_at) }
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

fn parse(bytes: &[u8]) -> HashMap<JobId, Worker> {
    let Ok(document) = serde_json::from_slice::<Document<'_>>(bytes) else {
        return HashMap::new();
    };
    let believable = |(id, raw): (String, &RawValue)| {
        let entry: Entry = serde_json::from_str(raw.get()).ok()?;
        let worker = Worker { pid: Pid::new(entry.pid)?, start_ticks: entry.start.parse().ok()? };
        Some((id.parse().ok()?, worker))
    };
    document.workers.into_iter().filter_map(believable).collect()
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
        assert_eq!(read(&file), Roster::default());
        std::fs::write(&file, one("4242", "\"77010\"")).unwrap();
        let roster = read(&file);
        let worker = Worker { pid: Pid::new(4242).unwrap(), start_ticks: 77_010 };
        assert_eq!(roster.workers, HashMap::from([("450f4654".parse().unwrap(), worker)]));
        assert!(roster.written_at.is_some());
    }

    #[test]
    fn f7_a_number_that_is_no_pid_names_nobody() {
        for pid in ["-1", "0", "1", "2147483648", "true", "\"12\"", "1e3", "null"] {
            assert!(parse(one(pid, "\"5\"").as_bytes()).is_empty(), "{pid}");
        }
        for start in ["5", "\"\"", "\"x\"", "null"] {
            assert!(parse(one("4242", start).as_bytes()).is_empty(), "{start}");
        }
        for odd in ["", "[]", "{}", r#"{"workers":[]}"#, "{\"workers\":", &"[".repeat(5000)] {
            assert!(parse(odd.as_bytes()).is_empty(), "{odd}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(0_u8.., 0..400)) {
            let _ = parse(&bytes);
        }
    }
}
