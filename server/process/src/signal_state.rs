//! What signals do to this process, whatever its starter left behind (H36, H113).
//!
//! A mask and ignored signals are inherited across exec. A service that was started with SIGTERM
//! blocked could not be asked to end, and one with SIGCHLD ignored would never learn how its
//! children ended. And many signals end a process that has not decided about them: SIGXFSZ does at
//! a limit on file sizes, where a write should fail instead.
//!
//! The decisions, for every signal:
//!
//! A server is the service, `svc mcp` (which HUP and QUIT end like a command), and a holder of agents: a
//! keeper, or the daemon of Direct Sessions. Agents end with their holder, so nothing but a request ends
//! it either.
//!
//! | Signal | A server | A command |
//! |---|---|---|
//! | INT, TERM | ends in order (a keeper: not by INT) | ends |
//! | QUIT | ends in order (a holder: nothing) | ends |
//! | HUP | is told of and goes on (a holder: nothing) | ends: its terminal is gone |
//! | XFSZ, CHLD, PIPE | nothing: the write or the wait tells | the same |
//! | USR1, USR2, ALRM, VTALRM, PROF, POLL, PWR, STKFLT, XCPU, real-time | nothing | ends |
//! | STOP, TSTP, TTIN, TTOU, CONT | the system's: job control | the same |
//! | URG, WINCH | the system's: nothing | the same |
//! | ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS | the system's: a defect ends it | the same |
//! | KILL | the system's | the same |
//!
//! A decision is a handler and not "ignore": handlers end at exec, so an agent starts with defaults.

use nix::sys::signal::SigSet;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGPROF, SIGQUIT, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use std::sync::Arc;

/// What ends no process of ours.
const OF_ALL: [i32; 2] = [SIGXFSZ, SIGCHLD];
/// What ends no server: anybody may have sent it by mistake.
const OF_SERVERS: [i32; 6] = [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU];
/// What ends no holder of agents either.
const OF_HOLDERS: [i32; 2] = [SIGHUP, SIGQUIT];
/// The same, with numbers that only Linux gives.
#[cfg(target_os = "linux")]
const OF_LINUX: [i32; 3] = [signal_hook::consts::SIGIO, 30 /* PWR */, 16 /* STKFLT */];
#[cfg(not(target_os = "linux"))]
const OF_LINUX: [i32; 0] = [];

/// Undoes what was inherited.
/// Call it before the first thread: threads inherit the mask.
pub fn settle() {
    // Neither can fail: the set is valid and so are the numbers.
    let _ = SigSet::empty().thread_set_mask();
    OF_ALL.into_iter().for_each(disregard);
}

/// Decides about the signals that would end a server by accident.
pub fn settle_as_server() {
    OF_SERVERS.into_iter().chain(OF_LINUX).chain(real_time()).for_each(disregard);
}

/// The same for a keeper, or for the daemon of Direct Sessions.
///
/// Their agents would end with them. They have no terminal of their own and are asked to end by other means.
pub fn settle_as_holder() {
    settle_as_server();
    OF_HOLDERS.into_iter().for_each(disregard);
}

/// The real-time signals that the C library leaves to programs.
fn real_time() -> std::ops::Range<i32> {
    if cfg!(target_os = "linux") { 34..65 } else { 0..0 }
}

fn disregard(signal: i32) {
    // The flag has no reader: that the signal came is all, and that is nothing.
    let unread = Arc::default();
    if let Err(error) = signal_hook::flag::register(signal, unread) {
        // A kernel or C library without this number sends it to nobody.
        tracing::debug!(signal, error = %error, "no decision about a signal is possible");
    }
}
