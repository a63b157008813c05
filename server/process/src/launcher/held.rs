//! The service's side of a launch: starts the launcher and tells it when to go on.

use super::LauncherProgram;
use super::keeper_order::KeeperOrder;
use super::order::Order;
use crate::exit::{self, Children, KillSwitch};
use crate::table::{LAUNCH_ID_VARIABLE, ProcTable};
use async_trait::async_trait;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_ports::process::{HeldLaunch, LaunchError, LaunchSpec};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// A reply of the launcher is one line with at most one path.
const MAX_REPLY_BYTES: u64 = 16 << 10;

/// How long a killed launcher may take to be gone.
const END_DEADLINE: Duration = Duration::from_secs(2);

/// A launcher that is ready and waits for `go`.
///
/// Dropping this value closes the launcher's standard input, which ends it. So does the death of this
/// process.
pub(crate) struct Held {
    identity: ProcessIdentity,
    keeper: Option<ProcessIdentity>,
    program: PathBuf,
    to_launcher: ChildStdin,
    from_launcher: BufReader<ChildStdout>,
    kill: KillSwitch,
    children: Children,
    deadline: Duration,
}

/// Starts a launcher and waits until it is ready.
pub(crate) async fn hold(
    launcher: &LauncherProgram,
    table: &ProcTable,
    children: &Children,
    deadline: Duration,
    spec: LaunchSpec,
) -> Result<Held, LaunchError> {
    let order = Order::new(&spec);
    let line = match &spec.terminal {
        None => order.to_line(),
        Some(terminal) => KeeperOrder::new(order, terminal).to_line(),
    };
    let line = line.map_err(LaunchError::Launcher)?;
    let mut command = Command::new(&launcher.program);
    command.args(&launcher.args).env_clear();
    if spec.terminal.is_none() {
        // By the launch id the launcher can be found before it is the agent. It needs nothing else of
        // the service's environment. A keeper does not carry the id: it is not the agent.
        command.env(LAUNCH_ID_VARIABLE, spec.launch_id.as_str());
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(false)
        .spawn()
        .map_err(LaunchError::Launcher)?;
    let identity = identity_of(&child, table);
    let (Some(to_launcher), Some(from_launcher)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(LaunchError::Launcher(io::ErrorKind::BrokenPipe.into()));
    };
    // An error drops both pipes, which ends the launcher; the runtime collects it.
    let identity = identity?;
    let keeper = spec.terminal.is_some().then(|| identity.clone());
    let mut held = Held {
        identity: identity.clone(),
        keeper,
        program: spec.program,
        to_launcher,
        from_launcher: BufReader::new(from_launcher),
        kill: children.adopt(identity, child),
        children: children.clone(),
        deadline,
    };
    match timeout(deadline, held.prepare(table, &line)).await {
        Ok(Ok(())) => Ok(held),
        Ok(Err(error)) => {
            held.end().await;
            Err(error)
        }
        Err(_) => {
            held.end().await;
            Err(LaunchError::NotReady(format!("it said nothing for {} s", deadline.as_secs())))
        }
    }
}

/// The identity of a child. Its pid is not reused before its status is collected.
fn identity_of(child: &Child, table: &ProcTable) -> Result<ProcessIdentity, LaunchError> {
    let unknown = || LaunchError::Launcher(io::Error::other("it is not in the process table"));
    let pid = child.id().and_then(|id| Pid::new(i64::from(id))).ok_or_else(unknown)?;
    let stat = table.stat(pid.get()).map_err(LaunchError::Launcher)?;
    Ok(ProcessIdentity {
        pid,
        start_ticks: stat.ok_or_else(unknown)?.start_ticks,
        boot_id: table.boot_id().clone(),
    })
}

/// The launcher that a keeper told of, if it is in the table as the keeper's child.
fn child_of(keeper: &ProcessIdentity, told: &str, table: &ProcTable) -> Option<ProcessIdentity> {
    let (pid, start_ticks) = told.split_once(' ')?;
    let pid = Pid::new(pid.parse().ok()?)?;
    let start_ticks = start_ticks.parse().ok()?;
    let stat = table.stat(pid.get()).ok()??;
    let is_child = stat.parent == keeper.pid.get() && stat.start_ticks == start_ticks;
    is_child.then(|| ProcessIdentity { pid, start_ticks, boot_id: table.boot_id().clone() })
}

impl Held {
    async fn prepare(&mut self, table: &ProcTable, order: &[u8]) -> Result<(), LaunchError> {
        // If the launcher ended early, the write fails. Its last message explains more.
        let written = self.to_launcher.write_all(order).await;
        let mut line = Vec::new();
        let mut limited = (&mut self.from_launcher).take(MAX_REPLY_BYTES);
        limited.read_until(b'\n', &mut line).await.map_err(LaunchError::Launcher)?;
        let reply = String::from_utf8_lossy(&line);
        let reply = reply.trim();
        match &self.keeper {
            None if reply == "ready" => return Ok(()),
            None => {}
            Some(keeper) => {
                if let Some(agent) = reply.strip_prefix("ready ") {
                    self.identity = child_of(keeper, agent, table).ok_or_else(|| {
                        LaunchError::NotReady(format!("its keeper said {reply:?}"))
                    })?;
                    return Ok(());
                }
            }
        }
        Err(match (reply.strip_prefix("refused "), written) {
            (Some(reason), _) => LaunchError::NotReady(reason.to_owned()),
            (None, Err(error)) => LaunchError::Launcher(error),
            (None, Ok(())) if reply.is_empty() => {
                LaunchError::NotReady("it gave no reason".to_owned())
            }
            (None, Ok(())) => LaunchError::NotReady(format!("it said {reply:?}")),
        })
    }

    /// Says `go` and reads until the exec closes the pipe. Any text before is an error.
    async fn permit(&mut self) -> Result<(), LaunchError> {
        let written = self.to_launcher.write_all(b"go\n").await;
        let mut reply = Vec::new();
        let mut limited = (&mut self.from_launcher).take(MAX_REPLY_BYTES);
        limited.read_to_end(&mut reply).await.map_err(LaunchError::Launcher)?;
        if reply.is_empty() {
            // It died while it waited, and never read `go`.
            return written
                .map_err(|_| LaunchError::NotReady("it ended while it was held".to_owned()));
        }
        let reply = String::from_utf8_lossy(&reply);
        let errno = reply.trim().strip_prefix("errno ").and_then(|number| number.parse().ok());
        Err(match errno {
            Some(number) => LaunchError::Exec {
                program: self.program.clone(),
                cause: io::Error::from_raw_os_error(number),
            },
            None => LaunchError::NotReady(format!("it said {:?}", reply.trim())),
        })
    }

    /// Ends the launcher and waits until it is gone.
    async fn end(self) {
        // The child is the keeper, if there is one. Its end ends the launcher.
        let Self { identity, keeper, to_launcher, kill, children, .. } = self;
        let identity = keeper.unwrap_or(identity);
        drop(to_launcher);
        kill.pull();
        if let Some(report) = children.report(&identity)
            && timeout(END_DEADLINE, exit::of_child(report)).await.is_err()
        {
            tracing::warn!(agent.pid = identity.pid.get(), "a killed launcher is still there");
        }
    }
}

#[async_trait]
impl HeldLaunch for Held {
    fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    fn keeper(&self) -> Option<&ProcessIdentity> {
        self.keeper.as_ref()
    }

    async fn go(mut self: Box<Self>) -> Result<(), LaunchError> {
        match timeout(self.deadline, self.permit()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                self.end().await;
                Err(error)
            }
            Err(_) => {
                self.end().await;
                Err(LaunchError::Launcher(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}
