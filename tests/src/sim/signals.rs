//! Signals as messages: a thread turns them into events of the process's main loop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::iterator::Signals;

use super::failure::Failure;
use super::values::ExitSignal;

/// Sends each of `signals` to the loop of `sender`, for the life of the process.
pub(crate) fn forward<E: Send + 'static>(
    signals: &[i32],
    sender: SyncSender<E>,
    event: fn(i32) -> E,
) -> Result<(), Failure> {
    let mut caught = Signals::new(signals)
        .map_err(|e| Failure::refused(format!("cannot catch signals: {e}")))?;
    std::thread::spawn(move || {
        for signal in caught.forever() {
            if sender.send(event(signal)).is_err() {
                return; // the loop ended: so does the process
            }
        }
    });
    Ok(())
}

/// Makes the process deaf to `signals`.
pub(crate) fn ignore(signals: &[i32]) {
    for signal in signals {
        // A handler that only sets a flag nobody reads.
        let _ = signal_hook::flag::register(*signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Ends the calling process as the signal would without any handler.
pub(crate) fn die(signal: ExitSignal) -> u8 {
    let _ = signal_hook::low_level::emulate_default_handler(signal.0);
    let _ = signal_hook::low_level::raise(signal.0);
    // Reached only if the signal does not end a process.
    u8::try_from(128 + signal.0).unwrap_or(1)
}

/// Sends a signal to a process this one has just identified.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal); // gone already: fine
    }
}
