//! Signals: proof first, then the signal, through the same process descriptor.

use crate::table::ProcTable;
use rustix::io::Errno;
use rustix::process::{Pid as RawPid, Signal as RawSignal};
use svc_domain::identity::{ProcessIdentity, Verdict, verdict};
use svc_ports::process::{Signal, Signalled, Target};

/// Sends a signal to the process meant by an identity and to no other.
///
/// `uncollected_child`: it is our own child and its status is not collected yet, so its pid cannot
/// have been reused.
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
    // H102: the descriptor is opened first. If the identity holds afterwards, the descriptor names
    // that process for good, whatever becomes of its number.
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
        Signal::Kill => RawSignal::KILL,
    };
    let sent = match (target, descriptor) {
        (Target::Group, _) if leads => {
            // 0 where the leader of the own group lives outside this PID namespace.
            if nix::unistd::getpgrp().as_raw() == raw.as_raw_pid() {
                return Signalled::Unproven;
            }
            rustix::process::kill_process_group(raw, raw_signal)
        }
        (Target::Group | Target::Process, Some(descriptor)) => {
            descriptor::send(&descriptor, raw_signal)
        }
        // No descriptor (an old kernel, or none left): the window between check and signal is
        // accepted only where the number cannot be reused at once.
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

/// H103: whatever a record says, the service ends neither itself nor who started it.
fn is_own_or_parent(pid: RawPid) -> bool {
    pid == rustix::process::getpid() || Some(pid) == rustix::process::getppid()
}

#[cfg(target_os = "linux")]
mod descriptor {
    //! A descriptor that names one process for ever (Linux 5.3).

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
    //! There are none here.

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
