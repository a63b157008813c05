//! Opens files of a project without leaving its directory (H38, H41).
//!
//! The content of a project is not trusted. A link must not lead out of it, and a pipe must not block.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

/// Opens `inside`, a relative path of plain names, below `project` for reading.
///
/// Links are followed if the kernel can guarantee that they stay inside, otherwise not at all. The
/// result may be a pipe or a directory: check the kind before reading.
///
/// # Errors
/// `NotFound` if it does not exist. Another error if it may not be opened.
pub(crate) fn open(project: &Path, inside: &Path) -> io::Result<File> {
    let project = openat(CWD, project, DIRECTORY, Mode::empty())?;
    match beneath(&project, inside) {
        // Kernels before 5.6, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(project, inside),
        opened => Ok(File::from(opened?)),
    }
}

/// Opens a directory to look below it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

#[cfg(target_os = "linux")]
fn beneath(project: &OwnedFd, inside: &Path) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let stay = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    openat2(project, inside, READ, Mode::empty(), stay)
}

#[cfg(not(target_os = "linux"))]
fn beneath(_project: &OwnedFd, _inside: &Path) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

fn step_by_step(project: OwnedFd, inside: &Path) -> io::Result<File> {
    let mut at = project;
    let mut names = inside.components().peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = if names.peek().is_some() { READ | OFlags::DIRECTORY } else { READ };
        at = openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(File::from(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    fn text(opened: io::Result<File>) -> Option<String> {
        let mut text = String::new();
        opened.ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// H38.
    #[test]
    fn a_link_is_followed_at_most_inside_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("p");
        fs::create_dir_all(project.join("own")).unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        fs::write(dir.path().join("out/file"), "secret").unwrap();
        fs::write(project.join("own/file"), "own").unwrap();
        symlink("own/file", project.join("near")).unwrap();
        symlink("../out/file", project.join("away")).unwrap();
        symlink(project.join("own/file"), project.join("absolute")).unwrap();
        symlink("../out", project.join("away-dir")).unwrap();
        let old_system = |inside: &str| {
            let project = openat(CWD, &project, DIRECTORY, Mode::empty()).unwrap();
            step_by_step(project, Path::new(inside))
        };
        let opened = |inside: &str| open(&project, Path::new(inside));
        assert_eq!(text(opened("own/file")).as_deref(), Some("own"));
        assert_eq!(text(old_system("own/file")).as_deref(), Some("own"));
        assert!(matches!(text(opened("near")).as_deref(), Some("own") | None));
        assert_eq!(text(old_system("near")), None);
        for inside in ["away", "absolute", "away-dir/file", "../out/file", "/etc/passwd"] {
            for error in [opened(inside).unwrap_err(), old_system(inside).unwrap_err()] {
                assert_ne!(error.kind(), io::ErrorKind::NotFound, "{inside}");
            }
        }
        for error in [opened("own/none").unwrap_err(), old_system("own/none").unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
