//! Where this program is, as it was called.
//!
//! The kernel names the file itself. Who called it by a link means whatever the link leads to when
//! it is called again: after an update that is another version.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static OWN: OnceLock<PathBuf> = OnceLock::new();
/// Device and number of its file, as they were when it was found out.
static FILE: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// Finds out where this program is.
///
/// Call it at the start: a file that is replaced later has no path any more. Later calls change
/// nothing.
pub fn remember() {
    let _ = path();
}

/// The absolute path of this program.
///
/// That is the name it was called by, if that leads to it.
///
/// # Errors
/// The process table does not say.
pub fn path() -> io::Result<PathBuf> {
    if let Some(known) = OWN.get() {
        return Ok(known.clone());
    }
    let own = std::env::current_exe()?;
    let _ = FILE.get_or_init(|| std::fs::metadata(&own).ok().map(|file| (file.dev(), file.ino())));
    let called = std::env::args_os().next().unwrap_or_default();
    let found = as_called(&own, &called, std::env::var_os("PATH"));
    Ok(OWN.get_or_init(|| found.unwrap_or(own)).clone())
}

/// Device and number of the file that this program runs from.
#[must_use]
pub fn file_id() -> Option<(u64, u64)> {
    // Linux leads to the file wherever it is now.
    if cfg!(target_os = "linux") {
        let file = std::fs::metadata("/proc/self/exe").ok()?;
        return Some((file.dev(), file.ino()));
    }
    path().ok()?;
    FILE.get().copied().flatten()
}

/// The name that a program was called by, if it leads to the program.
fn as_called(own: &Path, called: &OsStr, path: Option<OsString>) -> Option<PathBuf> {
    let real = own.canonicalize().ok()?;
    let is_own = |name: &PathBuf| name.canonicalize().is_ok_and(|found| found == real);
    if called.as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(called).ok().filter(is_own);
    }
    let path = path?;
    let mut named =
        std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(called));
    // The first of the name is what a shell takes.
    named.find(|name| name.is_file()).filter(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_stays_a_link_and_another_program_of_the_name_is_not_ours() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (real, bin, other) = (dir.join("svc-1"), dir.join("bin"), dir.join("other"));
        for made in [&bin, &other] {
            fs::create_dir(made).unwrap();
        }
        fs::write(&real, "").unwrap();
        let link = bin.join("svc");
        symlink(&real, &link).unwrap();
        fs::write(other.join("svc"), "").unwrap();
        let path = |dirs: &[&Path]| Some(std::env::join_paths(dirs).unwrap());
        let found = |called: &OsStr, dirs| as_called(&real, called, dirs);
        assert_eq!(found(link.as_os_str(), None), Some(link.clone()));
        assert_eq!(found(OsStr::new("svc"), path(&[&bin, &other])), Some(link.clone()));
        assert_eq!(found(OsStr::new("svc"), path(&[&other, &bin])), None);
        assert_eq!(found(OsStr::new("svc"), path(&[Path::new("relative")])), None);
        assert_eq!(found(other.join("svc").as_os_str(), None), None);
        assert_eq!(found(real.as_os_str(), None), Some(real.clone()));
    }

    #[test]
    fn this_program_is_found() {
        let own = path().unwrap();
        assert!(own.is_absolute());
        assert_eq!(
            own.canonicalize().unwrap(),
            std::env::current_exe().unwrap().canonicalize().unwrap()
        );
    }
}
