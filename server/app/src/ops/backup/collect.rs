//! What of a state directory goes into an archive.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use svc_archive::MemberPath;

/// Entries of the state directory that belong to one running machine.
///
/// `reserve` holds space and no content; the lock files mean something only to who holds them.
const OF_THIS_MACHINE: [&str; 3] = ["locks", "run.lock", "reserve"];
/// Ends of names that are never archived.
///
/// The copy of the database has everything in itself.
const NEVER: [&str; 4] = [".db-wal", ".db-shm", ".db-journal", ".tmp"];

/// Begin and end of the names of archives that `svc backup` makes up.
pub(super) const ARCHIVE: (&str, &str) = ("svc-backup-", ".tar.gz");

/// What to take beside the records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub logs: bool,
    pub deps: bool,
    /// The directory that the archive goes into.
    pub output: &'a Path,
}

impl Wanted<'_> {
    /// Whether a file is an archive of before.
    ///
    /// With those in it, each archive would be as large as all before it together. In the directory
    /// of the new one others were given their names by whoever made them.
    fn is_archive(self, path: &Path, name: &str) -> bool {
        let (begin, end) = ARCHIVE;
        name.ends_with(end)
            && (name.starts_with(begin) || path.parent().is_some_and(|dir| self.is_output(dir)))
    }

    fn is_output(self, directory: &Path) -> bool {
        let id = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
        id(directory).is_some_and(|own| id(self.output) == Some(own))
    }
}

/// A file or directory to archive.
#[derive(Debug)]
pub(super) struct Found {
    pub path: PathBuf,
    pub name: MemberPath,
    pub is_directory: bool,
}

/// The tree in order, directories before what they hold.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub found: Vec<Found>,
    pub warnings: Vec<String>,
}

/// Lists what is to be archived. Links are not followed.
///
/// # Errors
/// The state directory itself cannot be listed. Anything else is a warning.
pub(super) fn collect(state_dir: &Path, wanted: Wanted<'_>) -> io::Result<Collected> {
    let mut collected = Collected::default();
    let mut waiting = Vec::new();
    for (path, name) in listed(state_dir)? {
        let is_left_out = OF_THIS_MACHINE.contains(&name.as_str())
            || name == super::DATABASE
            || (name == "logs" && !wanted.logs)
            || (name == "deps" && !wanted.deps);
        if !is_left_out {
            waiting.push((path, format!("state/{name}")));
        }
    }
    // The last one is next.
    waiting.reverse();
    while let Some((path, name)) = waiting.pop() {
        if let Some(directory) = collected.take(path, &name, wanted) {
            match listed(&directory) {
                Ok(inner) => waiting.extend(
                    inner.into_iter().rev().map(|(path, inner)| (path, format!("{name}/{inner}"))),
                ),
                Err(error) => collected.warn(&directory, &error.to_string()),
            }
        }
    }
    Ok(collected)
}

/// Entries of a directory by name. One that is no text has `\u{fffd}` in it.
fn listed(directory: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        entries.push((entry.path(), entry.file_name().to_string_lossy().into_owned()));
    }
    entries.sort();
    Ok(entries)
}

impl Collected {
    fn warn(&mut self, path: &Path, reason: &str) {
        self.warnings.push(format!("{} is not in the archive ({reason})", path.display()));
    }

    /// Takes an entry; returns it when it is a directory to go into.
    fn take(&mut self, path: PathBuf, name: &str, wanted: Wanted<'_>) -> Option<PathBuf> {
        if NEVER.iter().any(|end| name.ends_with(end)) {
            return None;
        }
        let kind = match fs::symlink_metadata(&path) {
            Ok(meta) => meta.file_type(),
            Err(error) => {
                self.warn(&path, &error.to_string());
                return None;
            }
        };
        if kind.is_symlink() {
            self.warn(&path, "it is a symbolic link");
            return None;
        }
        if !kind.is_file() && !kind.is_dir() {
            return None; // sockets and pipes mean nothing elsewhere
        }
        let own_name = name.rsplit('/').next().unwrap_or_default();
        if kind.is_file() && wanted.is_archive(&path, own_name) {
            return None;
        }
        if path.to_str().is_none() {
            self.warn(&path, "its name is not UTF-8");
            return None;
        }
        let name = match MemberPath::new(name.as_bytes()) {
            Ok(name) => name,
            // A restore would refuse the whole archive for it.
            Err(reason) => {
                self.warn(&path, &format!("its name {reason}"));
                return None;
            }
        };
        self.found.push(Found { path: path.clone(), name, is_directory: kind.is_dir() });
        kind.is_dir().then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn h119_only_what_means_something_elsewhere_is_archived() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = dir.path();
        for directory in ["locks", "logs", "deps/bin", "hosted", "backups", "reserve", "run"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [
            "svc.db",
            "svc.db-wal",
            "svc.db-shm",
            "run.lock",
            "session.secret",
            "session.epoch",
            "locks/a.lock",
            "reserve/1",
            "logs/api-1-1.log",
            "deps/bin/tool",
            "hosted/token",
            ".svc-1-2-x.tmp",
            "backups/pre-1-2-20250131T235959_000001Z.db",
            "odd\\name",
        ] {
            fs::write(root.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let _socket = UnixListener::bind(root.join("hosted/daemon.sock")).unwrap();
        let names = |wanted| {
            let collected = collect(root, wanted).unwrap();
            let names: Vec<String> =
                collected.found.iter().map(|found| found.name.to_string()).collect();
            (names, collected.warnings)
        };
        let (all, warnings) = names(Wanted { logs: true, deps: true, output: elsewhere.path() });
        assert_eq!(
            all,
            [
                "state/backups",
                "state/backups/pre-1-2-20250131T235959_000001Z.db",
                "state/deps",
                "state/deps/bin",
                "state/deps/bin/tool",
                "state/hosted",
                "state/hosted/token",
                "state/logs",
                "state/logs/api-1-1.log",
                "state/run",
                "state/session.epoch",
                "state/session.secret",
            ]
        );
        assert_eq!(warnings.len(), 2, "the link and the odd name: {warnings:?}");
        let (few, _) = names(Wanted { logs: false, deps: false, output: elsewhere.path() });
        assert!(!few.iter().any(|name| name.contains("logs") || name.contains("deps")), "{few:?}");
    }
}
