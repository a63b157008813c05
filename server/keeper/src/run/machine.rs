//! What several parts of the keeper ask of the machine: its terminal and its clock.

use crate::screen::Size;
use rustix::termios::Winsize;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};
use svc_shared::Timestamp;

/// The end of the terminal that the agent gets.
pub(super) struct Terminal {
    pub(super) master: OwnedFd,
    pub(super) slave: OwnedFd,
}

/// Now, on the clock that people read.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Processor time that this process, one thread, has used.
pub(super) fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Size of a terminal as the kernel takes it.
pub(super) fn window(size: Size) -> Winsize {
    Winsize { ws_row: size.rows(), ws_col: size.cols(), ws_xpixel: 0, ws_ypixel: 0 }
}
