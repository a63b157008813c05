//! What a keeper needs before its agent: log, terminal, socket, sidecar, signals.

use super::agent::Agent;
use super::keeper::{Keeper, Parts};
use super::machine::{Terminal, now, window};
use super::report::{cannot, say};
use super::socket;
use crate::message::{KEEPER_PROTOCOLS, Phase, ProcessWire, on_wire};
use crate::screen::Size;
use crate::sidecar::{AgentRecord, Begin, KeeperRecord, Sidecar, Token};
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::termios::{InputModes, OptionalActions, tcgetattr, tcsetattr, tcsetwinsize};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use svc_domain::identity::ProcessIdentity;
use svc_process::launcher::{KeeperOrder, KeeperTerminal};
use svc_process::table::ProcTable;

pub(super) struct Setup {
    pub(super) terminal: Terminal,
    order: KeeperTerminal,
    size: Size,
    listener: UnixListener,
    signals: UnixStream,
    sidecar: Sidecar,
    null: OwnedFd,
}

impl Setup {
    pub(super) fn begin(order: &KeeperOrder) -> Result<Self, String> {
        let order = order.terminal().map_err(cannot("use the order"))?;
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(cannot("open /dev/null"))?;
        open_log(&order.spec.keeper_log).map_err(cannot("open the keeper's log"))?;
        quiet_panics();
        let signals = signals().map_err(cannot("take over signals"))?;
        become_reaper().map_err(cannot("become the reaper of the agent's orphans"))?;
        let size = Size::clamped(order.spec.cols, order.spec.rows);
        let terminal = open_terminal(size).map_err(|error| {
            // The service falls back to another mode if no terminal is to be had.
            format!("refused no terminal is to be had: {error}")
        })?;
        let bound =
            socket::bind(&order.spec.socket_dir).map_err(cannot("open a private socket"))?;
        let identity = ProcTable::open()
            .map_err(|error| error.to_string())
            .and_then(|table| table.own_identity().map_err(|error| error.to_string()))
            .map_err(cannot("find out who it is"))?;
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(cannot("get random numbers"))?;
        let exe = std::env::current_exe().unwrap_or_default();
        let sidecar = Sidecar::new(Begin {
            keeper: KeeperRecord {
                process: ProcessWire::from(&identity),
                boot_id: identity.boot_id.as_str().to_owned(),
                exe,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                proto: on_wire(&KEEPER_PROTOCOLS),
            },
            instance_id: order.spec.instance_id.clone(),
            project: order.spec.project.clone(),
            cwd: order.cwd.clone(),
            worktree: order.spec.worktree.clone(),
            debug_file: order.spec.debug_file.clone(),
            socket: bound.path,
            token: Token::new(random),
            started_at: now(),
        });
        let setup =
            Self { terminal, order, size, listener: bound.listener, signals, sidecar, null };
        setup.write_sidecar()?;
        Ok(setup)
    }

    fn sidecar_path(&self) -> &PathBuf {
        &self.order.spec.sidecar
    }

    fn write_sidecar(&self) -> Result<(), String> {
        self.sidecar.write(self.sidecar_path()).map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            format!("refused {error}: {}", cause.unwrap_or_default())
        })
    }

    /// Records who the agent will be.
    pub(super) fn agent(&mut self, identity: &ProcessIdentity) -> Result<(), String> {
        let argv_sha256 = self.order.argv_sha256.clone();
        self.sidecar.agent =
            Some(AgentRecord { process: ProcessWire::from(identity), argv_sha256 });
        self.write_sidecar()
    }

    /// Takes back what was made, because no agent was started.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(self.sidecar_path()); // it was not written: nothing to remove
        socket::remove(&self.sidecar.socket);
    }

    /// The agent runs: lets go of the service.
    pub(super) fn started(mut self, agent: Agent) -> Result<Keeper, String> {
        self.sidecar.phase = Phase::Starting;
        if let Err(reason) = self.write_sidecar() {
            say(&reason); // the agent runs: its record of a moment ago still names it
        }
        let redirected = dup2_stdin(&self.null).and_then(|()| dup2_stdout(&self.null));
        if let Err(error) = redirected {
            say(&format!("cannot let go of the service: {error}"));
        }
        // Only the agent holds the terminal from now on: its end is the end of the output.
        drop(self.terminal.slave);
        Ok(Keeper::new(Parts {
            agent,
            master: self.terminal.master,
            size: self.size,
            listener: self.listener,
            signals: self.signals,
            sidecar: self.sidecar,
            sidecar_path: self.order.spec.sidecar,
            scrollback: usize::try_from(self.order.spec.scrollback_lines).unwrap_or(usize::MAX),
            input_allowed: self.order.spec.input_allowed,
        }))
    }
}

/// Opens a pseudo-terminal. Its master never blocks.
fn open_terminal(size: Size) -> io::Result<Terminal> {
    let master = open_master()?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = open_slave(&master)?;
    tcsetwinsize(&master, window(size))?;
    let mut modes = tcgetattr(&slave)?;
    // So that the kernel erases whole characters while the agent reads lines.
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
    Ok(Terminal { master, slave })
}

/// Orphans of the agent come to this process, so that somebody collects them.
#[cfg(target_os = "linux")]
fn become_reaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Orphans go to the first process of the system, which collects them.
#[cfg(not(target_os = "linux"))]
fn become_reaper() -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn open_master() -> io::Result<OwnedFd> {
    Ok(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?)
}

#[cfg(not(target_os = "linux"))]
fn open_master() -> io::Result<OwnedFd> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    Ok(master)
}

#[cfg(target_os = "linux")]
fn open_slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    // By the master, not by its path: that may mean another terminal in another mount of devpts.
    Ok(rustix::pty::ioctl_tiocgptpeer(master, flags)?)
}

#[cfg(not(target_os = "linux"))]
fn open_slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    let path = rustix::pty::ptsname(master, Vec::new())?;
    Ok(open(path.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}

fn open_log(path: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let log = open(path, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(dup2_stderr(&log)?)
}

/// A panic of the emulator is counted; its message may hold a part of the screen.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        say(&format!("a fault at {place}"));
    }));
}

/// A socket that becomes readable with each ended child.
///
/// Other signals that end programs do nothing, but for the one that asks to end.
fn signals() -> io::Result<UnixStream> {
    use signal_hook::consts::{SIGCHLD, SIGINT};
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    write.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, write)?;
    svc_process::signal_state::settle_as_holder();
    // A handler and not "ignore": handlers end at exec, so the agent starts with defaults.
    signal_hook::flag::register(SIGINT, std::sync::Arc::default())?;
    Ok(read)
}
