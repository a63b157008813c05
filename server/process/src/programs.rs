//! Which processes run from a program file, told by the file and not by its path.

use crate::{sockets, table};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A process that runs from this file, if there is one.
///
/// Blocks. A process of another user cannot be looked into and counts as none.
///
/// # Errors
/// The process table cannot be listed.
pub fn running_from(program: &Path) -> io::Result<Option<i32>> {
    let Ok(wanted) = std::fs::metadata(program) else { return Ok(None) };
    let table = table::ProcTable::open().map_err(io::Error::other)?;
    Ok(table.pids().into_iter().find(|pid| runs(*pid, &wanted)))
}

/// The file that a process runs from, without links.
///
/// If the file was replaced meanwhile, its name is that of the new one. Blocks for one look.
///
/// # Errors
/// The process is gone or another user's, or the file is.
pub fn program_of(pid: i32) -> io::Result<PathBuf> {
    table::running_file(pid)?.canonicalize()
}

/// Whether a process runs from this file.
///
/// Blocks for one look.
#[must_use]
pub fn runs_from(pid: i32, program: &Path) -> bool {
    std::fs::metadata(program).is_ok_and(|wanted| runs(pid, &wanted))
}

fn runs(pid: i32, wanted: &std::fs::Metadata) -> bool {
    let found = table::running_metadata(pid);
    found.is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
}

/// The process that listens on a socket, if there is one.
///
/// Blocks for one connection.
#[must_use]
pub fn listener_of(socket: &Path) -> Option<i32> {
    let stream = UnixStream::connect(socket).ok()?;
    sockets::peer_pid(&stream).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_the_file_it_runs_from() {
        let own = std::env::current_exe().unwrap();
        let pid = rustix::process::getpid().as_raw_pid();
        assert!(runs_from(pid, &own));
        assert!(running_from(&own).unwrap().is_some());
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        std::fs::copy(&own, &copy).unwrap();
        assert_eq!(running_from(&copy).unwrap(), None, "a copy is another file");
        assert_eq!(running_from(&dir.path().join("missing")).unwrap(), None);
    }

    #[test]
    fn the_listener_of_a_socket_is_named_by_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        assert_eq!(listener_of(&path), None);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(listener_of(&path), Some(rustix::process::getpid().as_raw_pid()));
        drop(listener);
        assert_eq!(listener_of(&path), None, "a file alone listens to nobody");
    }
}
