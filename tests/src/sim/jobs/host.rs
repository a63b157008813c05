//! The host of a job: `--bg-pty-host SOCK COLS ROWS -- PROGRAM ARGS…`.
//!
//! The roster names this process; the session is its child. The agent's host owns a terminal,
//! which is not simulated: the child writes to a file instead.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;

use rustix::process::Signal;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::home::AgentHome;
use crate::sim::signals;

/// First word of the argv.
pub(crate) const HOST: &str = "--bg-pty-host";
/// Exit code of a host whose session was ended by a signal.
pub(super) const BY_SIGNAL: u8 = 128;

enum Event {
    Signal,
    /// The service ends the job.
    HangUp,
    Ended(std::io::Result<std::process::ExitStatus>),
}

/// Where the session's output is kept for `logs`.
pub(crate) fn output_file(home: &AgentHome, id: &str) -> PathBuf {
    home.mark().join("jobs").join(format!("{id}.out"))
}

/// Runs the host until its session has ended.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let wrong = || Failure::agent("Error: the host of a session is started by the service only");
    let at = double.args.iter().position(|arg| arg == "--").ok_or_else(wrong)?;
    let (program, args) =
        double.args.get(at + 1..).and_then(<[String]>::split_first).ok_or_else(wrong)?;
    let session = args.get(1).and_then(|id| id.get(..8)).ok_or_else(wrong)?;
    let output = open_output(double, session)
        .map_err(|e| Failure::agent(format!("Error: cannot open the session's output: {e}")))?;
    // Its own session, as behind a terminal; it may be a leader already.
    let _ = rustix::process::setsid();
    let (sender, receiver) = sync_channel(8);
    signals::forward(&[SIGINT, SIGTERM], sender.clone(), |signal| match signal {
        SIGTERM => Event::HangUp,
        _ => Event::Signal,
    })?;
    let spawned = output.try_clone().and_then(|errors| {
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(output).stderr(errors).spawn()
    });
    let mut child =
        spawned.map_err(|e| Failure::agent(format!("Error: cannot start the session: {e}")))?;
    let pid = child.id();
    // Closed when this process ends in whatever way: the session hangs up.
    let mut line = child.stdin.take();
    std::thread::spawn(move || {
        let _ = sender.send(Event::Ended(child.wait())); // the loop lives as long as the process
    });
    for event in receiver {
        match event {
            Event::Signal if double.knobs.job_ignore_sigint => {}
            Event::Signal => signals::send(pid, Signal::INT),
            // Whoever waits for this process waits for its session.
            Event::HangUp => drop(line.take()),
            Event::Ended(Ok(status)) => {
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.unwrap_or(BY_SIGNAL));
            }
            Event::Ended(Err(_)) => return Ok(1),
        }
    }
    Ok(1)
}

fn open_output(double: &Double, id: &str) -> std::io::Result<File> {
    let path = output_file(&double.home, id);
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    OpenOptions::new().append(true).create(true).open(path)
}
