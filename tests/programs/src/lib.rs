//! Writes programs that a test then starts.
//!
//! The kernel refuses to start a file that anybody has open for writing (`ETXTBSY`). A test that
//! writes a program itself holds it open for a moment, and a process that another test begins
//! within that moment holds it open longer. So another process writes.

use std::io::{Error, Result, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Copies a program. The copy can be started by everybody.
///
/// # Errors
/// When the copy cannot be made; the cause is on standard error.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    judged(install().arg(from.as_ref()).arg(to.as_ref()).status()?)
}

/// Writes a program. It can be started by everybody.
///
/// # Errors
/// When it cannot be written; the cause is on standard error.
pub fn write(to: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    let mut writer = install().arg("/dev/stdin").arg(to.as_ref()).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = writer.stdin.take() {
        input.write_all(content.as_ref())?;
    }
    judged(writer.wait()?)
}

fn install() -> Command {
    let mut install = Command::new("install");
    install.args(["-m", "755", "--"]);
    install
}

fn judged(status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { Err(Error::other("`install` failed")) }
}
