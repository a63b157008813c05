//! How the daemon leaves the process that started it.
//!
//! The launcher starts this program once more, in a session of its own, waits until that one
//! listens, and ends. The token goes from standard input to standard input, never through
//! arguments or environment.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, ExitCode, Stdio};

/// Marks the second start. The service removes it from what it passes on.
pub(super) const MARKER: &str = "SVC_HOSTED_DETACHED";
const READY: &str = "ready\n";
/// Longer than a token with its end.
const LONGEST_TOKEN: u64 = 256;

/// Whether this is the second start.
pub(super) fn is_detached() -> bool {
    std::env::var_os(MARKER).is_some()
}

/// Starts this program once more and waits until it listens.
pub(super) fn launch() -> ExitCode {
    match launched() {
        Ok(code) => code,
        Err(error) => {
            report(&format!("the daemon cannot be started: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn launched() -> io::Result<ExitCode> {
    let token = token()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(MARKER, "1")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        writeln!(stdin, "{token}")?;
    }
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        let mut byte = [0];
        let mut stdout = stdout;
        while !said.ends_with('\n') && said.len() < 4096 && stdout.read(&mut byte)? == 1 {
            said.extend(byte.iter().map(|byte| char::from(*byte)));
        }
    }
    if said == READY {
        return Ok(ExitCode::SUCCESS);
    }
    report(said.trim());
    let code = child.wait()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code.max(1)))
}

/// Leaves the session of the launcher.
pub(super) fn own_session() {
    // It leads a group already only when somebody starts it by hand with the marker.
    let _ = rustix::process::setsid();
}

/// The token, as it was handed over on standard input.
pub(super) fn token() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().take(LONGEST_TOKEN).read_to_string(&mut text)?;
    let token = text.trim().to_owned();
    if token.is_empty() {
        return Err(io::Error::other("standard input is empty"));
    }
    Ok(token)
}

/// Tells the launcher that connections are accepted.
pub(super) fn ready() {
    report(READY.trim());
}

/// Tells the launcher, which may be gone.
pub(super) fn report(words: &str) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{words}").and_then(|()| out.flush());
}
