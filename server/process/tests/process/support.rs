//! A folder, a process host, and processes that end with their test.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use svc_domain::identity::{LaunchId, Pid, ProcessIdentity, Verdict};
use svc_ports::process::{
    ExitReport, HeldLaunch, LaunchError, LaunchSpec, ProcessHost, Signal, Target,
};
use svc_process::launcher::LauncherProgram;
use svc_process::{Host, HostOptions};

/// Long enough for a loaded machine; only a failing test waits for it.
const DEADLINE: Duration = Duration::from_secs(60);

pub const HELPER: &str = env!("CARGO_BIN_EXE_svc-process-helper");

pub fn host() -> Host {
    host_with(|_| {})
}

pub fn host_with(change: impl FnOnce(&mut HostOptions)) -> Host {
    let mut options = HostOptions {
        launcher: LauncherProgram { program: HELPER.into(), args: vec!["__launch__".into()] },
        ..HostOptions::default()
    };
    change(&mut options);
    Host::new(options).unwrap()
}

/// A folder with a project and a log, and the launches in it.
pub struct Workspace {
    folder: tempfile::TempDir,
    pub root: PathBuf,
    pub host: Host,
    launched: std::sync::Mutex<Vec<LaunchId>>,
}

impl Workspace {
    pub fn new() -> Self {
        Self::with(host())
    }

    pub fn with(host: Host) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("out"), "").unwrap();
        Self { folder, root, host, launched: std::sync::Mutex::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn spec(&self, program: impl Into<PathBuf>, args: &[&str]) -> LaunchSpec {
        let launch_id = new_launch_id();
        self.launched.lock().unwrap().push(launch_id.clone());
        LaunchSpec {
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
            cwd: self.root.clone(),
            env: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("SVC_LAUNCH_ID".into(), launch_id.as_str().into()),
            ],
            launch_id,
            umask: 0o027,
            output: self.path("out"),
            identity_file: self.path("a.launch.json"),
            terminal: None,
        }
    }

    pub fn shell(&self, script: &str) -> LaunchSpec {
        self.spec("/bin/sh", &["-c", script])
    }

    pub async fn launch(&self, spec: LaunchSpec) -> ProcessIdentity {
        let held = self.hold(spec).await.unwrap();
        let identity = held.identity().clone();
        held.go().await.unwrap();
        identity
    }

    pub async fn hold(&self, spec: LaunchSpec) -> Result<Box<dyn HeldLaunch>, LaunchError> {
        self.host.launch(spec).await
    }

    /// Waits until a file has at least so many lines.
    pub fn lines(&self, name: &str, count: usize) -> Vec<String> {
        let path = self.path(name);
        eventually(&format!("{count} lines in {name}"), || {
            let text = std::fs::read_to_string(&path).ok()?;
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            (lines.len() >= count && text.ends_with('\n')).then_some(lines)
        })
    }

    pub async fn end_of(&self, identity: &ProcessIdentity) -> ExitReport {
        within(self.host.exited(identity)).await
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        for launch_id in self.launched.lock().unwrap().iter() {
            for member in self.host.launch_members(launch_id) {
                self.host.signal(&member.identity, Signal::Kill, Target::Process);
            }
        }
        let _ = &self.folder; // removed after what runs in it
    }
}

fn new_launch_id() -> LaunchId {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}{number:016x}", std::process::id()).parse().unwrap()
}

/// A process that is no launch of ours. It is killed and collected on drop.
pub struct Stranger {
    pub child: Child,
    collected: bool,
}

impl Stranger {
    pub fn start(command: &mut Command) -> Self {
        Self { child: command.spawn().unwrap(), collected: false }
    }

    pub fn shell(script: &str) -> Self {
        Self::start(Command::new("/bin/sh").args(["-c", script]))
    }

    /// Starts the helper with a command and waits for its first line.
    pub fn helper(args: &[&str]) -> (Self, String) {
        let mut stranger = Self::start(
            Command::new(HELPER)
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        );
        let mut line = String::new();
        let out = stranger.child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        (stranger, line.trim().to_owned())
    }

    pub fn pid(&self) -> Pid {
        Pid::new(i64::from(self.child.id())).unwrap()
    }

    pub fn identity(&self, host: &Host) -> ProcessIdentity {
        host.inspect(self.pid()).unwrap().identity
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub fn collect(&mut self) -> std::process::ExitStatus {
        self.collected = true;
        self.child.wait().unwrap()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        if !self.collected {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits until a condition gives a value.
#[track_caller]
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it did not happen in time")
}

#[track_caller]
pub fn eventually_gone(host: &Host, identity: &ProcessIdentity) {
    eventually("the end of a process", || {
        matches!(host.probe(identity), Verdict::Gone(_)).then_some(())
    });
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
