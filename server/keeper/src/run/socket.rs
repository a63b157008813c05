//! The keeper's socket: a random name in a private directory, in a short path.

use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use svc_process::files;

/// Longest path. The kernel takes 107 bytes here and 103 on other systems.
const MAX_PATH_BYTES: usize = 100;
/// Six random bytes are taken once in a lifetime; planted names are another matter.
const ATTEMPTS: u32 = 8;

pub(super) struct Bound {
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
}

/// Binds a new socket in the wanted directory, or in a shorter one of this user.
pub(super) fn bind(wanted: &Path) -> io::Result<Bound> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = PathBuf::from(format!("/run/user/{user}"));
    let mut failure = match bind_in(wanted) {
        Ok(bound) => return Ok(bound),
        Err(error) => error,
    };
    if runtime.is_dir() {
        match bind_in(&runtime.join("svc")) {
            Ok(bound) => return Ok(bound),
            Err(error) => failure = error,
        }
    }
    let temporary = Path::new("/tmp").join(format!("svc-{}", random_name()?));
    match std::fs::DirBuilder::new().mode(0o700).create(&temporary) {
        Ok(()) => bind_in(&temporary).inspect_err(|_| {
            let _ = std::fs::remove_dir(&temporary); // it may hold nothing of ours
        }),
        Err(_) => Err(failure),
    }
}

fn random_name() -> io::Result<String> {
    let mut random = [0; 6];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(hex::encode(random))
}

fn bind_in(directory: &Path) -> io::Result<Bound> {
    let length = directory.join("0123456789ab.sock").as_os_str().as_bytes().len();
    if length > MAX_PATH_BYTES {
        return Err(io::Error::other("the path of a socket in there would be too long"));
    }
    files::private_directory(directory).map_err(io::Error::other)?;
    let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..ATTEMPTS {
        match bind_at(directory.join(format!("{}.sock", random_name()?))) {
            Ok(bound) => return Ok(bound),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Binds at a path where nothing is.
///
/// A file or link there, even a dangling one, is an error.
fn bind_at(path: PathBuf) -> io::Result<Bound> {
    // With the umask 077 it is 0700 from its first moment, in a directory that is private too.
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, Permissions::from_mode(files::PRIVATE))?;
    listener.set_nonblocking(true)?;
    Ok(Bound { listener, path })
}

/// Removes the socket, and its directory if that was made for it alone.
pub(super) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path); // somebody removed it: fine
    if let Some(directory) = path.parent().filter(|directory| directory.starts_with("/tmp")) {
        let _ = std::fs::remove_dir(directory); // others use it: fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixStream;

    #[test]
    fn h63_a_planted_link_or_file_is_neither_followed_nor_changed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        let link = dir.path().join("link.sock");
        symlink(&target, &link).unwrap();
        assert!(bind_at(link).is_err());
        assert!(!target.exists(), "a dangling link is not followed");
        let file = dir.path().join("file.sock");
        std::fs::write(&file, "kept").unwrap();
        assert!(bind_at(file.clone()).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
        // A file in the place of the directory: the start succeeds elsewhere.
        let bound = bind(&file).unwrap();
        assert!(UnixStream::connect(&bound.path).is_ok());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
        remove(&bound.path);
    }

    #[test]
    fn h63_f67_a_long_state_directory_gets_its_socket_elsewhere_and_all_are_private() {
        svc_process::process_umask::harden();
        let dir = tempfile::tempdir().unwrap();
        for wanted in [dir.path().join("k"), dir.path().join("x".repeat(200))] {
            let bound = bind(&wanted).unwrap();
            assert!(bound.path.as_os_str().len() <= MAX_PATH_BYTES);
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&bound.path), 0o600);
            assert_eq!(mode(bound.path.parent().unwrap()), 0o700);
            remove(&bound.path);
            assert!(!bound.path.exists());
        }
    }
}
