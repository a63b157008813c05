//! What the double reads about processes: liveness by pid and start time.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};

/// Start time in clock ticks since boot: field 22 of `/proc/<pid>/stat`.
///
/// `None` where there is no such process or no `/proc`.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name in parentheses may itself hold spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Whether `pid` lives and, where the start is given and readable, started then.
pub(crate) fn is_same(pid: u32, start: Option<&str>) -> bool {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    match (start_ticks(pid), start) {
        (Some(ticks), Some(start)) => ticks.to_string() == start,
        (Some(_), None) => true,
        (None, _) => !cfg!(target_os = "linux") && test_kill_process(raw).is_ok(),
    }
}

/// Returns when the process is gone; at once if it is another one by now.
pub(crate) fn wait_for_end(pid: u32, start: Option<&str>) {
    #[cfg(target_os = "linux")]
    {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::process::{PidfdFlags, pidfd_open};

        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let opened = raw.and_then(|raw| pidfd_open(raw, PidfdFlags::empty()).ok());
        // Checked behind the descriptor: what it stands for no longer changes.
        if let Some(fd) = opened.filter(|_| is_same(pid, start)) {
            let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], None);
            return;
        }
    }
    while is_same(pid, start) {
        std::thread::sleep(Duration::from_millis(50)); // no descriptor to wait on
    }
}

/// The calling process's start, in the text form of the agent's files.
pub(crate) fn own_start() -> Option<String> {
    start_ticks(std::process::id()).map(|ticks| ticks.to_string())
}
