//! Puts a staged directory in the place of another one, and back.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that is in its place, and how that is undone.
#[derive(Debug)]
pub(super) struct Swapped {
    staged: PathBuf,
    target: PathBuf,
    how: How,
}

#[derive(Debug)]
enum How {
    /// There was nothing, or an empty directory.
    Placed { was_there: bool },
    /// In one step: what was there is where the staged one was.
    Exchanged,
    /// In two: what was there is here.
    Aside(PathBuf),
    /// Entry by entry: from where to where each was moved.
    Moved(Vec<(PathBuf, PathBuf)>),
}

/// Why a swap failed.
#[derive(Debug)]
pub(super) enum SwapError {
    /// Everything is as it was.
    Nothing(io::Error),
    /// What was there is at this path.
    Stranded(PathBuf, io::Error),
    /// Nothing was there, and the new directory stays.
    Stays(io::Error),
}

/// Puts `staged` in the place of `target`. `aside` is a free name beside `staged`.
///
/// A target that `was_free` must be free still: a service that has begun to fill it meanwhile would
/// lose its directory.
///
/// # Errors
/// As [`SwapError`] says.
pub(super) fn swap(
    staged: &Path,
    target: &Path,
    aside: &Path,
    was_free: bool,
) -> Result<Swapped, SwapError> {
    let done = |how| Swapped { staged: staged.to_owned(), target: target.to_owned(), how };
    if was_free {
        let was_there = target.exists();
        // A rename replaces an empty directory and no other one; the kernel decides.
        fs::rename(staged, target).map_err(SwapError::Nothing)?;
        return Ok(done(How::Placed { was_there }));
    }
    match renameat_with(CWD, staged, CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => return Ok(done(How::Exchanged)),
        // Not every file system can do it in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(SwapError::Nothing(errno.into())),
    }
    in_two_steps(staged, target, aside).map(|()| done(How::Aside(aside.to_owned())))
}

fn in_two_steps(staged: &Path, target: &Path, aside: &Path) -> Result<(), SwapError> {
    fs::rename(target, aside).map_err(SwapError::Nothing)?;
    fs::rename(staged, target).map_err(|error| match fs::rename(aside, target) {
        Ok(()) => SwapError::Nothing(error),
        Err(_) => SwapError::Stranded(aside.to_owned(), error),
    })
}

/// Puts what is in `staged` into `target`, entry by entry.
///
/// What was there goes into `aside`. Both lie in a directory of `target`, which stays meanwhile.
/// The entry `last` goes first and comes last: where it is missing beside that directory, the swap
/// was interrupted. The entry `keep` stays.
///
/// # Errors
/// As [`SwapError`] says.
pub(super) fn swap_inside(
    (staged, target, aside): (&Path, &Path, &Path),
    was_free: bool,
    keep: &str,
    last: &str,
) -> Result<Swapped, SwapError> {
    let own = staged.parent().unwrap_or(target);
    let is_moved = |path: &PathBuf| path != own && !path.ends_with(keep);
    let mut old: Vec<PathBuf> = listed(target)?.into_iter().filter(is_moved).collect();
    // First out and last in: while anything is on its way, it is missing.
    old.sort_by_key(|path| !path.ends_with(last));
    if was_free && !old.is_empty() {
        return Err(SwapError::Nothing(io::ErrorKind::DirectoryNotEmpty.into()));
    }
    let mut new = listed(staged)?;
    new.sort_by_key(|path| path.ends_with(last));
    fs::create_dir(aside).map_err(SwapError::Nothing)?;
    let mut moved = Vec::new();
    for (paths, into) in [(old, aside), (new, target)] {
        for from in paths {
            let to = into.join(from.file_name().unwrap_or_default());
            if let Err(error) = fs::rename(&from, &to) {
                return match back(&moved) {
                    Ok(()) => Err(SwapError::Nothing(error)),
                    Err(_) => Err(SwapError::Stranded(own.to_owned(), error)),
                };
            }
            moved.push((from, to));
        }
    }
    let how = How::Moved(moved);
    Ok(Swapped { staged: staged.to_owned(), target: target.to_owned(), how })
}

fn listed(directory: &Path) -> Result<Vec<PathBuf>, SwapError> {
    let entries = fs::read_dir(directory).map_err(SwapError::Nothing)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<io::Result<_>>().map_err(SwapError::Nothing)
}

/// Takes moves back, the last one first.
fn back(moved: &[(PathBuf, PathBuf)]) -> io::Result<()> {
    moved.iter().rev().try_for_each(|(from, to)| fs::rename(to, from))
}

/// Whether there is nothing, or a directory with nothing in it.
pub(super) fn is_free(target: &Path) -> io::Result<bool> {
    match fs::read_dir(target) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

impl Swapped {
    /// Takes the swap back.
    ///
    /// # Errors
    /// As [`SwapError`] says.
    pub(super) fn undo(self) -> Result<(), SwapError> {
        let Self { staged, target, how } = self;
        match how {
            How::Placed { was_there } => {
                let back = fs::rename(&target, &staged);
                let made =
                    back.and_then(|()| if was_there { fs::create_dir(&target) } else { Ok(()) });
                made.map_err(SwapError::Stays)
            }
            How::Exchanged => renameat_with(CWD, &staged, CWD, &target, RenameFlags::EXCHANGE)
                .map_err(|errno| SwapError::Stranded(staged, errno.into())),
            // What was there and what was staged are both below it.
            How::Moved(moved) => back(&moved).map_err(|error| {
                let own = staged.parent().unwrap_or(&staged).to_owned();
                SwapError::Stranded(own, error)
            }),
            How::Aside(aside) => {
                let back = fs::rename(&target, &staged).and_then(|()| fs::rename(&aside, &target));
                back.map_err(|error| SwapError::Stranded(aside, error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(root: &Path, name: &str, content: &str) -> PathBuf {
        let directory = root.join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("file"), content).unwrap();
        directory
    }

    fn content(directory: &Path) -> String {
        fs::read_to_string(directory.join("file")).unwrap()
    }

    #[test]
    fn h40_a_swap_replaces_and_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let staged = tree(dir.path(), "staged", "new");
        let target = tree(dir.path(), "target", "old");
        let aside = dir.path().join("aside");
        let swapped = swap(&staged, &target, &aside, false).unwrap();
        assert_eq!(content(&target), "new");
        swapped.undo().unwrap();
        assert_eq!((content(&target), content(&staged)), ("old".into(), "new".into()));
        in_two_steps(&staged, &target, &aside).unwrap();
        assert_eq!((content(&target), content(&aside)), ("new".into(), "old".into()));
        let undo =
            Swapped { staged: staged.clone(), target: target.clone(), how: How::Aside(aside) };
        undo.undo().unwrap();
        assert_eq!((content(&target), content(&staged)), ("old".into(), "new".into()));
    }

    #[test]
    fn h40_a_swap_inside_the_target_replaces_each_entry_and_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let target = tree(dir.path(), "target", "old");
        fs::write(target.join("only old"), "").unwrap();
        fs::write(target.join("run.lock"), "ours").unwrap();
        let own = target.join(".staging");
        fs::create_dir(&own).unwrap();
        let staged = tree(&own, "staged", "new");
        fs::create_dir(staged.join("logs")).unwrap();
        let places = (staged.as_path(), target.as_path(), &*own.join("aside"));
        let full = swap_inside(places, true, "run.lock", "file");
        assert!(matches!(full, Err(SwapError::Nothing(_))), "{full:?}");
        let swapped = swap_inside(places, false, "run.lock", "file").unwrap();
        // Killed anywhere in between, it is missing.
        let How::Moved(moved) = &swapped.how else { panic!("{:?}", swapped.how) };
        assert!(
            moved[0].0 == target.join("file") && moved.last().unwrap().1 == target.join("file")
        );
        assert_eq!(content(&target), "new");
        assert!(target.join("logs").is_dir() && !target.join("only old").exists());
        assert_eq!(fs::read_to_string(target.join("run.lock")).unwrap(), "ours");
        swapped.undo().unwrap();
        assert_eq!((content(&target), content(&staged)), ("old".into(), "new".into()));
        assert!(target.join("only old").exists() && !target.join("logs").exists());
    }

    #[test]
    fn h40_a_failed_second_step_puts_the_old_one_back() {
        let dir = tempfile::tempdir().unwrap();
        let target = tree(dir.path(), "target", "old");
        let failed = in_two_steps(&dir.path().join("none"), &target, &dir.path().join("aside"));
        assert!(matches!(failed, Err(SwapError::Nothing(_))), "{failed:?}");
        assert_eq!(content(&target), "old");
    }

    #[test]
    fn h40_a_directory_that_was_filled_meanwhile_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let staged = tree(dir.path(), "staged", "new");
        let target = tree(dir.path(), "target", "of a service that started");
        let swapped = swap(&staged, &target, &dir.path().join("aside"), true);
        assert!(matches!(swapped, Err(SwapError::Nothing(_))), "{swapped:?}");
        assert_eq!(content(&target), "of a service that started");
    }

    #[test]
    fn an_empty_directory_is_replaced_and_comes_back_empty() {
        let dir = tempfile::tempdir().unwrap();
        let staged = tree(dir.path(), "staged", "new");
        let target = dir.path().join("target");
        fs::create_dir(&target).unwrap();
        let swapped = swap(&staged, &target, &dir.path().join("aside"), true).unwrap();
        assert_eq!(content(&target), "new");
        swapped.undo().unwrap();
        assert_eq!(content(&staged), "new");
        assert!(is_free(&target).unwrap() && target.is_dir());
    }
}
