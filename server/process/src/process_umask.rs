//! The umask: strict for our own files, the inherited one for agents.

use rustix::fs::{Mode, RawMode};
use std::sync::OnceLock;

static INHERITED: OnceLock<u32> = OnceLock::new();

/// Sets the umask of this process to 077 and returns the inherited umask.
///
/// Agents create project files for other users and tools, so they get the inherited umask
/// (`LaunchSpec::umask`). Further calls return the same value.
pub fn harden() -> u32 {
    // Group and others get no rights to files that the service creates.
    let previous = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    #[allow(clippy::useless_conversion, reason = "modes have 16 bits on some platforms")]
    let previous = u32::from(previous.as_raw_mode());
    *INHERITED.get_or_init(|| previous)
}

/// Gives this process an umask back, for a program that takes its place.
pub fn restore(umask: u32) {
    let _ = rustix::process::umask(permission_bits(umask));
}

/// The umask that was inherited; 022 in a process that never called [`harden`].
#[must_use]
pub fn inherited() -> u32 {
    INHERITED.get().copied().unwrap_or(0o022)
}

/// Permission bits in the width of this platform. Other bits are ignored.
pub(crate) fn permission_bits(bits: u32) -> Mode {
    #[allow(
        clippy::unnecessary_fallible_conversions,
        clippy::useless_conversion,
        reason = "modes have 16 bits on some platforms"
    )]
    let bits = RawMode::try_from(bits & 0o777).unwrap_or_default();
    Mode::from_raw_mode(bits)
}
