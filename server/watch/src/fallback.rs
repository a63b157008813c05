//! Polling: how often, and which file systems need it.

use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How often to read a directory whose changes nobody reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Interval at first.
    pub fast: Duration,
    /// How long "at first" lasts.
    pub fast_for: Duration,
    /// Interval afterwards.
    pub slow: Duration,
}

impl Pace {
    /// Waiting for a start: 250 ms for 15 s, then 2 s (`agent-cli` §3.3).
    pub const START: Self = Self {
        fast: Duration::from_millis(250),
        fast_for: Duration::from_secs(15),
        slow: Duration::from_secs(2),
    };
    /// A person watches: 250 ms (`http-api` §4.3).
    pub const VIEW: Self = Self::every(Duration::from_millis(250));
    /// A directory that rarely changes: 2 s (`agent-cli` §6.4, §8.1).
    pub const DIRECTORY: Self = Self::every(Duration::from_secs(2));

    /// The same interval for ever.
    #[must_use]
    pub const fn every(interval: Duration) -> Self {
        Self { fast: interval, fast_for: Duration::ZERO, slow: interval }
    }

    pub(crate) fn next(&self, since: Instant) -> Duration {
        if since.elapsed() < self.fast_for { self.fast } else { self.slow }
    }
}

/// Whether the kernel reports every change below `path`.
///
/// Network and user-space file systems can change without the kernel's knowledge. An unknown file
/// system counts as reporting. May block as long as the file system does.
#[cfg(target_os = "linux")]
#[must_use]
pub fn reports_changes(path: &Path) -> bool {
    // Numbers of `linux/magic.h`: NFS, SMB, CIFS, SMB2, 9P, FUSE, Ceph, AFS, Coda, GFS2, OCFS2.
    const SILENT: [u32; 11] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
        0x6573_5546,
        0x00c3_6400,
        0x5346_414f,
        0x7375_7245,
        0x0116_1970,
        0x7461_636f,
    ];
    rustix::fs::statfs(path).map_or(true, |fs| {
        // The type is a 32-bit number that some platforms store sign-extended.
        let kind = u32::try_from(fs.f_type & 0xffff_ffff).unwrap_or(0);
        !SILENT.contains(&kind)
    })
}

/// Whether the kernel reports every change below `path`.
///
/// This system cannot tell, and native watches are tried first: true.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn reports_changes(_path: &Path) -> bool {
    true
}
