//! Copies of what was there before a change of the agent's configuration.
//!
//! In the state directory and not beside the file: a copy in a project would be committed, and one
//! in the directory of a skill would become a part of it.

use crate::AppError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use svc_process::files;
use svc_shared::Timestamp;

/// No file of the agent's configuration that is copied is larger.
const LARGEST: u64 = 4 << 20;

/// Copies that are kept of one file.
const KEPT: usize = 5;
/// Digits of the milliseconds in the name of a copy: they sort by time.
const DIGITS: usize = 20;

/// One copy of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Its name among the copies of the file.
    pub id: String,
    /// When the change was made that it was kept for.
    pub at: Timestamp,
    pub bytes: u64,
    path: PathBuf,
}

/// The copies of one state directory.
#[derive(Debug, Clone)]
pub(crate) struct Backups {
    directory: PathBuf,
}

impl Backups {
    pub fn new(state_dir: &Path) -> Self {
        Self { directory: state_dir.join("agent_config_backups") }
    }

    /// Keeps the text that a file had. The oldest copies of it go. Blocks.
    ///
    /// Not once more where the newest copy is the same: a change that is refused again and again
    /// would push the others out.
    ///
    /// # Errors
    /// It cannot be written: then the file must not be changed.
    pub fn keep(&self, of: &Path, text: &str, now: Timestamp) -> Result<(), AppError> {
        let kept = || -> io::Result<()> {
            files::private_directory(&self.directory).map_err(io::Error::other)?;
            let prefix = prefix(of);
            // Two changes within a millisecond, or a clock that was set back: each is kept.
            let copies = self.of(of)?;
            let newest = copies.first().map_or(i64::MIN, |kept| kept.at.as_millis());
            if copies.first().is_some_and(|kept| is_text_of(kept, text)) {
                return Ok(());
            }
            let at = now.as_millis().max(newest.saturating_add(1)).max(0);
            let copy = self.directory.join(format!("{prefix}{at:0DIGITS$}"));
            files::replace(&copy, text.as_bytes()).map_err(io::Error::other)?;
            self.prune(&prefix)
        };
        kept().map_err(|cause| {
            AppError::busy(
                "the change was refused, because no copy of the file could be kept in \
                 agent_config_backups in the state directory; check space and permissions",
            )
            .because(cause)
        })
    }

    /// The copies of a file, newest first. Blocks.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn of(&self, file: &Path) -> io::Result<Vec<Kept>> {
        let prefix = prefix(file);
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else {
                continue;
            };
            let is_id = id.len() == DIGITS && id.bytes().all(|byte| byte.is_ascii_digit());
            let (true, Ok(millis)) = (is_id, id.parse()) else { continue };
            let (id, at) = (id.to_owned(), Timestamp::from_millis(millis));
            let bytes = match entry.metadata() {
                Ok(facts) => facts.len(),
                // Another write of the same file has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            found.push(Kept { id, at, bytes, path: entry.path() });
        }
        found.sort_unstable_by(|one, other| other.id.cmp(&one.id));
        Ok(found)
    }

    /// The text of one copy of a file; none where there is no such copy. Blocks.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn text(&self, file: &Path, id: &str) -> io::Result<Option<String>> {
        let found = self.of(file)?.into_iter().find(|kept| kept.id == id);
        let text = |kept: Kept| {
            let bytes = files::read_plain(&kept.path, LARGEST)?;
            String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
        };
        found.map(text).transpose()
    }

    fn prune(&self, prefix: &str) -> io::Result<()> {
        let mut copies = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(prefix) {
                copies.push(path);
            }
        }
        copies.sort_unstable();
        let old = copies.len().saturating_sub(KEPT);
        for path in copies.into_iter().take(old) {
            match fs::remove_file(path) {
                // Another write of the same file has removed it.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a copy holds this text.
/// One that cannot be read does not.
fn is_text_of(kept: &Kept, text: &str) -> bool {
    u64::try_from(text.len()).is_ok_and(|length| length == kept.bytes)
        && files::read_plain(&kept.path, LARGEST).is_ok_and(|bytes| bytes == text.as_bytes())
}

/// The file's name for a person, and the hash of its path to tell it from others.
fn prefix(of: &Path) -> String {
    let name = of.file_name().unwrap_or_default().to_string_lossy();
    let hash = crate::auth::sha256_hex(of.as_os_str().as_encoded_bytes());
    format!("{name}-{}-", hash.get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_copies_of_each_file_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let backups = Backups::new(dir.path());
        for n in 1..=7 {
            let at = Timestamp::from_millis(n);
            backups.keep(Path::new("/a/settings.json"), &n.to_string(), at).unwrap();
        }
        backups.keep(Path::new("/b/settings.json"), "b", Timestamp::from_millis(1)).unwrap();
        let mut texts: Vec<String> = fs::read_dir(dir.path().join("agent_config_backups"))
            .unwrap()
            .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        texts.sort();
        assert_eq!(texts, ["3", "4", "5", "6", "7", "b"]);
        // The clock was set back: what is kept now is still the newest.
        backups.keep(Path::new("/b/settings.json"), "later", Timestamp::from_millis(0)).unwrap();
        let of_b = Path::new("/b/settings.json");
        let kept = backups.of(of_b).unwrap();
        assert_eq!((kept.len(), kept[0].bytes, kept[0].at.as_millis()), (2, 5, 2));
        assert_eq!(backups.text(of_b, &kept[0].id).unwrap().unwrap(), "later");
        // A change that is refused again and again pushes nothing out.
        for _ in 0..KEPT {
            backups.keep(of_b, "later", Timestamp::from_millis(9)).unwrap();
        }
        assert_eq!(backups.of(of_b).unwrap(), kept);
        for odd in ["", "../x", "1", "00000000000000000009"] {
            assert_eq!(backups.text(of_b, odd).unwrap(), None, "{odd}");
        }
    }
}
