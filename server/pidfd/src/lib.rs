//! Descriptors of processes, and the exit status that the kernel keeps behind them.
//!
//! The request `PIDFD_GET_INFO` exists in no safe form, so this crate makes it. It is the only
//! code of the project with `unsafe`, and does nothing else.
#![cfg(target_os = "linux")]

use rustix::ioctl::{Opcode, Updater, opcode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// A descriptor of one process. It becomes readable when the process ends.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

/// `struct pidfd_info` in its first size (`linux/pidfd.h`, Linux 6.13).
///
/// The kernel writes no more than the size in the number of the request.
#[derive(Debug, Default)]
#[repr(C)]
struct Info {
    mask: u64,
    control_group: u64,
    /// Process, parent and the eight ids of its user.
    ids: [u32; 11],
    /// A wait status. Was a spare field before Linux 6.15.
    exit_code: i32,
}

/// `PIDFD_GET_INFO`: `_IOWR(0xFF, 11, struct pidfd_info)`.
const GET_INFO: Opcode = opcode::read_write::<Info>(0xFF, 11);
/// `PIDFD_INFO_EXIT`: asked for, and set in the answer when the status is there.
const EXIT: u64 = 1 << 3;

impl Pidfd {
    /// Opens the process that has this pid now.
    ///
    /// # Errors
    /// `ESRCH` when there is none; others when the kernel has no such descriptors.
    pub fn open(pid: Pid) -> io::Result<Self> {
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// The status of a process that has ended and was collected, by whomever.
    ///
    /// `None` before that, and before Linux 6.15.
    #[must_use]
    pub fn collected_status(&self) -> Option<ExitStatus> {
        let mut info = Info { mask: EXIT, ..Info::default() };
        #[expect(unsafe_code, reason = "rustix has the form of the request, not the request")]
        // SAFETY: `GET_INFO` is a valid number, and `Info` is the type that the kernel expects for
        // it: `repr(C)`, 64 bytes, integers only, so that every answer is a valid value.
        let request = unsafe { Updater::<GET_INFO, Info>::new(&mut info) };
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: the descriptor was made by `pidfd_open`, so the number means this request. The
        // kernel writes into `info` only, which outlives the call.
        let answer = unsafe { rustix::ioctl::ioctl(self.0.as_fd(), request) };
        answer.ok()?;
        (info.mask & EXIT != 0).then(|| ExitStatus::from_raw(info.exit_code))
    }
}

impl AsRawFd for Pidfd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn h143_the_request_has_the_size_that_the_kernel_knows() {
        assert_eq!(size_of::<Info>(), 64);
        assert_eq!(std::mem::offset_of!(Info, exit_code), 60);
    }

    #[test]
    fn a_process_has_no_status_before_it_was_collected() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pidfd = Pidfd::open(Pid::from_child(&child)).unwrap();
        assert_eq!(pidfd.collected_status(), None);
        child.kill().unwrap();
        let collected = child.wait().unwrap();
        // Older kernels keep nothing.
        assert!(pidfd.collected_status().is_none_or(|status| status == collected));
    }
}
