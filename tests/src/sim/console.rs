//! Output that does not mind a reader who went away, and delays before an answer.

use std::io::Write;
use std::time::{Duration, Instant};

/// Writes to standard output; a reader that went away is no reason to fail.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard error; a reader that went away is no reason to fail.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A delay a knob asks for, before there is an event loop to schedule it in.
pub(crate) fn pause(ms: u64) {
    if ms > 0 {
        std::thread::sleep(Duration::from_millis(ms));
    }
}

/// Never returns: a knob asks for a hanging call. Signals keep their default.
pub(crate) fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

/// Now plus `ms`.
pub(crate) fn later(ms: u64) -> Instant {
    after(Instant::now(), ms)
}

/// `start` plus `ms`, at most a year: a knob may name any number.
pub(crate) fn after(start: Instant, ms: u64) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    start + Duration::from_millis(ms).min(YEAR)
}
