//! Snapshots of the registry before a migration: complete or absent, few are kept.

use crate::open_error::OpenError;
use rustix::fs::{Mode, OFlags};
use sqlx::sqlite::SqliteConnection;
use std::io;
use std::path::{Path, PathBuf};
use tracing::warn;

/// Snapshots that are kept.
const KEPT: usize = 5;

const DIRECTORY: &str = "backups";
const UNFINISHED: &str = ".db.tmp";

/// Writes a snapshot into `backups/`. A name that ends in `Z.db` is a complete one.
pub(crate) async fn take(
    connection: &mut SqliteConnection,
    state_dir: &Path,
    from: i64,
    to: i64,
) -> Result<PathBuf, OpenError> {
    let dir = state_dir.join(DIRECTORY);
    let stem = format!("pre-{from}-{to}-{}", stamp(time::OffsetDateTime::now_utc()));
    let path = dir.join(format!("{stem}.db"));
    let temp = dir.join(format!("{stem}{UNFINISHED}"));
    match write(connection, &dir, &temp, &path).await {
        Ok(()) => {
            prune(&dir, &path);
            Ok(path)
        }
        Err(cause) => {
            // Half a snapshot must not take the space that the next try needs.
            let _ = std::fs::remove_file(&temp);
            Err(OpenError::Snapshot { path, cause })
        }
    }
}

async fn write(
    connection: &mut SqliteConnection,
    dir: &Path,
    temp: &Path,
    path: &Path,
) -> Result<(), sqlx::Error> {
    private_dir(dir)?;
    remove_unfinished(dir);
    // VACUUM INTO writes into an existing file when it is empty, and keeps its mode.
    private_file(temp)?;
    let text = temp.to_str().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path is not valid UTF-8")
    })?;
    sqlx::query("VACUUM INTO ?").bind(text).execute(connection).await?;
    std::fs::File::open(temp)?.sync_all()?;
    std::fs::rename(temp, path)?;
    std::fs::File::open(dir)?.sync_all()?;
    Ok(())
}

/// `20250131T235959_000001Z`.
fn stamp(at: time::OffsetDateTime) -> String {
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}_{:06}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.microsecond()
    )
}

/// The schemas a snapshot lies between, from its name.
fn versions(name: &str) -> Option<(i64, i64)> {
    let rest = name.strip_prefix("pre-")?.strip_suffix("Z.db")?;
    let mut parts = rest.splitn(3, '-');
    let (from, to) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().map(|_| (from, to))
}

/// Complete snapshots, newest first.
fn complete(dir: &Path) -> Vec<(i64, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let (from, _) = versions(entry.file_name().to_str()?)?;
            let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((meta.modified().ok()?, entry.path(), from))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path, from)| (from, path)).collect()
}

/// The newest snapshot whose schema is at most `known`.
pub(crate) fn newest(state_dir: &Path, known: i64) -> Option<PathBuf> {
    let found = complete(&state_dir.join(DIRECTORY)).into_iter();
    found.filter(|(from, _)| *from <= known).map(|(_, path)| path).next()
}

/// Keeps the newest snapshots, and always `just_taken`, whatever the clock says.
/// It may be the only good one.
fn prune(dir: &Path, just_taken: &Path) {
    let older = complete(dir).into_iter().filter(|(_, path)| path != just_taken);
    for (_, path) in older.skip(KEPT - 1) {
        if let Err(error) = std::fs::remove_file(&path) {
            warn!("cannot remove the old snapshot {}: {error}", path.display());
        }
    }
}

fn remove_unfinished(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("pre-") && name.contains(UNFINISHED) {
            let _ = std::fs::remove_file(entry.path()); // tried again before the next snapshot
        }
    }
}

/// Creates a file that only its owner may read, whatever the umask is.
pub(crate) fn private_file(path: &Path) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::WRONLY;
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(())
}

/// Creates a directory that only its owner may enter, or makes an existing one so.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mode = std::fs::metadata(path)?.permissions().mode();
            if mode & 0o077 != 0 {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
            }
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_complete_snapshots_count() {
        assert_eq!(versions("pre-1-2-20250131T235959_000001Z.db"), Some((1, 2)));
        for other in [
            "pre-1-2-20250131T235959_000001Z.db.tmp",
            "pre-1-2.db",
            "pre-x-2-20250131T235959_000001Z.db",
            "mypre-1-2-20250131T235959_000001Z.db",
            "pre-1-2-notes.txt",
        ] {
            assert_eq!(versions(other), None, "{other}");
        }
    }

    #[test]
    fn names_carry_the_time_with_all_digits() {
        let at = time::OffsetDateTime::from_unix_timestamp(1_000_000_000).unwrap();
        assert_eq!(stamp(at), "20010909T014640_000000Z");
    }
}
