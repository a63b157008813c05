//! Sending signals: first the proof of identity, then the signal.
//!
//! Both go through the same process descriptor.

use crate::table::ProcTable;
use rustix::io::Errno;
use rustix::process::{Pid as RawPid, Signal as RawSignal};
use svc_domain::identity::{ProcessIdentity, Verdict, verdict};
use svc_ports::process::{Signal, Signalled, Target};

/// Sends a signal to the process meant by an identity and to no other.
///
/// `uncollected_child`: the process is our own child and its exit status is not collected yet, so its
/// pid cannot have been reused.
pub(crate) fn send(
    table: &ProcTable,
    identity: &ProcessIdentity,
    signal: Signal,
    target: Target,
    uncollected_child: bool,
) -> Signalled {
    let Some(raw) = RawPid::from_raw(identity.pid.get()) else {
        return Signalled::Unproven;
    };
    if is_own_or_parent(raw) {
        return Signalled::Unproven;
    }
    // H102: the descriptor is opened first. If the identity holds afterwards, the descriptor means
    // that process for good, even if its pid is reused.
    let descriptor = match descriptor::open(raw) {
        Ok(descriptor) => Some(descriptor),
        Err(Errno::SRCH) => return Signalled::Gone,
        Err(_) => None,
    };
    match verdict(identity, table.boot_id(), &table.observe(identity.pid)) {
        Verdict::Same => {}
        Verdict::Gone(_) => return Signalled::Gone,
        Verdict::Unknown => return Signalled::Unproven,
    }
    let Ok(stat) = table.stat(identity.pid.get()) else {
        return Signalled::Unproven;
    };
    let Some(stat) = stat.filter(|stat| stat.start_ticks == identity.start_ticks) else {
        return Signalled::Gone;
    };
    let leads = stat.group == stat.pid;
    let raw_signal = match signal {
        Signal::Interrupt => RawSignal::INT,
        Signal::Terminate => RawSignal::TERM,
        Signal::Kill => RawSignal::KILL,
    };
    let sent = match (target, descriptor) {
        (Target::Group, _) if leads => {
            // 0 if the leader of our own group is outside this pid namespace.
            if nix::unistd::getpgrp().as_raw() == raw.as_raw_pid() {
                return Signalled::Unproven;
            }
            rustix::process::kill_process_group(raw, raw_signal)
        }
        (Target::Group | Target::Process, Some(descriptor)) => {
            descriptor::send(&descriptor, raw_signal)
        }
        // Without a descriptor (old kernel, or too many open files) the pid could be reused between
        // check and signal. That is accepted only if the pid cannot be reused at once.
        (Target::Group | Target::Process, None) if uncollected_child || leads => {
            rustix::process::kill_process(raw, raw_signal)
        }
        (Target::Group | Target::Process, None) => return Signalled::Unproven,
    };
    match sent {
        Ok(()) => Signalled::Sent,
        Err(Errno::SRCH) => Signalled::Gone,
        Err(Errno::PERM) => Signalled::NotPermitted,
        Err(_) => Signalled::Unproven,
    }
}

/// H103: whatever a record says, the service ends neither itself nor its parent.
fn is_own_or_parent(pid: RawPid) -> bool {
    pid == rustix::process::getpid() || Some(pid) == rustix::process::getppid()
}

#[cfg(target_os = "linux")]
mod descriptor {
    //! A descriptor that means one process for ever (Linux 5.3).

    use rustix::fd::OwnedFd;
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    pub(super) fn open(pid: Pid) -> Result<OwnedFd, Errno> {
        pidfd_open(pid, PidfdFlags::empty())
    }

    pub(super) fn send(descriptor: &OwnedFd, signal: Signal) -> Result<(), Errno> {
        pidfd_send_signal(descriptor, signal)
    }
}

#[cfg(not(target_os = "linux"))]
mod descriptor {
    //! This system has no process descriptors.

    use rustix::io::Errno;
    use rustix::process::{Pid, Signal};

    pub(super) enum Never {}

    pub(super) fn open(_: Pid) -> Result<Never, Errno> {
        Err(Errno::NOSYS)
    }

    pub(super) fn send(descriptor: &Never, _: Signal) -> Result<(), Errno> {
        match *descriptor {}
    }
}
