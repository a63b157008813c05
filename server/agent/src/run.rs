//! Runs a program with limits: absolute path, argument list, no shell.

use crate::environment::Variables;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

/// Standard error beyond this is dropped.
const STDERR_CAP: usize = 64 * 1024;

/// How long output may still arrive after the program itself has ended.
/// A descendant that keeps the pipe open must not delay the answer.
const DRAIN: Duration = Duration::from_millis(500);

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Absolute path.
    pub program: &'a Path,
    /// Arguments after the program.
    pub args: &'a [&'a str],
    /// The complete environment.
    pub env: &'a Variables,
    /// Working directory.
    pub cwd: &'a Path,
    /// After this the whole process group is killed.
    pub timeout: Duration,
    /// Bytes of standard output that are kept.
    pub stdout_cap: usize,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output, up to the cap.
    pub stdout: Vec<u8>,
    /// Whether standard output was longer than the cap.
    pub stdout_cut: bool,
    /// Standard error, up to 64 KiB.
    pub stderr: Vec<u8>,
}

/// Why a run gave no output.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program was not started.
    #[error("{program} could not be started")]
    Start {
        /// The program.
        program: PathBuf,
        /// The reason the system gave.
        #[source]
        cause: io::Error,
    },
    /// It was killed at the time limit.
    #[error("{program} gave no answer within {} s and was ended", after.as_secs())]
    TimedOut {
        /// The program.
        program: PathBuf,
        /// The time limit.
        after: Duration,
    },
    /// Its end could not be observed.
    #[error("{program} could not be waited for")]
    Wait {
        /// The program.
        program: PathBuf,
        /// The reason the system gave.
        #[source]
        cause: io::Error,
    },
}

/// Runs a program to its end, without input and in a process group of its own.
///
/// Dropping the future kills the group.
///
/// # Errors
/// See [`RunError`]. An exit code other than 0 is no error here.
pub async fn run(run: Run<'_>) -> Result<Output, RunError> {
    let program = || run.program.to_owned();
    let child = Command::new(run.program)
        .args(run.args)
        .env_clear()
        .envs(run.env)
        .current_dir(run.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|cause| RunError::Start { program: program(), cause })?;
    let mut group = Group(child);
    let limited = tokio::time::timeout(run.timeout, collect(&mut group.0, run.stdout_cap));
    match limited.await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(cause)) => Err(RunError::Wait { program: program(), cause }),
        Err(_elapsed) => {
            group.kill();
            let _ = group.0.wait().await; // SIGKILL was sent: only reaps
            Err(RunError::TimedOut { program: program(), after: run.timeout })
        }
    }
}

/// A child that leads a process group, which does not outlive this value.
struct Group(Child);

impl Group {
    fn kill(&self) {
        // The pid is not reused before it is reaped. Afterwards `id` is empty.
        let pid = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL); // gone already: fine
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn collect(child: &mut Child, stdout_cap: usize) -> io::Result<Output> {
    let (mut stdout, mut stderr) = (Capped::new(stdout_cap), Capped::new(STDERR_CAP));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let status = {
        let reading = async { tokio::join!(stdout.fill(out), stderr.fill(err)) };
        tokio::pin!(reading);
        tokio::select! {
            // Both pipes are closed: the program ends at once.
            _ = &mut reading => child.wait().await?,
            status = child.wait() => {
                let _ = tokio::time::timeout(DRAIN, reading).await;
                status?
            }
        }
    };
    Ok(Output {
        code: status.code(),
        stdout: stdout.bytes,
        stdout_cut: stdout.cut,
        stderr: stderr.bytes,
    })
}

/// Bytes up to a limit. The rest is read and dropped, so the writer never blocks.
struct Capped {
    bytes: Vec<u8>,
    cap: usize,
    cut: bool,
}

impl Capped {
    fn new(cap: usize) -> Self {
        Self { bytes: Vec::new(), cap, cut: false }
    }

    async fn fill(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; 16 * 1024];
        // A broken pipe counts as the end of the output.
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            let room = self.cap.saturating_sub(self.bytes.len());
            let fresh = chunk.get(..read).unwrap_or_default();
            self.bytes.extend(fresh.iter().take(room));
            self.cut |= read > room;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn script(body: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        svc_programs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
        (dir, path)
    }

    async fn bounded(program: &Path, timeout: Duration) -> Result<Output, RunError> {
        let env = Variables::from([("PATH".into(), "/usr/bin:/bin".into())]);
        run(Run {
            program,
            args: &["$(touch planted)", "`x`;&"],
            env: &env,
            cwd: program.parent().unwrap(),
            timeout,
            stdout_cap: 1024,
        })
        .await
    }

    /// H31.
    #[tokio::test]
    async fn arguments_reach_the_program_verbatim_with_no_input_and_a_bare_environment() {
        let (dir, program) = script("echo \"$1|$2|$(cat)|${HOME-unset}\"; echo oops >&2; exit 3");
        let output = bounded(&program, Duration::from_secs(20)).await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, "$(touch planted)|`x`;&||unset\n");
        assert_eq!(output.stderr, b"oops\n");
        assert_eq!((output.code, output.stdout_cut), (Some(3), false));
        assert!(!dir.path().join("planted").exists());
    }

    /// H110.
    #[tokio::test]
    async fn a_flood_is_cut_and_does_not_block_the_program() {
        let (_dir, program) = script("head -c 3000000 /dev/zero; head -c 300000 /dev/zero >&2");
        let output = bounded(&program, Duration::from_secs(20)).await.unwrap();
        assert_eq!(output.code, Some(0));
        assert_eq!((output.stdout.len(), output.stdout_cut), (1024, true));
        assert_eq!(output.stderr.len(), STDERR_CAP);
    }

    /// H110.
    #[tokio::test]
    async fn a_hanging_program_is_killed_with_its_children() {
        let (dir, program) =
            script("trap '' TERM INT; sleep 1000 & echo $! > child; wait; sleep 1000");
        let pid_file = dir.path().join("child");
        let error = bounded(&program, Duration::from_millis(700)).await.unwrap_err();
        assert!(matches!(error, RunError::TimedOut { .. }), "{error}");
        let child: i32 = std::fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        while !gone() {
            assert!(Instant::now() < deadline, "the child outlived its group");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_descendant_that_keeps_the_pipe_open_does_not_hold_the_answer_back() {
        let (_dir, program) = script("echo done; setsid sleep 30 & exit 0");
        let output = bounded(&program, Duration::from_secs(20)).await.unwrap();
        assert_eq!(output.stdout, b"done\n");
    }

    #[tokio::test]
    async fn what_cannot_be_started_is_an_error_that_names_it() {
        let error = bounded(Path::new("/nonexistent/claude"), DRAIN).await.unwrap_err();
        assert_eq!(error.to_string(), "/nonexistent/claude could not be started");
    }
}
