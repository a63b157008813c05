//! Space that is kept for ending things on a full disk (H91).
//!
//! An agent that fills the disk must not be able to keep itself alive: a stop, a revocation and a
//! sign-out are written before they are done. So some space is kept in small files, and each of
//! these actions frees one of them when the disk is full. Whoever fills the disk again needs as
//! many turns as there are files.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Kept files, and bytes of each.
const PIECES: u32 = 128;
const PIECE: u64 = 128 * 1024;
/// With less free space than this an action frees a piece.
///
/// It frees one more if that is too little. A stop writes some 100 KiB into the journal of the database. A command looks twice, when it
/// opens the database and when it acts.
const LOW: u64 = 2 * PIECE;
/// With less free space than this nothing is kept: launches end here, too.
const PLENTY: u64 = svc_domain::admission::MIN_FREE_BYTES;

/// Sees to it that what ends something can be written.
/// Keeps space again where there is some.
///
/// Off the threads that serve requests.
pub async fn make_room(state_dir: &Path) {
    let state_dir = state_dir.to_owned();
    let made = tokio::task::spawn_blocking(move || make_room_now(&state_dir)).await;
    if let Ok(Err(error)) = made {
        // The action itself says what it could not write.
        tracing::debug!(error = %error, "the kept space could not be used");
    }
}

fn make_room_now(state_dir: &Path) -> io::Result<()> {
    let free = || svc_process::files::free_bytes(state_dir);
    if free()? >= PLENTY {
        return keep(state_dir);
    }
    // Some file systems tell of freed space late: the rest is not spent on that.
    for _ in 0..LOW / PIECE {
        if free()? >= LOW {
            break;
        }
        free_one(state_dir)?;
    }
    Ok(())
}

fn piece(state_dir: &Path, number: u32) -> PathBuf {
    state_dir.join("reserve").join(number.to_string())
}

/// The directory of the pieces, if it is one.
///
/// A link in its place would have files of another directory replaced and removed.
fn is_own_directory(state_dir: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(state_dir.join("reserve")) {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn free_one(state_dir: &Path) -> io::Result<()> {
    if !is_own_directory(state_dir)? {
        return Ok(());
    }
    for number in (0..PIECES).rev() {
        match std::fs::remove_file(piece(state_dir, number)) {
            Ok(()) => {
                tracing::warn!("the disk is full; some of the space kept for this is used");
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn keep(state_dir: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(state_dir.join("reserve"));
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if !is_own_directory(state_dir)? {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "`reserve` is no directory"));
    }
    // They are made in order and freed from the end: with the last one, all are there.
    let is_whole = |path: &Path| {
        std::fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && it.len() >= PIECE)
    };
    if is_whole(&piece(state_dir, PIECES - 1)) {
        return Ok(());
    }
    for number in 0..PIECES {
        let path = piece(state_dir, number);
        let make = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = match make() {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if is_whole(&path) {
                    continue;
                }
                // A service that was killed here left an empty one. What somebody else put here, a
                // pipe or a link, is never opened.
                std::fs::remove_file(&path)?;
                make()?
            }
            Err(error) => return Err(error),
        };
        // A file with holes keeps nothing. Where the file system cannot do it, zeros are written.
        let written = fallocate(&file, FallocateFlags::empty(), 0, PIECE)
            .map_err(io::Error::from)
            .or_else(|_| io::copy(&mut io::Read::take(io::repeat(0), PIECE), &mut &file).map(drop));
        if let Err(error) = written {
            let _ = std::fs::remove_file(path); // less is kept
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever can write here must not hold up a stop, or have other files changed.
    #[test]
    fn h91_what_somebody_put_in_the_place_of_kept_space_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("reserve")).unwrap();
        let other = dir.path().join("other");
        std::fs::write(&other, "mine").unwrap();
        let at = |number| piece(dir.path(), number);
        let pipe = std::process::Command::new("mkfifo").arg(at(PIECES - 1)).status().unwrap();
        assert!(pipe.success());
        std::os::unix::fs::symlink(&other, at(0)).unwrap();
        std::os::unix::fs::symlink("nowhere", at(1)).unwrap();
        std::os::unix::net::UnixListener::bind(at(2)).unwrap();
        std::fs::write(at(3), "short").unwrap();
        keep(dir.path()).unwrap();
        for number in 0..PIECES {
            let facts = std::fs::symlink_metadata(at(number)).unwrap();
            assert!(facts.is_file() && facts.len() == PIECE, "{number}");
        }
        assert_eq!(std::fs::read_to_string(other).unwrap(), "mine");
        assert!(!dir.path().join("reserve/nowhere").exists());
    }

    /// A link that somebody planted must not have files of another directory removed.
    #[test]
    fn h91_what_leads_elsewhere_in_the_place_of_kept_space_costs_no_file() {
        let root = tempfile::tempdir().unwrap();
        let other = root.path().join("other");
        std::fs::create_dir(&other).unwrap();
        for name in ["0", "7", "47", "x"] {
            std::fs::write(other.join(name), "mine").unwrap();
        }
        std::fs::write(root.path().join("file"), "mine").unwrap();
        for (n, target) in ["other", "file", "nowhere", "."].into_iter().enumerate() {
            let dir = root.path().join(format!("state-{n}"));
            std::fs::create_dir(&dir).unwrap();
            std::os::unix::fs::symlink(root.path().join(target), dir.join("reserve")).unwrap();
            assert!(keep(&dir).is_err(), "{target}");
            for _ in 0..PIECES {
                free_one(&dir).unwrap();
            }
        }
        for name in ["0", "7", "47", "x"] {
            assert_eq!(std::fs::read_to_string(other.join(name)).unwrap(), "mine");
        }
        assert_eq!(std::fs::read_dir(&other).unwrap().count(), 4);
        assert_eq!(std::fs::read_to_string(root.path().join("file")).unwrap(), "mine");
    }

    #[test]
    fn h91_space_is_kept_once_and_freed_piece_by_piece() {
        let dir = tempfile::tempdir().unwrap();
        keep(dir.path()).unwrap();
        keep(dir.path()).unwrap();
        let kept = || std::fs::read_dir(dir.path().join("reserve")).unwrap().count();
        assert_eq!(kept(), usize::try_from(PIECES).unwrap());
        let facts = std::fs::metadata(piece(dir.path(), 0)).unwrap();
        let on_disk = std::os::unix::fs::MetadataExt::blocks(&facts) * 512;
        assert!(on_disk >= PIECE, "{on_disk}");
        free_one(dir.path()).unwrap();
        assert_eq!(kept(), usize::try_from(PIECES).unwrap() - 1);
        for _ in 0..PIECES + 5 {
            free_one(dir.path()).unwrap();
        }
        assert_eq!(kept(), 0);
    }
}
