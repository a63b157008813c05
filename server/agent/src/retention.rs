//! Lists and removes log sets.
//!
//! Only plain files with names that this service and its agents give count. Links and other files are
//! never removed. Which sets are removed is decided in `svc_domain::retention`.

use crate::log_set::LogFileName;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;
use svc_shared::Timestamp;

/// The files of one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The newest change. `None` if no file has a known time.
    pub newest: Option<Timestamp>,
    /// Size of all files together.
    pub bytes: u64,
    files: Vec<String>,
}

/// The content of the log directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Log sets by stem.
    pub sets: HashMap<String, Group>,
    /// Transcripts of remote sessions without a known bridge, by session.
    pub strays: HashMap<String, Group>,
}

/// Lists all files. A missing directory counts as empty. Blocks.
///
/// # Errors
/// The directory cannot be listed.
pub fn inventory(directory: &Path) -> io::Result<Inventory> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Inventory::default()),
        Err(error) => return Err(error),
    };
    let mut found = Inventory::default();
    let mut owners: HashMap<String, String> = HashMap::new();
    for entry in listed {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Some(kind) = LogFileName::parse(&name) else { continue };
        // Links are not followed. A file that vanishes meanwhile is ignored.
        let Ok(facts) = entry.metadata() else { continue };
        if !facts.is_file() {
            continue;
        }
        let group = match kind {
            LogFileName::Of(set) => found.sets.entry(set.as_str().to_owned()),
            LogFileName::Session { set, session } => {
                owners.insert(session, set.as_str().to_owned());
                found.sets.entry(set.as_str().to_owned())
            }
            LogFileName::Transcript { session } => found.strays.entry(session),
        };
        group.or_default().add(name, &facts);
    }
    for (session, set) in owners {
        if let Some(stray) = found.strays.remove(&session) {
            found.sets.entry(set).or_default().take(stray);
        }
    }
    Ok(found)
}

impl Group {
    fn add(&mut self, name: String, facts: &fs::Metadata) {
        let changed = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let changed = changed.and_then(|since| i64::try_from(since.as_millis()).ok());
        self.newest = self.newest.max(changed.map(Timestamp::from_millis));
        self.bytes = self.bytes.saturating_add(facts.len());
        self.files.push(name);
    }

    fn take(&mut self, other: Self) {
        self.newest = self.newest.max(other.newest);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files.extend(other.files);
    }

    /// Removes the files. Returns how many could not be removed. Blocks.
    #[must_use]
    pub fn remove(&self, directory: &Path) -> usize {
        let gone = |name: &String| match fs::remove_file(directory.join(name)) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.files.iter().filter(|name| !gone(name)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// H96.
    #[test]
    fn h96_a_set_goes_with_its_sessions_and_look_alikes_stay() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path();
        let own = [
            "p-170-1.log",
            "p-170-1.log.1",
            "p-170-1.stderr.log",
            "p-170-1.launch.json",
            "p-170-1-session_01AB.log",
            "bridge-transcript-session_01AB.jsonl",
        ];
        let others = ["p-170-1.log.bak", "p-171-1.log", "bridge-transcript-cse_9.jsonl", "notes"];
        for name in own.iter().chain(&others) {
            fs::write(dir.join(name), "12345").unwrap();
        }
        let precious = root.path().join("notes");
        symlink(&precious, dir.join("p-170-1.stderr.log.1")).unwrap();
        fs::create_dir(dir.join("p-170-1.log.2")).unwrap();

        let found = inventory(dir).unwrap();
        let mut stems: Vec<&String> = found.sets.keys().collect();
        stems.sort();
        assert_eq!(stems, ["p-170-1", "p-171-1"]);
        assert_eq!(found.sets["p-170-1"].bytes, 30);
        assert!(found.sets["p-170-1"].newest.is_some());
        assert_eq!(found.strays.keys().collect::<Vec<_>>(), ["cse_9"]);

        assert_eq!(found.sets["p-170-1"].remove(dir), 0);
        let mut left: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected: Vec<String> = others.map(str::to_owned).into();
        expected.extend(["p-170-1.log.2".to_owned(), "p-170-1.stderr.log.1".to_owned()]);
        expected.sort();
        assert_eq!(left, expected);
        assert_eq!(fs::read_to_string(precious).unwrap(), "12345");
        assert_eq!(inventory(&dir.join("gone")).unwrap(), Inventory::default());
    }
}
