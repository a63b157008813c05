//! The files of one launch: their names, their creation, their tails.
//!
//! A set shares the stem `<project>-<epoch ms>-<seq>`. The record of a bridge names its set, so nobody
//! has to guess the newest file of a project.

mod key;

pub use key::{BadLogSetKey, LogFileName, LogSetKey};

use crate::regular_file::open_own;
use key::escaped;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use svc_domain::identity::Pid;
use svc_process::files::{FileError, create_new_private, private_directory};
use svc_shared::Timestamp;
use svc_shared::ids::ProjectName;

/// Most names to try. Each try uses the next millisecond.
const MAX_TRIES: u32 = 1000;

/// How much of the debug file the search for an exit cause reads, in bytes.
pub const DEBUG_TAIL: u64 = 256 * 1024;

/// How much of the captured output the search for an exit cause reads, in bytes.
pub const OUTPUT_TAIL: u64 = 64 * 1024;

/// Numbers the sets of this process, so that two of one millisecond differ.
static SEQUENCE: AtomicU64 = AtomicU64::new(1);

/// Why there is no new log set.
#[derive(Debug, thiserror::Error)]
pub enum LogSetError {
    /// No file can be created in the directory.
    #[error("the log directory cannot be used; check `state_dir` and its permissions")]
    Directory(#[source] FileError),
    /// A file could not be created.
    #[error("a log file could not be created; check the space and permissions of `state_dir`")]
    Create(#[source] FileError),
    /// Every name that was tried exists already.
    #[error("no free name for the logs of `{project}` was found; look into {directory}")]
    NoFreeName {
        /// The project.
        project: ProjectName,
        /// The log directory.
        directory: PathBuf,
    },
}

/// The files of one launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSet {
    directory: PathBuf,
    stem: String,
}

fn is_taken(error: &FileError) -> bool {
    match error {
        FileError::Create { cause, .. } => cause.kind() == io::ErrorKind::AlreadyExists,
        FileError::Replace { .. }
        | FileError::Directory { .. }
        | FileError::ForeignDirectory { .. } => false,
    }
}

impl LogSet {
    /// Creates the debug file and the output file of a new launch, empty and private.
    /// If the debug file is to be a redacted copy, the agent gets a raw file as well. The directory
    /// is created if it is gone. Anything that already has a name of the set, a planted link
    /// included, is left alone and the next name is taken (F15). Blocks.
    ///
    /// # Errors
    /// Nothing is left behind. See [`LogSetError`].
    pub fn create(
        directory: &Path,
        project: &ProjectName,
        now: Timestamp,
        mirrored: bool,
    ) -> Result<Self, LogSetError> {
        private_directory(directory).map_err(LogSetError::Directory)?;
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        for bump in 0..MAX_TRIES {
            let created = now.as_millis().max(0) + i64::from(bump);
            let set = Self::of_key(directory, &LogSetKey::new(project, created, sequence));
            match set.create_files(mirrored) {
                Ok(()) => return Ok(set),
                Err(error) if is_taken(&error) => {}
                Err(error) => return Err(LogSetError::Create(error)),
            }
        }
        Err(LogSetError::NoFreeName { project: project.clone(), directory: directory.to_owned() })
    }

    /// The set of a record; its files may be gone.
    /// A bad stem, from a damaged record, names files that do not exist, and never one outside of
    /// the directory (H42).
    #[must_use]
    pub fn at(directory: &Path, stem: &str) -> Self {
        match stem.parse::<LogSetKey>() {
            Ok(key) => Self::of_key(directory, &key),
            Err(BadLogSetKey) => {
                Self { directory: directory.to_owned(), stem: format!("%{}", escaped(stem)) }
            }
        }
    }

    fn of_key(directory: &Path, key: &LogSetKey) -> Self {
        Self { directory: directory.to_owned(), stem: key.as_str().to_owned() }
    }

    /// The set that an agent's `--debug-file` belongs to.
    /// `None` when the file is no debug file of this directory: then it belongs to another service,
    /// or to nobody. Blocks.
    #[must_use]
    pub fn of_debug_file(directory: &Path, debug_file: &Path) -> Option<Self> {
        let (key, suffix) = LogSetKey::of_file(debug_file.file_name()?.to_str()?)?;
        let parent = debug_file.parent()?;
        let is_here = parent == directory
            || fs::canonicalize(parent).ok()? == fs::canonicalize(directory).ok()?;
        (is_here && matches!(suffix, ".log" | ".raw.log")).then(|| Self::of_key(directory, &key))
    }

    fn create_files(&self, mirrored: bool) -> Result<(), FileError> {
        let raw = mirrored.then(|| self.raw_file());
        let wanted = [Some(self.debug_file()), Some(self.output_file()), raw];
        let mut made = Vec::new();
        for path in wanted.into_iter().flatten() {
            match create_new_private(&path) {
                Ok(_) => made.push(path),
                Err(error) => {
                    for path in made {
                        let _ = fs::remove_file(path); // made a moment ago; the error says more
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The stem, which the record of the bridge stores.
    #[must_use]
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// The log directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn file(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}{suffix}", self.stem))
    }

    /// The log that people see.
    #[must_use]
    pub fn debug_file(&self) -> PathBuf {
        self.file(".log")
    }

    fn raw_file(&self) -> PathBuf {
        self.file(".raw.log")
    }

    /// Whether the log that people see is a redacted copy. Blocks briefly.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        fs::symlink_metadata(self.raw_file()).is_ok_and(|facts| facts.is_file())
    }

    /// The argument of `--debug-file`: the log, or the raw file of a redacted copy.
    /// Blocks briefly.
    #[must_use]
    pub fn agent_file(&self) -> PathBuf {
        if self.is_mirrored() { self.raw_file() } else { self.debug_file() }
    }

    /// The progress of the redacted copy.
    pub(crate) fn mirror_file(&self) -> PathBuf {
        self.file(".mirror.json")
    }

    /// Standard output and standard error of the agent.
    #[must_use]
    pub fn output_file(&self) -> PathBuf {
        self.file(".stderr.log")
    }

    /// The launcher's identity file.
    #[must_use]
    pub fn identity_file(&self) -> PathBuf {
        self.file(".launch.json")
    }

    /// Whether there is a log to show. Blocks briefly.
    #[must_use]
    pub fn has_log(&self) -> bool {
        fs::symlink_metadata(self.debug_file()).is_ok_and(|facts| facts.is_file())
    }

    /// The end of the debug file, to find an exit cause; empty without one. Blocks.
    #[must_use]
    pub fn debug_tail(&self) -> String {
        rotated_tail(&self.agent_file(), DEBUG_TAIL)
    }

    /// The end of the captured output, to find an exit cause. Blocks.
    /// Empty without such a file.
    #[must_use]
    pub fn output_tail(&self) -> String {
        rotated_tail(&self.output_file(), OUTPUT_TAIL)
    }

    /// The pid in the launcher's identity file, if there is one.
    /// It says nothing about whether the process lives. Blocks.
    #[must_use]
    pub fn launched_pid(&self) -> Option<Pid> {
        let file: serde_json::Value =
            serde_json::from_str(&tail(&self.identity_file(), OUTPUT_TAIL)).ok()?;
        Pid::new(file.get("pid")?.as_i64()?)
    }

    /// Removes all files of the set, after a launch was refused.
    /// What cannot be removed is left to the retention. Blocks.
    pub fn remove(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let own = name.to_str().and_then(LogSetKey::of_file);
            if own.is_some_and(|(key, _)| key.as_str() == self.stem) {
                let _ = fs::remove_file(entry.path()); // see above
            }
        }
    }
}

/// Like [`tail`], but continues in the last rotated file if the live one is short.
fn rotated_tail(path: &Path, limit: u64) -> String {
    let live = tail(path, limit);
    let left = limit.saturating_sub(u64::try_from(live.len()).unwrap_or(u64::MAX));
    match left {
        0 => live,
        left => tail(&crate::rotation::numbered(path, 1), left) + &live,
    }
}

/// The last `limit` bytes of a regular file, from the start of a line on.
/// Invalid UTF-8 is replaced.
fn tail(path: &Path, limit: u64) -> String {
    read_tail(path, limit).unwrap_or_default()
}

fn read_tail(path: &Path, limit: u64) -> io::Result<String> {
    let mut file = open_own(path)?;
    let start = file.metadata()?.len().saturating_sub(limit);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    let whole = match (start, bytes.iter().position(|b| *b == b'\n')) {
        (1.., Some(end)) => bytes.get(end + 1..).unwrap_or_default(),
        _ => &bytes,
    };
    Ok(String::from_utf8_lossy(whole).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn name(raw: &str) -> ProjectName {
        raw.parse().unwrap()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_new_set_has_two_private_files_in_a_private_directory() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().join("state/logs");
        let set = LogSet::create(&logs, &name("my app"), at(1_764_000_000_000), false).unwrap();
        assert!(set.stem().starts_with("my%20app-1764000000000-"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&set.debug_file()), 0o600);
        assert_eq!(mode(&set.output_file()), 0o600);
        assert_eq!(mode(&logs), 0o700);
        assert!(set.has_log());
        // F63: the directory may vanish between two launches.
        fs::remove_dir_all(&logs).unwrap();
        assert!(!set.has_log());
        assert!(LogSet::create(&logs, &name("my app"), at(5), false).unwrap().has_log());
    }

    /// F15.
    #[test]
    fn a_planted_link_is_left_alone_and_the_next_name_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().join("logs");
        fs::create_dir(&logs).unwrap();
        let target = root.path().join("target");
        fs::write(&target, "precious").unwrap();
        // The number of the next set is not known to the test: plant for many.
        for sequence in 1..200 {
            for (created, suffix) in [(7, ".log"), (8, ".stderr.log")] {
                let key = LogSetKey::new(&name("p"), created, sequence);
                symlink(&target, logs.join(format!("{key}{suffix}"))).unwrap();
            }
        }
        let set = LogSet::create(&logs, &name("p"), at(7), false).unwrap();
        assert_eq!(set.stem().parse::<LogSetKey>().unwrap().created_at(), at(9));
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        let left = fs::read_dir(logs).unwrap().count();
        assert_eq!(left, 2 * 199 + 2, "no half set stays behind");
    }

    #[test]
    fn two_sets_of_one_millisecond_differ() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().to_owned();
        let one = LogSet::create(&logs, &name("p"), at(7), false).unwrap();
        let two = LogSet::create(&logs, &name("p"), at(7), false).unwrap();
        assert_ne!(one.stem(), two.stem());
    }

    /// H42: a key read back from the database cannot lead out of the directory.
    #[test]
    fn other_texts_are_no_keys() {
        for raw in
            ["", "a", "a-1", "../a-1-1", "a/b-1-1", ".-1-1", "a-1-", "a--1", "a b-1-1", "ü-1-1"]
        {
            assert_eq!(raw.parse::<LogSetKey>(), Err(BadLogSetKey), "{raw}");
            let set = LogSet::at(Path::new("/logs"), raw);
            assert_eq!(set.debug_file().parent(), Some(Path::new("/logs")), "{raw}");
        }
    }

    #[test]
    fn a_debug_file_of_another_directory_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().join("logs");
        let set = LogSet::create(&logs, &name("p"), at(7), false).unwrap();
        assert_eq!(LogSet::of_debug_file(&logs, &set.debug_file()), Some(set.clone()));
        symlink(&logs, root.path().join("link")).unwrap();
        let file = set.debug_file();
        let by_link = root.path().join("link").join(file.file_name().unwrap());
        assert_eq!(LogSet::of_debug_file(&logs, &by_link), Some(set.clone()));
        assert_eq!(LogSet::of_debug_file(&logs, &root.path().join("p-7-1.log")), None);
        assert_eq!(LogSet::of_debug_file(&logs, &set.output_file()), None);
        assert_eq!(LogSet::of_debug_file(&logs, Path::new("/")), None);
    }

    #[test]
    fn tails_begin_at_a_line_and_survive_odd_files() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().to_owned();
        let set = LogSet::create(&logs, &name("p"), at(7), false).unwrap();
        assert_eq!(set.output_tail(), "");
        let text = format!("{}\nlast \u{fffd}\n", "x".repeat(70_000));
        fs::write(set.output_file(), text.replace('\u{fffd}', "\u{0}")).unwrap();
        assert_eq!(set.output_tail(), "last \u{0}\n");
        fs::write(set.debug_file(), b"one\n\xff two").unwrap();
        assert_eq!(set.debug_tail(), "one\n\u{fffd} two");
        fs::remove_file(set.debug_file()).unwrap();
        fs::create_dir(set.debug_file()).unwrap();
        assert_eq!(set.debug_tail(), "");
        fs::remove_dir(set.debug_file()).unwrap();
        symlink(set.output_file(), set.debug_file()).unwrap();
        assert_eq!(set.debug_tail(), "");
        assert!(!set.has_log());
    }

    #[test]
    fn removing_a_set_takes_all_its_files_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let logs = root.path().to_owned();
        let set = LogSet::create(&logs, &name("p"), at(7), false).unwrap();
        let other = LogSet::create(&logs, &name("p-7"), at(7), false).unwrap();
        fs::write(set.identity_file(), r#"{"pid":4242}"#).unwrap();
        assert_eq!(set.launched_pid(), Pid::new(4242));
        set.remove();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
        assert!(other.has_log());
    }
}
