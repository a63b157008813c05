//! Keeps archives out of what a restore deletes.
//!
//! An archive may not hold other archives, so those in a replaced directory may not come back.

use super::collect::ARCHIVE;
use super::error::{BackupError, at};
use std::fs;
use std::path::{Path, PathBuf};

/// Most archives that an error names.
const NAMED: usize = 3;

/// Refuses when a restore would delete the archive that it reads, or another one.
///
/// What is staged for this restore may lie in the directory too. `target` has no links in it.
///
/// # Errors
/// An archive lies in the directory, or the directory cannot be read.
pub(super) fn refuse_archives_in(
    target: &Path,
    archive: &Path,
    staged: Option<&Path>,
) -> Result<(), BackupError> {
    // One that is not there is told of when it is opened.
    if archive.canonicalize().is_ok_and(|real| real.starts_with(target)) {
        return Err(BackupError::Target {
            path: archive.to_owned(),
            reason: format!(
                "lies in {}, which is replaced, so it would be deleted; move it out of there first",
                target.display()
            ),
        });
    }
    let found = archives_in(target, staged)?;
    if found.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> =
        found.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = match found.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(BackupError::Target {
        path: target.to_owned(),
        reason: format!(
            "is replaced, and archives in it would be deleted ({}{more}); move them out of there \
             first",
            shown.join(", ")
        ),
    })
}

/// Every file below a directory that may be an archive of `svc backup`, in order.
///
/// `-o` gives an archive any name, so the end of the name alone counts.
fn archives_in(target: &Path, staged: Option<&Path>) -> Result<Vec<PathBuf>, BackupError> {
    let mut found = Vec::new();
    let mut waiting = vec![target.to_owned()];
    while let Some(directory) = waiting.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if directory == target && target.exists() => {
                return Err(at("read", target, error));
            }
            // What cannot be listed cannot be removed either: it is kept and told of.
            Err(_) => continue,
        };
        for entry in entries {
            let entry = entry.map_err(|cause| at("read", &directory, cause))?;
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && staged != Some(path.as_path()) {
                waiting.push(path);
            } else if kind.is_file()
                && entry.file_name().as_encoded_bytes().ends_with(ARCHIVE.1.as_bytes())
            {
                found.push(path.strip_prefix(target).unwrap_or(&path).to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::backup::{RestoreRequest, Stop, plan};
    use svc_shared::Timestamp;

    async fn refusal(archive: &Path, state_dir: &Path) -> String {
        let request = RestoreRequest {
            archive: archive.to_owned(),
            state_dir: state_dir.to_owned(),
            config_out: None,
            force: true,
            now: Timestamp::from_millis(1_738_367_999_123),
            stop: Stop::default(),
        };
        plan(request).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn h40_a_restore_never_deletes_the_archive_it_is_from() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        fs::create_dir_all(state.join("saved")).unwrap();
        let own = state.join("saved/of any name");
        fs::write(&own, "").unwrap();
        let (link, state_link) = (dir.path().join("link"), dir.path().join("state link"));
        std::os::unix::fs::symlink(&own, &link).unwrap();
        std::os::unix::fs::symlink(&state, &state_link).unwrap();
        for (archive, state) in [(&own, &state), (&link, &state), (&own, &state_link)] {
            let words = refusal(archive, state).await;
            assert!(words.contains("lies in") && words.contains("move it out"), "{words}");
        }
        // Its name begins with that of the directory, and it lies beside it.
        let beside = dir.path().join("state.tar.gz");
        fs::write(&beside, "").unwrap();
        let words = refusal(&beside, &state).await;
        assert!(words.contains("refused as a whole"), "it was read: {words}");
    }

    #[tokio::test]
    async fn h40_a_restore_never_deletes_other_archives() {
        let dir = tempfile::tempdir().unwrap();
        let (state, archive) = (dir.path().join("state"), dir.path().join("a.tar.gz"));
        fs::create_dir_all(state.join("saved/old")).unwrap();
        fs::write(&archive, "").unwrap();
        fs::write(state.join("svc.db"), "").unwrap();
        std::os::unix::fs::symlink(&archive, state.join("link.tar.gz")).unwrap();
        let words = refusal(&archive, &state).await;
        assert!(words.contains("refused as a whole"), "it was read: {words}");
        for name in ["svc-backup-20250131T235959Z.tar.gz", "saved/b.tar.gz", "saved/old/c.tar.gz"] {
            fs::write(state.join(name), "").unwrap();
            let words = refusal(&archive, &state).await;
            assert!(words.contains(&format!("({name})")) && words.contains("move them"), "{words}");
            fs::remove_file(state.join(name)).unwrap();
        }
        for number in 0..9 {
            fs::write(state.join(format!("saved/{number}.tar.gz")), "").unwrap();
        }
        let words = refusal(&archive, &state).await;
        assert!(words.contains("saved/2.tar.gz and 6 more)"), "{words}");
        // What is staged in the target belongs to this restore.
        let staged = state.join("saved");
        refuse_archives_in(&state, &archive, Some(&staged)).unwrap();
    }
}
