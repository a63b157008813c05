//! The file into which a launcher writes its identity before it becomes the agent.

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use svc_domain::identity::{LaunchId, Pid, ProcessIdentity};

use crate::files::{self, FileError};

const VERSION: u32 = 1;

/// The file has about 200 bytes; a larger file is not ours.
const MAX_BYTES: u64 = 4096;

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    v: u32,
    launch_id: String,
    pid: i64,
    start_ticks: u64,
    boot_id: String,
}

/// Why an identity file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityFileError {
    /// It cannot be read.
    #[error("cannot read the identity file {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// Another program wrote it, or it is damaged.
    #[error("the identity file {path} is not usable: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Writes the file. It matters only until the next boot, so it is not synced.
pub(super) fn write(
    path: &Path,
    launch_id: &LaunchId,
    identity: &ProcessIdentity,
) -> Result<(), FileError> {
    let content = Content {
        v: VERSION,
        launch_id: launch_id.as_str().to_owned(),
        pid: i64::from(identity.pid.get()),
        start_ticks: identity.start_ticks,
        boot_id: identity.boot_id.as_str().to_owned(),
    };
    let text = serde_json::to_vec(&content)
        .map_err(|error| FileError::Replace { path: path.to_owned(), cause: error.into() })?;
    files::replace_without_sync(path, &text)
}

/// The identity that a launcher wrote. `None` if it has not written one.
///
/// The content is not proven: probe the identity before using it.
///
/// # Errors
/// The file exists but is unreadable, damaged, or of another launch.
pub fn read_identity(
    path: &Path,
    launch_id: &LaunchId,
) -> Result<Option<ProcessIdentity>, IdentityFileError> {
    let unusable = |reason: &str| IdentityFileError::Unusable {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => {
            return Err(IdentityFileError::Unreadable { path: path.to_owned(), cause });
        }
    };
    let content: Content =
        serde_json::from_slice(&bytes).map_err(|error| unusable(&error.to_string()))?;
    if content.v != VERSION {
        return Err(unusable("its version is not known to this program"));
    }
    if content.launch_id != launch_id.as_str() {
        return Err(unusable("it belongs to another launch"));
    }
    let pid = Pid::new(content.pid).ok_or_else(|| unusable("its pid is not that of a process"))?;
    let boot_id = content.boot_id.parse().map_err(|_| unusable("its boot id is not one"))?;
    Ok(Some(ProcessIdentity { pid, start_ticks: content.start_ticks, boot_id }))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = open(path, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::from(file).take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCH: &str = "0123456789abcdef0123456789abcdef";

    fn read_text(text: &str) -> Result<Option<ProcessIdentity>, IdentityFileError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.launch.json");
        std::fs::write(&path, text).unwrap();
        read_identity(&path, &LAUNCH.parse().unwrap())
    }

    fn with_pid(pid: &str) -> String {
        format!(
            "{{\"v\":1,\"launch_id\":\"{LAUNCH}\",\"pid\":{pid},\"start_ticks\":7,\
             \"boot_id\":\"b\"}}"
        )
    }

    #[test]
    fn what_was_written_is_read_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.launch.json");
        let launch_id: LaunchId = LAUNCH.parse().unwrap();
        let identity = ProcessIdentity {
            pid: Pid::new(4242).unwrap(),
            start_ticks: u64::MAX,
            boot_id: "b".parse().unwrap(),
        };
        assert_eq!(read_identity(&path, &launch_id).unwrap(), None);
        write(&path, &launch_id, &identity).unwrap();
        assert_eq!(read_identity(&path, &launch_id).unwrap(), Some(identity));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn f7_h103_dangerous_pids_of_every_type_name_nobody() {
        assert!(read_text(&with_pid("4242")).unwrap().is_some());
        for pid in [
            "-1",
            "0",
            "1",
            "2147483648",
            "true",
            "\"12\"",
            "1e3",
            "12.0",
            "null",
            "[12]",
            "-12",
            "99999999999999999999",
        ] {
            let seen = read_text(&with_pid(pid));
            assert!(matches!(seen, Err(IdentityFileError::Unusable { .. })), "{pid}: {seen:?}");
        }
    }

    #[test]
    fn damaged_files_and_files_of_other_launches_name_nobody() {
        let other = with_pid("4242").replace("0123", "ffff");
        let newer = with_pid("4242").replace("\"v\":1", "\"v\":2");
        let deep = "[".repeat(5000);
        for text in ["", "null", "[]", "{\"v\":1", &other, &newer, &deep] {
            let seen = read_text(text);
            assert!(
                matches!(seen, Err(IdentityFileError::Unusable { .. })),
                "{text:.40}: {seen:?}"
            );
        }
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::write(&real, with_pid("4242")).unwrap();
        let link = dir.path().join("a.launch.json");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let seen = read_identity(&link, &LAUNCH.parse().unwrap());
        assert!(matches!(seen, Err(IdentityFileError::Unreadable { .. })), "{seen:?}");
    }

    proptest::proptest! {
        #[test]
        fn f7_h103_a_damaged_file_names_nobody_dangerous(
            at: proptest::sample::Index,
            cut in 0_usize..6,
            put in proptest::collection::vec(0_u8.., 0..6),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.launch.json");
            let mut bytes = with_pid("4242").into_bytes();
            let from = at.index(bytes.len());
            let to = (from + cut).min(bytes.len());
            bytes.splice(from..to, put);
            std::fs::write(&path, bytes).unwrap();
            if let Ok(Some(found)) = read_identity(&path, &LAUNCH.parse().unwrap()) {
                proptest::prop_assert!(found.pid.get() > 1);
            }
        }
    }
}
