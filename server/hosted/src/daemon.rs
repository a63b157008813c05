//! The daemon: holds the pipes of agents, keeps their frames, serves connections.

mod admitted;
mod connection;
mod detach;
mod methods;
mod process;
mod ring;
mod state;
mod table;
mod time;

use admitted::Admissions;
use rustix::fs::{FlockOperation, OFlags, flock};
use state::Daemon;
use std::fs::File;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use svc_process::{Host, HostOptions, files};
use table::Table;
use time::now;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Without processes and connections the daemon ends after so long.
const IDLE: Duration = Duration::from_secs(600);
/// A pipe or a link in the place of a file is an error, and is not waited for.
const PLAIN: i32 = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).bits().cast_signed();
/// Exit code when another daemon serves the directory.
const TAKEN: u8 = 3;

/// What the daemon was asked to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub socket: PathBuf,
    /// Agents go on when it ends.
    pub keep_children: bool,
}

/// Runs `svc-hosted`: detaches, then serves. The exit code for the launcher.
#[must_use]
pub fn main(options: &Options) -> ExitCode {
    if !detach::is_detached() {
        return detach::launch();
    }
    match serve_detached(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            detach::report(&why);
            ExitCode::from(code)
        }
    }
}

/// The directory of the socket, where the daemon's other files are.
fn directory(socket: &Path) -> PathBuf {
    socket.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

fn serve_detached(options: &Options) -> Result<(), (u8, String)> {
    let failed = |what: &str, why: &dyn std::fmt::Display| (1, format!("{what}: {why}"));
    detach::own_session();
    // With the daemon all its agents would end.
    svc_process::signal_state::settle_as_holder();
    let token = detach::token().map_err(|error| failed("no token was handed over", &error))?;
    let dir = directory(&options.socket);
    let log = File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(PLAIN)
        .open(dir.join("daemon.log"))
        .map_err(|error| failed("the log cannot be opened", &error))?;
    tracing_subscriber::fmt().with_writer(log).with_ansi(false).with_target(false).init();
    let lock = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(PLAIN)
        .open(dir.join("daemon.lock"))
        .map_err(|error| failed("the lock cannot be opened", &error))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err((TAKEN, "another daemon serves this directory".to_owned()));
    }
    let host = Host::new(HostOptions::default())
        .map_err(|error| failed("the process table cannot be read", &error))?;
    let identity = host
        .table()
        .own_identity()
        .map_err(|error| failed("its own process cannot be read", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| failed("no runtime", &error))?;
    let daemon = Arc::new(Daemon {
        token,
        identity,
        started_at: now(),
        table: Table::new(host, dir.join("children.json")),
        keep: AtomicBool::new(options.keep_children),
        ending: CancellationToken::new(),
    });
    let socket = options.socket.clone();
    let served = runtime.block_on(async {
        let listener = bind(&socket).map_err(|error| failed("cannot listen", &error))?;
        tracing::info!("listens, pid {}", daemon.identity.pid);
        detach::ready();
        serve(Arc::clone(&daemon), listener).await;
        let _ = std::fs::remove_file(&socket);
        if daemon.keep.load(Ordering::Acquire) {
            daemon.table.record();
        } else {
            daemon.table.end_all().await;
        }
        tracing::info!("ends");
        Ok(())
    });
    runtime.shutdown_background();
    drop(lock);
    served
}

/// Takes over the socket; the lock says that nobody else serves it.
fn bind(socket: &Path) -> std::io::Result<UnixListener> {
    files::remove_socket(socket)?;
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn serve(daemon: Arc<Daemon>, listener: UnixListener) {
    let admissions = Admissions::new();
    let user = rustix::process::geteuid().as_raw();
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be taken");
        return;
    };
    let mut idle = tokio::time::interval(IDLE);
    idle.tick().await;
    let mut was_idle = false;
    loop {
        tokio::select! {
            () = daemon.ending.cancelled() => return,
            _ = terminate.recv() => return,
            _ = interrupt.recv() => return,
            _ = idle.tick() => {
                let is_idle = admissions.are_empty() && daemon.table.running().is_empty();
                // Idle at two ticks in a row, and nobody came in between.
                if is_idle && std::mem::replace(&mut was_idle, is_idle) {
                    return;
                }
            }
            accepted = listener.accept() => {
                was_idle = false;
                let Ok((socket, _)) = accepted else {
                    // Out of descriptors, mostly: somebody must close one first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let is_ours = socket.peer_cred().is_ok_and(|peer| peer.uid() == user);
                if is_ours {
                    let (of, admitted) = (Arc::clone(&daemon), admissions.enter());
                    daemon.table.tasks.spawn(connection::serve(of, socket, admitted));
                }
            }
        }
    }
}
