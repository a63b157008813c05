//! Transient systemd scopes: a control group for each launch.
//!
//! The systemd manager of this machine or of this user creates them. It is asked over its private
//! socket, which needs no bus. Every request has a time limit: without an answer a launch goes on
//! without a scope. Which processes are in a scope is read from the process table, never from systemd.

mod failure;
mod manager;
pub(crate) mod memory_kills;
mod wire;

use failure::Failure;
use manager::Connection;
use memory_kills::MemoryKills;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use svc_domain::enclosure;
use svc_domain::identity::LaunchId;
use svc_ports::process::{Enclosed, Manager, ServiceUnit};
use tokio::time::{Instant, timeout};

/// Longest wait for the manager.
const LIMIT: Duration = Duration::from_secs(2);
/// Time without further requests to a manager that did not answer.
///
/// Otherwise each of many launches would wait for it in vain.
const QUIET: Duration = Duration::from_secs(60);
/// The socket of the system's manager. Only the superuser may use it.
const SYSTEM: &str = "/run/systemd/private";

/// The command of systemd.
const SYSTEMCTL: [&str; 2] = ["/usr/bin/systemctl", "/bin/systemctl"];
const COMMAND_LIMIT: Duration = Duration::from_secs(5);

/// The socket of the systemd manager that this process may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManagerSocket {
    /// The manager of the system, which is process 1.
    System(PathBuf),
    /// The manager of this user.
    User(PathBuf),
    /// There is no manager that this process may or should ask.
    None,
}

impl ManagerSocket {
    /// The manager that this process may ask.
    ///
    /// The superuser asks the manager of the system. Another user has a manager of their own, which ends
    /// with their last login and ends its scopes too. It is therefore asked only by a process that runs
    /// below it and ends with it anyway.
    #[must_use]
    pub fn of_this_process() -> Self {
        let user = rustix::process::geteuid();
        if user.is_root() {
            return Self::System(PathBuf::from(SYSTEM));
        }
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        if !enclosure::is_below_user_manager(&groups, user.as_raw()) {
            return Self::None;
        }
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|dir| dir.is_absolute());
        let runtime =
            runtime.unwrap_or_else(|| PathBuf::from(format!("/run/user/{}", user.as_raw())));
        Self::User(runtime.join("systemd/private"))
    }

    /// The socket, if it exists and belongs to root or to this user.
    fn path(&self) -> Option<&PathBuf> {
        let (Self::System(path) | Self::User(path)) = self else { return None };
        let found = std::fs::symlink_metadata(path).ok()?;
        let is_ours = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
        (found.file_type().is_socket() && is_ours).then_some(path)
    }
}

/// Scopes of this process's launches.
#[derive(Debug)]
pub(crate) struct Scopes {
    socket: ManagerSocket,
    quiet_until: Mutex<Option<Instant>>,
    /// Our mounts, read once: control groups stay mounted where they are.
    mounts: OnceLock<String>,
}

impl Scopes {
    pub(crate) fn new(socket: ManagerSocket) -> Self {
        Self { socket, quiet_until: Mutex::new(None), mounts: OnceLock::new() }
    }

    /// Creates the scope of a launch and puts processes into it.
    pub(crate) async fn enclose(&self, pids: &[i32], launch: &LaunchId, about: &str) -> Enclosed {
        let Some(path) = self.socket.path() else { return Enclosed::NoManager };
        if self.is_quiet() {
            return Enclosed::Failed("systemd did not answer a moment ago".to_owned());
        }
        let made = async {
            let mut manager = Connection::open(path, self.is_system()).await?;
            manager.start_scope(&enclosure::unit(launch), pids, about).await
        };
        match self.bounded(made).await {
            Ok(()) => Enclosed::Yes,
            Err(failure) => Enclosed::Failed(failure.to_string()),
        }
    }

    /// The kernel's count of kills for memory in the scope of a launch.
    ///
    /// `groups` is the text of `/proc/PID/cgroup` of a process in the scope.
    pub(crate) fn memory_kills(&self, launch: &LaunchId, groups: &str) -> Option<MemoryKills> {
        let read = || std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        MemoryKills::of_scope(&enclosure::unit(launch), self.mounts.get_or_init(read), groups)
    }

    /// Kills every process in the scope of a launch.
    pub(crate) async fn kill(&self, launch: &LaunchId) {
        let Some(path) = self.socket.path() else { return };
        let killed = async {
            let mut manager = Connection::open(path, self.is_system()).await?;
            manager.kill_scope(&enclosure::unit(launch)).await
        };
        if let Err(failure) = self.bounded(killed).await {
            tracing::debug!(error = %failure, "systemd did not kill the processes of a scope");
        }
    }

    /// Whether the manager answers.
    pub(crate) async fn manager(&self) -> Manager {
        let Some(path) = self.socket.path() else { return Manager::Absent };
        let version = async { Connection::open(path, self.is_system()).await?.version().await };
        match self.bounded(version).await {
            Ok(version) => Manager::Answers(version),
            Err(failure) => Manager::Silent(failure.to_string()),
        }
    }

    async fn bounded<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match timeout(LIMIT, work).await {
            Ok(done) => {
                if done.is_ok() {
                    self.set_quiet(None);
                }
                done
            }
            Err(_) => {
                self.set_quiet(Some(Instant::now() + QUIET));
                Err(Failure::Silent { seconds: LIMIT.as_secs() })
            }
        }
    }

    fn is_system(&self) -> bool {
        matches!(self.socket, ManagerSocket::System(_))
    }

    fn is_quiet(&self) -> bool {
        let until = self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn set_quiet(&self, until: Option<Instant>) {
        *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// The service unit of this process, read with `systemctl`.
///
/// That works also for a user who may not use the manager's private socket.
pub(crate) async fn own_unit() -> Option<ServiceUnit> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let name = enclosure::service_unit(&groups)?.to_owned();
    let user = rustix::process::geteuid().as_raw();
    let of_user = enclosure::is_below_user_manager(&groups, user).then_some("--user");
    let program = SYSTEMCTL.iter().find(|path| Path::new(path).is_file())?;
    let answer = tokio::process::Command::new(program)
        .args(of_user)
        .args(["show", "--property=KillMode", "--value", "--", &name])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(COMMAND_LIMIT, answer).await.ok()?.ok()?;
    let kill_mode = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!kill_mode.is_empty()).then_some(ServiceUnit { name, kill_mode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixListener;

    fn launch() -> LaunchId {
        "0123456789abcdef0123456789abcdef".parse().unwrap()
    }

    #[tokio::test]
    async fn without_a_manager_there_is_no_scope_and_no_wait() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("private");
        for socket in [
            ManagerSocket::None,
            ManagerSocket::System(missing.clone()),
            // A file where the socket should be.
            ManagerSocket::User(dir.path().to_owned()),
        ] {
            let scopes = Scopes::new(socket);
            assert_eq!(scopes.enclose(&[2], &launch(), "x").await, Enclosed::NoManager);
            assert_eq!(scopes.manager().await, Manager::Absent);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_manager_that_does_not_answer_holds_up_one_launch_and_not_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private");
        let _silent = UnixListener::bind(&path).unwrap();
        let scopes = Scopes::new(ManagerSocket::User(path));
        let began = Instant::now();
        let Enclosed::Failed(why) = scopes.enclose(&[2], &launch(), "x").await else { panic!() };
        assert!(why.contains("2 s"), "{why}");
        let waited = began.elapsed();
        let Enclosed::Failed(_) = scopes.enclose(&[2], &launch(), "x").await else { panic!() };
        assert_eq!(began.elapsed(), waited, "it is not asked for a while");
        tokio::time::advance(QUIET).await;
        assert!(!scopes.is_quiet(), "it is asked again");
    }

    #[tokio::test]
    async fn a_socket_of_another_process_than_1_is_not_the_systems_manager() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private");
        let _other = UnixListener::bind(&path).unwrap();
        let scopes = Scopes::new(ManagerSocket::System(path));
        let Enclosed::Failed(why) = scopes.enclose(&[2], &launch(), "x").await else { panic!() };
        assert!(why.contains("another process"), "{why}");
    }
}
