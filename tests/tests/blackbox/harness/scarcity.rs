//! What runs out on purpose: the space of a directory, the limits of a process.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system at one directory, for one test.
pub struct SmallDisk {
    dir: PathBuf,
}

impl SmallDisk {
    /// `None` where this user may mount nothing.
    pub fn at(dir: &Path, mebibytes: u32) -> Option<Self> {
        fs::create_dir_all(dir).unwrap();
        let size = format!("size={mebibytes}m,mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir);
        let is_mounted = mount.output().is_ok_and(|done| done.status.success());
        is_mounted.then(|| Self { dir: dir.to_owned() })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Leaves no byte free.
    pub fn fill(&self) -> PathBuf {
        let path = self.dir.join("ballast");
        let mut file = File::create(&path).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            let block = vec![b'x'; size];
            while file.write_all(&block).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: what still runs in it ends with its world.
        let _ = Command::new("umount").arg("-l").arg(&self.dir).output();
    }
}

/// Sets a limit of a running process, as `prlimit` does.
pub fn limit(pid: i32, what: &str, value: &str) -> bool {
    limit_as(None, pid, what, value)
}

/// The same as this user.
pub fn limit_as(uid: Option<u32>, pid: i32, what: &str, value: &str) -> bool {
    let mut set = Command::new("prlimit");
    if let Some(uid) = uid {
        set.uid(uid).gid(uid);
    }
    set.arg(format!("--pid={pid}")).arg(format!("--{what}={value}"));
    set.output().is_ok_and(|done| done.status.success())
}

/// How many descriptors a process has open.
pub fn open_descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}
