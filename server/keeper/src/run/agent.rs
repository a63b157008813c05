//! The agent as the keeper's child: held, started, stopped, collected.

use super::machine::Terminal;
use rustix::process::{Pid as RawPid, Signal, WaitOptions, kill_process_group, wait};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_process::launcher::{KeeperOrder, LAUNCH_ID_VARIABLE, LauncherProgram};
use svc_process::table::ProcTable;

/// A reply of the launcher is one line with at most one path.
const MAX_REPLY_BYTES: u64 = 16 << 10;

/// The launcher, waiting for `go`.
pub(super) struct Held {
    pub(super) identity: ProcessIdentity,
    child: Child,
    to_launcher: ChildStdin,
    from_launcher: BufReader<ChildStdout>,
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("refused the keeper cannot start the launcher: {error}")
}

impl Held {
    /// Starts the launcher on the terminal. The reason as a line for the service.
    pub(super) fn start(
        launcher: &LauncherProgram,
        order: &KeeperOrder,
        terminal: &Terminal,
    ) -> Result<Self, String> {
        let slave = terminal.slave.try_clone().map_err(failed)?;
        let mut child = Command::new(&launcher.program)
            .args(&launcher.args)
            .env_clear()
            .env(LAUNCH_ID_VARIABLE, order.launch_id())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(slave))
            .spawn()
            .map_err(failed)?;
        let pid = Pid::new(i64::from(child.id())).ok_or_else(|| failed("its pid is not one"))?;
        let table = ProcTable::open().map_err(failed)?;
        let facts = table.facts(pid).ok_or_else(|| failed("it is not in the process table"))?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(to_launcher), Some(from_launcher)) = pipes else {
            return Err(failed("it has no pipes"));
        };
        let from_launcher = BufReader::new(from_launcher);
        let mut held = Self { identity: facts.identity, child, to_launcher, from_launcher };
        let line = order.launcher_line().map_err(failed)?;
        let written = held.to_launcher.write_all(&line);
        let mut reply = Vec::new();
        let mut limited = (&mut held.from_launcher).take(MAX_REPLY_BYTES);
        limited.read_until(b'\n', &mut reply).map_err(failed)?;
        if reply == b"ready\n" {
            return Ok(held);
        }
        let reply = String::from_utf8_lossy(&reply).trim().to_owned();
        Err(match (reply.is_empty(), written) {
            (false, _) => reply,
            (true, Err(error)) => failed(error),
            (true, Ok(())) => failed("it gave no reason"),
        })
    }

    /// Lets it become the agent. Waits until it is, or for its reason.
    pub(super) fn go(mut self) -> Result<Agent, String> {
        let written = self.to_launcher.write_all(b"go\n");
        let mut reply = Vec::new();
        let mut limited = (&mut self.from_launcher).take(MAX_REPLY_BYTES);
        limited.read_to_end(&mut reply).map_err(failed)?;
        if !reply.is_empty() {
            return Err(String::from_utf8_lossy(&reply).trim().to_owned());
        }
        written.map_err(|_| failed("it ended while it was held"))?;
        // Collected by `Agent::collect` and nobody else.
        drop(self.child);
        Ok(Agent { identity: self.identity, end: None })
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// The agent.
pub(super) struct Agent {
    pub(super) identity: ProcessIdentity,
    end: Option<End>,
}

impl Agent {
    /// Collects every ended child: the agent and orphans of its own children.
    pub(super) fn collect(&mut self) -> Option<End> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid.as_raw_pid() == self.identity.pid.get() && self.end.is_none() {
                let signal = status.terminating_signal();
                self.end = Some(End { code: status.exit_status(), signal });
            }
        }
        self.end
    }

    /// Signals the agent's process group.
    ///
    /// The agent is our child and was not collected, so its number means it and nobody else, and it
    /// leads its group since before the exec.
    pub(super) fn signal(&mut self, signal: Signal) -> io::Result<bool> {
        if self.collect().is_some() {
            return Ok(false);
        }
        let Some(pid) = RawPid::from_raw(self.identity.pid.get()) else { return Ok(false) };
        kill_process_group(pid, signal)?;
        Ok(true)
    }
}
