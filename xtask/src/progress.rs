//! Prints what the user sees.
//!
//! Every line starts with the elapsed seconds; no step is silent long.
//!
//! The output of each step goes to a log file. The end of the file is shown when the step fails.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the only module that prints")]

use std::fmt::Arguments;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

/// The longest time without a line.
const BEAT: Duration = Duration::from_secs(15);
/// Ends a step that hangs. The longest step takes about ten minutes.
const LIMIT: Duration = Duration::from_secs(40 * 60);
/// Lines of a log that are shown when its step failed.
const TAIL_LINES: usize = 25;
/// Longest part of a log line that is repeated as progress.
const LINE_CHARS: usize = 90;

/// The start of this run, and its output.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
}

/// One call of a tool.
pub(crate) struct Step<'a> {
    /// Short name, also that of the log file.
    pub(crate) name: &'a str,
    /// The expected duration, for a person who waits: "about 3 min the first time".
    pub(crate) expect: &'a str,
    /// How many crates it compiles when nothing is there yet; 0 when it compiles none.
    pub(crate) crates: usize,
    /// The file of its output. An old one is replaced.
    pub(crate) log: &'a Path,
}

impl Progress {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// One line on standard error.
    pub(crate) fn say(&self, line: Arguments<'_>) {
        eprintln!("[{:>4} s] {line}", self.started.elapsed().as_secs());
    }

    /// The result of a command, on standard output.
    pub(crate) fn print(&self, text: &str) {
        print!("{text}");
    }

    /// Runs one tool to its end and says so.
    ///
    /// `Ok(false)`: it ran and failed, its end was shown.
    pub(crate) fn step(&self, step: &Step<'_>, command: &mut Command) -> Result<bool> {
        self.say(format_args!("{} … {} (log: {})", step.name, step.expect, step.log.display()));
        let begun = Instant::now();
        let status = self.watch(step, command)?;
        let took = begun.elapsed().as_secs();
        if status.success() {
            self.say(format_args!("{} done in {took} s", step.name));
            return Ok(true);
        }
        self.say(format_args!("{} FAILED after {took} s ({status}); its last lines:", step.name));
        for line in tail(step.log) {
            eprintln!("         | {line}");
        }
        Ok(false)
    }

    fn watch(&self, step: &Step<'_>, command: &mut Command) -> Result<ExitStatus> {
        let log = File::create(step.log)
            .with_context(|| format!("cannot write the log {}", step.log.display()))?;
        let errors = log.try_clone().context("cannot write both outputs to one log")?;
        let program = command.get_program().to_os_string();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", Path::new(&program).display()))?;
        let begun = Instant::now();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (ended, wait) = mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(move || {
                let _ = ended.send(child.wait()); // the receiver outlives this thread
            });
            loop {
                match wait.recv_timeout(BEAT) {
                    Ok(status) => return status.context("cannot wait for a tool"),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.say(format_args!("{} … {}", step.name, latest(step)));
                        if let Some(pid) = pid
                            && begun.elapsed() > LIMIT
                        {
                            let limit = LIMIT.as_secs() / 60;
                            self.say(format_args!("{}: ended after {limit} min", step.name));
                            // Not reaped before the thread above sent: the id is still its own.
                            let _ = kill_process(pid, Signal::KILL);
                        }
                    }
                    Err(gone @ mpsc::RecvTimeoutError::Disconnected) => {
                        return Err(gone).context("lost sight of a tool");
                    }
                }
            }
        })
    }
}

/// The progress of a long step: its compiled crates, or the last line of its log.
fn latest(step: &Step<'_>) -> String {
    let text = read(step.log);
    let compiled = text.lines().filter(|line| is_compiling(line)).count();
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("running");
    let last: String = last.trim().chars().take(LINE_CHARS).collect();
    if step.crates > 0 && compiled > 0 {
        format!("{compiled} of about {} crates; {last}", step.crates)
    } else {
        last
    }
}

fn is_compiling(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Compiling ") || line.starts_with("Checking ")
}

fn tail(log: &Path) -> Vec<String> {
    let text = read(log);
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(TAIL_LINES)).map(ToString::to_string).collect()
}

/// A log as text.
///
/// Bytes that are not UTF-8 are replaced; an unreadable log is empty.
pub(crate) fn read(log: &Path) -> String {
    fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
