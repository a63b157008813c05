//! The file mode mask of this process: strict for our own files, as inherited for agents.

use rustix::fs::Mode;
use std::sync::OnceLock;

/// Group and others get nothing of what the service creates.
const STRICT: u32 = 0o077;

static INHERITED: OnceLock<u32> = OnceLock::new();

/// Sets the mask of this process to 077 and returns the one it was started with.
///
/// Agents create project files for other users and tools, so they get the returned mask
/// (`LaunchSpec::umask`). Further calls return the same value.
pub fn harden() -> u32 {
    let previous = rustix::process::umask(Mode::from_raw_mode(STRICT)).as_raw_mode();
    *INHERITED.get_or_init(|| previous)
}
