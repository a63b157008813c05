//! A program on a terminal that this process holds itself: it ends with us.
//!
//! The terminal is the program's own in both forms. When this process ends, however it ends, the
//! kernel closes the terminal and hangs the program up.

use crate::emulator::Emulator;
use crate::screen::Size;
use pty_process::{Command, Pty};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

/// Size of the terminal (agent 2.1.197 draws its sign-in for it).
const SIZE: (u16, u16) = (120, 40);
/// How long a typed line may take to show itself.
///
/// A line that does not show is entered all the same.
const ECHO: Duration = Duration::from_millis(500);
/// How long output of an ended program may still arrive.
const DRAIN: Duration = Duration::from_millis(200);

/// What stands at the ends of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Pipes; the terminal is only what ends it.
    Pipes,
    /// The terminal.
    Terminal,
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Absolute path.
    pub program: &'a Path,
    /// Arguments after the program.
    pub args: &'a [&'a str],
    /// The complete environment.
    pub env: &'a [(OsString, OsString)],
    /// Working directory.
    pub cwd: &'a Path,
    /// What it reads from and writes to.
    pub form: Form,
}

/// Something happened to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It wrote something.
    Output,
    /// It is over: exit code, or nothing after a signal.
    Ended(Option<i32>),
}

/// A running program.
///
/// Dropping it kills the program and what it started in its process group.
pub struct Held {
    child: Child,
    pty: Pty,
    is_pty_open: bool,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    screen: Emulator,
    form: Form,
    ended: Option<Option<i32>>,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("pid", &self.child.id()).finish_non_exhaustive()
    }
}

impl Held {
    /// Starts the program.
    ///
    /// # Errors
    /// There is no terminal to be had, or the program cannot be executed.
    pub fn start(order: Order<'_>) -> io::Result<Self> {
        let (pty, slave) = pty_process::open().map_err(io::Error::other)?;
        let (columns, rows) = SIZE;
        pty.resize(pty_process::Size::new(rows, columns)).map_err(io::Error::other)?;
        let mut command = Command::new(order.program)
            .args(order.args)
            .env_clear()
            .envs(order.env.iter().map(|(name, value)| (name, value)))
            .current_dir(order.cwd)
            .kill_on_drop(true);
        if order.form == Form::Pipes {
            command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut child = command.spawn(slave).map_err(|error| match error {
            pty_process::Error::Io(error) => error,
            other => io::Error::other(other),
        })?;
        Ok(Self {
            input: child.stdin.take(),
            output: child.stdout.take(),
            errors: child.stderr.take(),
            child,
            pty,
            is_pty_open: order.form == Form::Terminal,
            screen: Emulator::new(Size::clamped(columns, rows), 0),
            form: order.form,
            ended: None,
        })
    }

    /// Waits for output or the end. Cancel-safe. What it drew is in [`Held::lines`].
    pub async fn changed(&mut self) -> Change {
        if let Some(code) = self.ended {
            return Change::Ended(code);
        }
        let mut from_pty = vec![0; 4096];
        let (mut from_output, mut from_errors) = (vec![0; 4096], vec![0; 4096]);
        let has_reader = self.is_pty_open || self.output.is_some() || self.errors.is_some();
        tokio::select! {
            biased;
            read = self.pty.read(&mut from_pty), if self.is_pty_open => {
                // The other end is closed: an error on Linux, an empty read elsewhere.
                let length = read.unwrap_or(0);
                self.is_pty_open = length > 0;
                self.draw(from_pty.get(..length).unwrap_or_default());
            }
            length = read(&mut self.output, &mut from_output), if self.output.is_some() => {
                self.draw(from_output.get(..length).unwrap_or_default());
            }
            length = read(&mut self.errors, &mut from_errors), if self.errors.is_some() => {
                self.draw(from_errors.get(..length).unwrap_or_default());
            }
            status = self.child.wait() => {
                let code = status.ok().and_then(|status| status.code());
                if has_reader {
                    // What a program writes last is still on its way.
                    let _ = timeout(DRAIN, self.drain()).await;
                }
                self.ended = Some(code);
                return Change::Ended(code);
            }
        }
        Change::Output
    }

    async fn drain(&mut self) {
        let mut bytes = vec![0; 4096];
        while self.is_pty_open {
            let length = self.pty.read(&mut bytes).await.unwrap_or(0);
            self.is_pty_open = length > 0;
            self.draw(bytes.get(..length).unwrap_or_default());
        }
        while self.output.is_some() {
            let length = read(&mut self.output, &mut bytes).await;
            self.draw(bytes.get(..length).unwrap_or_default());
        }
        while self.errors.is_some() {
            let length = read(&mut self.errors, &mut bytes).await;
            self.draw(bytes.get(..length).unwrap_or_default());
        }
    }

    fn draw(&mut self, bytes: &[u8]) {
        match self.form {
            Form::Terminal => self.screen.feed(bytes, Instant::now()),
            // No terminal has turned the ends of lines yet.
            Form::Pipes => {
                for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                    self.screen.feed(piece, Instant::now());
                    if piece.ends_with(b"\n") {
                        self.screen.feed(b"\r", Instant::now());
                    }
                }
            }
        }
    }

    /// The screen as logical lines, not redacted: for finding, never for showing.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.screen.raw_lines()
    }

    /// Column at which the program breaks lines itself.
    #[must_use]
    pub fn columns(&self) -> Option<usize> {
        (self.form == Form::Terminal).then_some(usize::from(SIZE.0))
    }

    /// Answers what the program asked its terminal.
    ///
    /// # Errors
    /// The terminal is closed.
    pub async fn reply(&mut self) -> io::Result<()> {
        let replies = self.screen.take_replies();
        match self.form {
            Form::Terminal if !replies.is_empty() => self.pty.write_all(&replies).await,
            Form::Terminal | Form::Pipes => Ok(()),
        }
    }

    /// Types a line.
    ///
    /// # Errors
    /// Nobody reads.
    pub async fn enter(&mut self, line: &str) -> io::Result<()> {
        if let Some(input) = &mut self.input {
            input.write_all(format!("{line}\n").as_bytes()).await?;
            return input.flush().await;
        }
        self.pty.write_all(line.as_bytes()).await?;
        // A line and its end in one piece would be taken for something pasted.
        let _ = timeout(ECHO, self.changed()).await;
        self.pty.write_all(b"\r").await
    }
}

/// Reads a piece; the end of a pipe closes it.
async fn read(from: &mut Option<impl AsyncRead + Unpin>, bytes: &mut [u8]) -> usize {
    let Some(pipe) = from else { return 0 };
    let length = pipe.read(bytes).await.unwrap_or(0);
    if length == 0 {
        *from = None;
    }
    length
}

impl Drop for Held {
    fn drop(&mut self) {
        // The pid is not reused before it is reaped. Afterwards `id` is empty.
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL); // gone already: fine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, form: Form) -> Held {
        let env = [("PATH".into(), "/usr/bin:/bin".into())];
        let args = ["-c", script];
        let (program, cwd) = (Path::new("/bin/sh"), Path::new("/"));
        Held::start(Order { program, args: &args, env: &env, cwd, form }).unwrap()
    }

    async fn until(held: &mut Held, what: impl Fn(&[String]) -> bool) {
        let seen = async {
            while !what(&held.lines()) {
                assert!(!matches!(held.changed().await, Change::Ended(_)), "{:?}", held.lines());
            }
        };
        timeout(Duration::from_secs(60), seen).await.unwrap();
    }

    async fn end(held: &mut Held) -> Option<i32> {
        let ended = async {
            loop {
                if let Change::Ended(code) = held.changed().await {
                    return code;
                }
            }
        };
        timeout(Duration::from_secs(60), ended).await.unwrap()
    }

    #[tokio::test]
    async fn a_program_on_pipes_is_read_answered_and_collected() {
        let script = "printf 'one\\ntwo> '; read -r x; echo \"got $x\"; echo bad >&2; exit 3";
        let mut held = start(script, Form::Pipes);
        until(&mut held, |lines| lines.iter().any(|line| line.starts_with("two>"))).await;
        held.enter("hello").await.unwrap();
        assert_eq!(end(&mut held).await, Some(3));
        let said = held.lines().join("\n");
        assert!(said.contains("got hello") && said.contains("bad"), "{said}");
        assert_eq!(held.changed().await, Change::Ended(Some(3)));
    }

    #[tokio::test]
    async fn a_program_on_the_terminal_sees_its_size_and_what_is_typed() {
        let script = "test -t 0 && stty size; read -r x; echo \"got $x\"";
        let mut held = start(script, Form::Terminal);
        until(&mut held, |lines| lines.iter().any(|line| line.trim() == "40 120")).await;
        held.enter("hello").await.unwrap();
        assert_eq!(end(&mut held).await, Some(0));
        assert!(held.lines().iter().any(|line| line.trim() == "got hello"), "{:?}", held.lines());
    }

    #[tokio::test]
    async fn what_is_dropped_ends_with_its_group() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let script = format!("trap '' HUP TERM; sleep 1000 > {}", fifo.display());
        let held = start(&script, Form::Pipes);
        // Opened once the program has opened it; ended when the last process that holds it is gone.
        let ended = tokio::task::spawn_blocking(move || {
            let mut pipe = std::fs::File::open(fifo).unwrap();
            drop(held);
            std::io::Read::read_to_end(&mut pipe, &mut Vec::new()).unwrap()
        });
        assert_eq!(timeout(Duration::from_secs(60), ended).await.unwrap().unwrap(), 0);
    }
}
