//! Processes of this machine.

use async_trait::async_trait;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use svc_domain::identity::{BootId, LaunchId, Pid, ProcessIdentity, Verdict};
use svc_shared::ids::{InstanceId, ProjectName};

/// What to start, and how it is held until its identity is recorded.
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// In the record, the identity file and the child's environment.
    pub launch_id: LaunchId,
    /// Absolute path.
    pub program: PathBuf,
    /// Arguments after the program.
    pub args: Vec<OsString>,
    /// Real path of the project.
    pub cwd: PathBuf,
    /// The complete environment of the child, `SVC_LAUNCH_ID` included.
    pub env: Vec<(OsString, OsString)>,
    /// Umask of the child.
    pub umask: u32,
    /// Existing file for standard output and standard error, opened for appending.
    pub output: PathBuf,
    /// Where the launcher writes the identity file.
    pub identity_file: PathBuf,
    /// With it the agent runs on a terminal that a keeper holds.
    ///
    /// Nothing is written to `output` then,
    /// and the host sets `TERM` and `COLORTERM` and removes `COLUMNS` and `LINES`.
    pub terminal: Option<TerminalSpec>,
}

/// The terminal of a launch, and what its keeper needs to know.
#[derive(Debug, Clone)]
pub struct TerminalSpec {
    /// Columns at the start.
    pub cols: u16,
    /// Rows at the start.
    pub rows: u16,
    /// Lines kept above the screen; 0 for none.
    pub scrollback_lines: u32,
    /// Where the keeper writes its record.
    pub sidecar: PathBuf,
    /// Directory for the keeper's socket.
    ///
    /// The keeper takes another if the path would be too long.
    pub socket_dir: PathBuf,
    /// File for the keeper's own messages, created if it is missing.
    pub keeper_log: PathBuf,
    /// The instance that the session belongs to.
    pub instance_id: InstanceId,
    /// Its project.
    pub project: ProjectName,
    /// Name of its worktree.
    pub worktree: Option<String>,
    /// The agent's debug file.
    pub debug_file: Option<PathBuf>,
    /// Whether the keeper writes what clients type to the terminal.
    pub input_allowed: bool,
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The launcher itself could not be started or talked to.
    #[error("cannot start the launcher")]
    Launcher(#[source] io::Error),
    /// The launcher ended or said something else than its identity.
    #[error("the launcher ended before it was ready: {0}")]
    NotReady(String),
    /// The agent program could not be executed.
    #[error("cannot execute {program}")]
    Exec {
        /// What was to be executed.
        program: PathBuf,
        /// The reason the kernel gave.
        #[source]
        cause: io::Error,
    },
}

/// A launcher that waits for permission to become the agent.
/// If it is dropped without `go`, it ends and nothing was started.
#[async_trait]
pub trait HeldLaunch: Send {
    /// Identity of the process that will be the agent; its pid does not change.
    fn identity(&self) -> &ProcessIdentity;

    /// Identity of the keeper, if the launch has a terminal.
    fn keeper(&self) -> Option<&ProcessIdentity> {
        None
    }

    /// Lets it become the agent.
    ///
    /// # Errors
    /// [`LaunchError::Exec`] when the program could not be executed; nothing runs then.
    async fn go(self: Box<Self>) -> Result<(), LaunchError>;
}

/// How a process ended.
///
/// Code and signal are `None` when nobody could collect them (not our child).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitReport {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal number.
    pub signal: Option<i32>,
    /// Whether the kernel killed a process of its control group for memory.
    ///
    /// Only set after signal 9, and only for launches in a control group of their own.
    pub oom_kill: bool,
}

/// Signals this service sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The orderly end.
    Interrupt,
    /// The orderly end of a process of our own.
    Terminate,
    /// The last resort.
    Kill,
}

/// Who receives a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The process alone.
    Process,
    /// Its process group, if the process leads it; else the process alone.
    Group,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// Sent to the proven process.
    Sent,
    /// The process was already gone; nothing was sent.
    Gone,
    /// The kernel refused: another owner.
    NotPermitted,
    /// The identity could not be proven; nothing was sent.
    Unproven,
}

/// What can be known about a live process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Who it is.
    pub identity: ProcessIdentity,
    /// Its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Effective user id of its owner.
    pub uid: u32,
    /// Arguments, lossy; empty when unreadable.
    pub argv: Vec<String>,
    /// Working directory; `None` when unreadable.
    pub cwd: Option<PathBuf>,
    /// Program file; a trailing ` (deleted)` is removed. `None` when unreadable.
    pub exe: Option<PathBuf>,
}

/// A process that carries the id of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carrier {
    /// The id.
    pub launch: LaunchId,
    /// The process.
    pub facts: ProcessFacts,
    /// Resident memory.
    pub resident_bytes: u64,
    /// Time since its start.
    pub age: Duration,
}

/// What became of the wish to give a launch a control group of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enclosed {
    /// It is in one, seen in the process table.
    Yes,
    /// There is no manager that this process could ask.
    NoManager,
    /// There is one, and this is why it came to nothing.
    Failed(String),
}

/// The manager of control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manager {
    /// The manager answers; its version.
    Answers(String),
    /// No manager that this process may ask.
    Absent,
    /// A manager that does not answer, and why.
    Silent(String),
}

/// The service unit that this process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUnit {
    /// Its name.
    pub name: String,
    /// The unit's `KillMode`: which processes the manager ends with the unit.
    pub kill_mode: String,
}

/// Future of [`ProcessHost::exited`].
pub type Exited = Pin<Box<dyn Future<Output = ExitReport> + Send>>;

/// Processes of this machine.
/// All methods without `async` are quick reads of the process table.
#[async_trait]
pub trait ProcessHost: Send + Sync {
    /// The boot this machine runs in.
    fn boot_id(&self) -> &BootId;

    /// Starts a launcher and waits until it can become the agent (at most 10 s).
    ///
    /// # Errors
    /// Nothing was started.
    async fn launch(&self, spec: LaunchSpec) -> Result<Box<dyn HeldLaunch>, LaunchError>;

    /// Whether the recorded process exists.
    fn probe(&self, identity: &ProcessIdentity) -> Verdict;

    /// Facts about a pid; `None` when no live process has it.
    fn inspect(&self, pid: Pid) -> Option<ProcessFacts>;

    /// The launch id in the environment of a proven process, whoever launched it.
    /// `None` when it carries none or cannot be read.
    fn launch_of(&self, identity: &ProcessIdentity) -> Option<LaunchId>;

    /// Whether it is our child and nobody has collected its exit status.
    ///
    /// Its pid cannot have been reused, so nothing else has to prove that it is the one launched.
    fn is_own_child(&self, identity: &ProcessIdentity) -> bool {
        let _ = identity;
        false
    }

    /// The live process of this user whose environment carries the launch id, if any.
    fn find_launch(&self, launch_id: &LaunchId) -> Option<ProcessFacts>;

    /// All live processes of this user whose environment carries the launch id.
    /// These are the agent and what it started, also after the agent has ended or they have left
    /// its family.
    fn launch_members(&self, launch_id: &LaunchId) -> Vec<ProcessFacts>;

    /// All processes that are left of a launch, deepest first.
    /// With a control group this includes the keeper, which the caller knows by its identity.
    /// These are the processes with its id, those in the session of its first process (`first`,
    /// which may be gone), and the descendants of both.
    fn remains(&self, first: Option<&ProcessIdentity>, launch_id: &LaunchId) -> Vec<ProcessFacts>;

    /// Every live process of this user that carries the id of any launch.
    fn carriers(&self) -> Vec<Carrier>;

    /// All live processes of this user.
    /// Reads the whole process table, so it is not for hot paths.
    fn processes(&self) -> Vec<ProcessFacts>;

    /// Signals a process after proving its identity once more.
    fn signal(&self, identity: &ProcessIdentity, signal: Signal, target: Target) -> Signalled;

    /// Resolves when the process has ended; at once when it is already gone.
    /// Never polls where the kernel can tell. Several tasks may wait for one process.
    fn exited(&self, identity: &ProcessIdentity) -> Exited;

    /// Live descendants of a process, deepest first, from one snapshot.
    fn descendants(&self, identity: &ProcessIdentity) -> Vec<ProcessFacts>;

    /// Puts a held launch, and its keeper, into a control group (at most 2 s).
    ///
    /// The group is named after the launch.
    /// Its descendants stay in there, and the end of the service's own unit does not reach it.
    /// `about` is for people.
    async fn enclose(
        &self,
        _identities: &[&ProcessIdentity],
        _launch_id: &LaunchId,
        _about: &str,
    ) -> Enclosed {
        Enclosed::NoManager
    }

    /// Kills everything in the control group of a launch at once, if it has one.
    /// At most 2 s. For processes that multiply faster than they can be signalled one by one.
    async fn kill_enclosed(&self, _launch_id: &LaunchId) {}

    /// Whether control groups can be had (bounded, 2 s).
    async fn manager(&self) -> Manager {
        Manager::Absent
    }

    /// The unit of this process, if it runs in one (starts a program, at most 5 s).
    async fn own_unit(&self) -> Option<ServiceUnit> {
        None
    }
}
