//! Where the kernel shows the control group of a process.
//!
//! In version 2 all controllers share one directory. In version 1 each controller has a tree of its
//! own; a machine may use both versions, and then a controller is in version 1 (`cgroups(7)`).

use std::path::{Component, Path, PathBuf};

/// The version of the interface, which decides the names of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The directory of a control group for one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlGroup {
    pub(crate) version: Version,
    pub(crate) dir: PathBuf,
}

impl ControlGroup {
    /// The group of a process for a controller such as `memory`.
    ///
    /// `groups` is the text of its `/proc/PID/cgroup`, `mounts` that of our `/proc/self/mountinfo`.
    /// `None` if the file system of the controller is not mounted, or does not show this group.
    pub(crate) fn find(mounts: &str, groups: &str, controller: &str) -> Option<Self> {
        let lines = || groups.lines().filter_map(GroupLine::parse);
        let in_one = lines().find(|line| line.controllers.split(',').any(|one| one == controller));
        let in_two = || lines().find(|line| line.number == "0" && line.controllers.is_empty());
        let (version, line) = match in_one {
            Some(line) => (Version::One, line),
            None => (Version::Two, in_two()?),
        };
        mounts.lines().filter_map(MountLine::parse).find_map(|mount| {
            let is_it = match version {
                Version::One => {
                    mount.kind == "cgroup" && mount.options.split(',').any(|one| one == controller)
                }
                Version::Two => mount.kind == "cgroup2",
            };
            // Both paths are relative to the root of our control group namespace.
            let below = Path::new(line.path).strip_prefix(mount.root).ok().filter(|_| is_it)?;
            let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
            is_plain.then(|| Self { version, dir: Path::new(mount.point).join(below) })
        })
    }

    /// The name of the group.
    pub(crate) fn name(&self) -> Option<&str> {
        self.dir.file_name()?.to_str()
    }
}

/// A line of `/proc/PID/cgroup` (`cgroups(7)`).
struct GroupLine<'a> {
    number: &'a str,
    controllers: &'a str,
    path: &'a str,
}

impl<'a> GroupLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self { number, controllers, path })
    }
}

/// A line of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
struct MountLine<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> MountLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // The number of fields before the hyphen varies.
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        Some(Self {
            root: before.next()?,
            point: before.next()?,
            kind: after.next()?,
            options: after.nth(1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO: &str =
        "28 21 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    /// Debian 12 in a namespace, version 1 beside version 2.
    const BOTH: &str = "47 46 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n\
                        49 47 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
                        51 47 0:32 /../.. /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                        57 47 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_group_is_found_in_either_version() {
        let find = |mounts, groups, controller| {
            let group = ControlGroup::find(mounts, groups, controller)?;
            Some((group.version, group.dir.to_str().unwrap().to_owned()))
        };
        let two = Some((Version::Two, "/sys/fs/cgroup/a.slice/b.scope".to_owned()));
        assert_eq!(find(TWO, "0::/a.slice/b.scope\n", "memory"), two);
        let both = "4:memory:/../../a.slice/b.scope\n2:cpu,cpuacct:/x\n0::/a.slice/b.scope\n";
        let memory = Some((Version::One, "/sys/fs/cgroup/memory/a.slice/b.scope".to_owned()));
        assert_eq!(find(BOTH, both, "memory"), memory);
        let cpu = Some((Version::One, "/sys/fs/cgroup/cpuacct/x".to_owned()));
        assert_eq!(find(BOTH, both, "cpuacct"), cpu);
        let other = Some((Version::Two, "/sys/fs/cgroup/unified/a.slice/b.scope".to_owned()));
        assert_eq!(find(BOTH, both, "pids"), other);
        // Not mounted, or outside of what is mounted.
        assert_eq!(find("", both, "memory"), None);
        assert_eq!(find(BOTH, "4:memory:/elsewhere\n", "memory"), None);
        assert_eq!(find(TWO, "0::/../b.scope\n", "memory"), None);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(mounts in "[a-z0-9 :/.,\\n-]{0,90}", groups in "[0-9a-z:/.,\\n]{0,60}") {
            let _ = ControlGroup::find(&mounts, &groups, "memory");
        }
    }
}
