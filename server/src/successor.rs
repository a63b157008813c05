//! The program that takes the place of this one at a restart.
//! It is the same process with a new image.
//!
//! It is checked before anything ends, and it inherits the listening socket by the protocol that
//! systemd passes sockets with (`LISTEN_FDS`), so that callers wait and none is refused (H114).

use crate::compose::Surroundings;
use crate::error_chain::error_chain;
use crate::serve::{bind, notify};
use crate::signals::Signals;
use crate::tls;
use crate::trial::{self, Verdict};
use crate::twin::Twin;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use sd_notify::NotifyState;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_app::upgrade::{CAN_START, Order, Swap};
use svc_config::Config;
use svc_process::run_lock::RunLock;

/// The variable that says where the inherited sockets begin, if not at 3.
const FIRST: &str = "LISTEN_FDS_FIRST_FD";

/// A program that does not answer within this time does not start.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often two free descriptors in a row are looked for.
const TRIES: usize = 64;

/// Most characters that are passed on of what a program says.
const LONGEST_REASON: usize = 600;

/// The sockets that whoever started this process opened for it.
pub(crate) struct Inherited {
    /// They listen; one of them is for this service.
    pub(crate) listeners: Vec<TcpListener>,
    /// It keeps the other loopback address from others, and does not listen.
    pub(crate) twin: Option<TcpListener>,
    /// Who opened them serves them again when this process ends.
    pub(crate) is_lent: bool,
}

/// Takes the sockets that were handed over.
///
/// Call it before the first thread: it changes the environment.
pub(crate) fn inherited() -> Inherited {
    // A service that tries another version starts it without this; see `Start::child`.
    let is_lent = std::env::var_os("LISTEN_PID").is_none();
    let mut sockets = listenfd::ListenFd::from_env();
    // What is no socket of TCP is none that this service could serve.
    let all = (0..sockets.len()).filter_map(|at| sockets.take_tcp_listener(at).ok().flatten());
    let mut listeners = Vec::new();
    let mut twin = None;
    for socket in all {
        // Only the program before this one keeps a socket that does not listen.
        match svc_process::sockets::listens(&socket) {
            Ok(false) => twin = Some(socket),
            Ok(true) | Err(_) => listeners.push(socket),
        }
    }
    Inherited { is_lent: is_lent && !listeners.is_empty(), listeners, twin }
}

/// Ends this process when the one that lent it its sockets dies.
///
/// Otherwise it would go on serving in the way of the next start. Call it on the first thread: the
/// kernel watches the thread of the parent that started this process.
#[cfg(target_os = "linux")]
pub(crate) fn end_with_parent() {
    use rustix::process::{Signal, set_parent_process_death_signal};
    let _ = set_parent_process_death_signal(Some(Signal::TERM)); // it fails for no known signal
}

/// Other systems tell nobody.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_with_parent() {}

/// The socket that listens at the configured address.
///
/// Who may reach the service is judged by the configuration, and the service has one address: a
/// socket that listens elsewhere is closed, and the log says so.
pub(crate) async fn fitting(config: &Config, all: Vec<TcpListener>) -> Option<TcpListener> {
    let mut chosen = None;
    for inherited in all {
        match chosen {
            None => chosen = fits(config, inherited).await,
            Some(_) => {
                let at = inherited.local_addr().map(|at| at.to_string()).unwrap_or_default();
                tracing::warn!(
                    "a second socket for {}:{} was handed over ({at}); svc serves one, and this \
                     one is closed: leave it out of the socket unit",
                    config.host,
                    config.port
                );
            }
        }
    }
    chosen
}

/// The socket, if it listens at the configured address.
async fn fits(config: &Config, inherited: TcpListener) -> Option<TcpListener> {
    let own = inherited.local_addr().ok()?;
    let wanted = tokio::net::lookup_host((config.host.as_str(), config.port)).await.ok()?;
    let is_there = wanted.into_iter().any(|address| {
        address.ip() == own.ip() && (config.port == 0 || address.port() == own.port())
    });
    if !is_there {
        tracing::warn!(
            "a socket that was handed over listens at {own} and not at {}:{}; it is closed: svc \
             serves the address of its configuration and no other",
            config.host,
            config.port
        );
        return None;
    }
    inherited.set_nonblocking(true).ok()?;
    Some(inherited)
}

/// What was started, to be started again.
#[derive(Debug, Clone)]
pub(crate) struct Successor {
    program: PathBuf,
    own_name: OsString,
    arguments: Vec<OsString>,
    umask: u32,
    /// A listener at an address that was configured meanwhile.
    moved: Arc<Mutex<Option<(TcpListener, Twin)>>>,
}

/// How a program is started in the place of this one.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    program: PathBuf,
    own_name: OsString,
    arguments: Vec<OsString>,
    umask: u32,
}

impl Start {
    /// The program with its name, arguments and sockets, which come with it.
    fn command(
        &self,
        listener: &TcpListener,
        twin: Option<&OwnedFd>,
    ) -> std::io::Result<(Command, Vec<OwnedFd>)> {
        let passed = in_a_row(listener, twin)?;
        let mut command = Command::new(&self.program);
        command
            .arg0(&self.own_name)
            .args(&self.arguments)
            .env("LISTEN_FDS", passed.len().to_string())
            .env(FIRST, passed.first().map_or(0, AsRawFd::as_raw_fd).to_string())
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDNAMES");
        Ok((command, passed))
    }

    /// Starts it as a child that no service manager hears of.
    pub(crate) fn child(
        &self,
        listener: &TcpListener,
        twin: Option<&OwnedFd>,
    ) -> std::io::Result<tokio::process::Child> {
        let (mut command, _passed) = self.command(listener, twin)?;
        command.stdin(Stdio::null());
        for manager in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
            command.env_remove(manager);
        }
        svc_process::process_umask::restore(self.umask);
        let child = tokio::process::Command::from(command).spawn();
        svc_process::process_umask::harden();
        child
    }
}

impl Successor {
    /// Remembers how this process was started; `None` if nobody knows.
    ///
    /// Call it at the start: a program whose file is replaced later has no path any more.
    pub(crate) fn of_this_process(umask: u32) -> Option<Self> {
        let mut words = std::env::args_os();
        Some(Self {
            program: svc_process::own_program::path().ok()?,
            own_name: words.next()?,
            arguments: words.collect(),
            umask,
            moved: Arc::default(),
        })
    }

    /// Whether the program on the disk starts with the configuration on the disk.
    ///
    /// A changed address is bound here, so that it cannot be lost afterwards. With an order the
    /// ordered program is asked.
    ///
    /// # Errors
    /// Why it would not start.
    pub(crate) async fn check(
        &self,
        around: &Surroundings,
        order: Option<&Order>,
    ) -> Result<(), String> {
        let Some(file) = &around.config_file else {
            return Err("there is no configuration file".into());
        };
        let program = match order {
            None => self.program.clone(),
            Some(order) if !trial::is_own(&self.program, &order.target) => {
                let (own, other) = (self.program.display(), order.target.display());
                return Err(format!("the service was started from {own} and not from {other}"));
            }
            Some(order) => {
                let swap = Swap::new(&around.config.state_dir, order.clone());
                let checked = tokio::task::spawn_blocking(move || swap.check()).await;
                checked.map_err(|error| error.to_string())??;
                order.staged.clone()
            }
        };
        accepts(&program, file).await?;
        would_start(&program, file).await?;
        let Some((found, environment)) = around.origin.parts() else { return Ok(()) };
        let (found, environment) = (found.clone(), environment.clone());
        let loaded = tokio::task::spawn_blocking(move || svc_config::load(&found, &environment));
        // Another version of the program may understand what this one does not.
        let Ok(Ok(loaded)) = loaded.await else { return Ok(()) };
        let (old, new) = (&around.config, &loaded.config);
        tls::open(new).await.map_err(|error| error_chain(&error))?;
        let has_moved = (&old.host, old.port) != (&new.host, new.port);
        let listener = match has_moved {
            true => {
                let bound = bind(&new.host, new.port).await.map_err(|error| match old.port {
                    // Our own socket is in the way of another address with its port.
                    port if port == new.port => format!(
                        "another `host` with the same `port` cannot be bound while svc listens; \
                         stop svc and start it again ({})",
                        error_chain(&error)
                    ),
                    _ => error_chain(&error),
                })?;
                let bound = bound.into_std().map_err(|error| error.to_string())?;
                let address = bound.local_addr().map_err(|error| error.to_string())?;
                let twin = Twin::keep(address, None).await;
                Some((bound, twin))
            }
            false => None,
        };
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = listener;
        Ok(())
    }

    /// What goes to the successor.
    /// The listener is the one at the new address, or the one that served.
    pub(crate) fn hand_over(&self, served: TcpListener, twin: Twin, lock: RunLock) -> Handover {
        let moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (listener, twin) = moved.unwrap_or((served, twin));
        let Self { program, own_name, arguments, umask, .. } = self.clone();
        let start = Start { program, own_name, arguments, umask };
        Handover { start, listener, twin, lock: Some(lock) }
    }
}

/// Asks a program whether it accepts a configuration; it need not be this version.
async fn accepts(program: &Path, file: &Path) -> Result<(), String> {
    let done = asked(program, &["config", "check", "-c"], file).await?;
    match done.status.success() {
        true => Ok(()),
        false => Err(said(program, &done)),
    }
}

/// Asks a program whether state directory, lock and schema would let it start.
async fn would_start(program: &Path, file: &Path) -> Result<(), String> {
    let done = asked(program, &[CAN_START, "--json", "-c"], file).await?;
    if done.status.success() {
        return Ok(());
    }
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    let error = answer.get("error");
    let text = |name: &str| error?.get(name)?.as_str();
    match (text("code"), text("message")) {
        // Another version, which does not know the question.
        (Some("usage"), _) => Ok(()),
        (_, Some(reason)) => Err(reason.chars().take(LONGEST_REASON).collect()),
        (_, None) => Err(said(program, &done)),
    }
}

async fn asked(program: &Path, words: &[&str], file: &Path) -> Result<Output, String> {
    let shown = program.display();
    let mut command = tokio::process::Command::new(program);
    command.args(words).arg(file).stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(format!("{shown} does not run: {error}; put it back")),
        Err(_) => Err(format!("{shown} did not answer within {PATIENCE:?}")),
    }
}

/// What a program said before it ended badly.
fn said(program: &Path, done: &Output) -> String {
    let said = [done.stderr.as_slice(), done.stdout.as_slice()].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said: String = said.join("; ").chars().take(LONGEST_REASON).collect();
    match said.is_empty() {
        true => format!("{} ended with {}", program.display(), done.status),
        false => said,
    }
}

/// Everything a successor needs. Nothing of the service runs any more.
pub(crate) struct Handover {
    start: Start,
    listener: TcpListener,
    /// Nobody gets the other loopback address in between.
    twin: Twin,
    /// The kernel frees it at the exchange.
    /// So nobody else takes the state directory before. A program that is tried needs it.
    lock: Option<RunLock>,
}

impl Handover {
    /// Tries the ordered program; nothing if this process is to end instead.
    pub(crate) async fn tried(
        mut self,
        order: Order,
        state_dir: &Path,
        signals: &mut Signals,
    ) -> Option<Self> {
        drop(self.lock.take());
        let swap = Swap::new(state_dir, order);
        let sockets = (&self.listener, self.twin.socket());
        let verdict = trial::run(swap, &self.start, sockets, state_dir, signals).await;
        (verdict == Verdict::Go).then_some(self)
    }

    /// Replaces this process. Comes back only when that failed.
    pub(crate) fn replace(self) -> std::io::Error {
        // The sockets are open until the exchange.
        let (mut command, _passed) = match self.start.command(&self.listener, self.twin.socket()) {
            Ok(command) => command,
            Err(error) => return error,
        };
        // The successor has the whole time for its start.
        notify(&[NotifyState::Watchdog]);
        svc_process::process_umask::restore(self.start.umask);
        command.env("LISTEN_PID", std::process::id().to_string()).exec()
    }
}

/// Descriptors of these sockets that follow each other and survive exec.
fn in_a_row(listener: &TcpListener, twin: Option<&OwnedFd>) -> std::io::Result<Vec<OwnedFd>> {
    let mut passed = vec![fcntl_dupfd_cloexec(listener, 3)?];
    if let Some(twin) = twin {
        // Each try begins above what was in the way of the one before.
        for _ in 0..TRIES {
            let next = passed.first().map_or(3, AsRawFd::as_raw_fd) + 1;
            let second = fcntl_dupfd_cloexec(twin, next)?;
            let found = second.as_raw_fd();
            if found == next {
                passed.push(second);
                break;
            }
            passed = vec![fcntl_dupfd_cloexec(listener, found)?];
        }
    }
    for socket in &passed {
        fcntl_setfd(socket, FdFlags::empty())?;
    }
    Ok(passed)
}
