//! A folder, a host, sessions that end with their test, and a viewer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use svc_domain::identity::{LaunchId, ProcessIdentity, Verdict};
use svc_keeper::client::{self, Connection, Options};
use svc_keeper::message::{FromKeeper, Phase, Role, SessionState};
use svc_keeper::screen::Row;
use svc_keeper::sidecar::{FinalScreen, Sidecar, screen_file};
use svc_ports::process::{
    HeldLaunch, LaunchError, LaunchSpec, ProcessHost, Signal, Target, TerminalSpec,
};
use svc_process::launcher::LauncherProgram;
use svc_process::{Host, HostOptions};

/// Long enough for a loaded machine; only a failing test waits for it.
const DEADLINE: Duration = Duration::from_secs(60);

pub const HELPER: &str = env!("CARGO_BIN_EXE_svc-keeper-helper");

pub struct Workspace {
    folder: tempfile::TempDir,
    pub root: PathBuf,
    pub host: Host,
    started: std::sync::Mutex<Vec<(LaunchId, Option<ProcessIdentity>)>>,
}

/// A started session.
pub struct Session {
    pub agent: ProcessIdentity,
    pub keeper: ProcessIdentity,
    pub sidecar: PathBuf,
    pub launch_id: LaunchId,
}

impl Session {
    pub fn record(&self) -> Sidecar {
        Sidecar::read(&self.sidecar).unwrap()
    }

    pub fn final_screen(&self) -> FinalScreen {
        FinalScreen::read(&screen_file(&self.sidecar)).unwrap()
    }

    pub async fn connect(&self, role: Role) -> Connection {
        client::connect(&self.record(), &Options::new(role)).await.unwrap()
    }
}

fn program(word: &str) -> LauncherProgram {
    LauncherProgram { program: HELPER.into(), args: vec![word.into()] }
}

impl Workspace {
    pub fn new() -> Self {
        let host = Host::new(HostOptions {
            launcher: program("__launch__"),
            keeper: program("__keeper__"),
            ..HostOptions::default()
        });
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        Self { folder, root, host: host.unwrap(), started: std::sync::Mutex::default() }
    }

    pub fn spec(&self, script: &str) -> LaunchSpec {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let launch_id: LaunchId =
            format!("{:016x}{number:016x}", std::process::id()).parse().unwrap();
        LaunchSpec {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), OsString::from(script)],
            cwd: self.root.clone(),
            env: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("TERM".into(), "dumb".into()),
                ("LINES".into(), "7".into()),
                ("SVC_LAUNCH_ID".into(), launch_id.as_str().into()),
            ],
            launch_id,
            umask: 0o027,
            output: self.root.join("out"),
            identity_file: self.root.join(format!("{number}.launch.json")),
            terminal: Some(TerminalSpec {
                cols: 80,
                rows: 24,
                scrollback_lines: 500,
                sidecar: self.root.join(format!("{number}.keeper.json")),
                socket_dir: self.root.join("k"),
                keeper_log: self.root.join(format!("{number}.keeper.log")),
                instance_id: "0b8f7a44-6f0e-4a55-8a0b-0c2d2f7a9c11".parse().unwrap(),
                project: "api".parse().unwrap(),
                worktree: None,
                debug_file: None,
                input_allowed: true,
            }),
        }
    }

    pub async fn hold(&self, spec: LaunchSpec) -> Result<Box<dyn HeldLaunch>, LaunchError> {
        let launch_id = spec.launch_id.clone();
        let held = self.host.launch(spec).await?;
        self.started.lock().unwrap().push((launch_id, held.keeper().cloned()));
        Ok(held)
    }

    pub async fn start(&self, script: &str) -> Session {
        self.start_with(self.spec(script)).await
    }

    pub async fn start_with(&self, spec: LaunchSpec) -> Session {
        let sidecar = spec.terminal.as_ref().unwrap().sidecar.clone();
        let launch_id = spec.launch_id.clone();
        let held = self.hold(spec).await.unwrap();
        let session = Session {
            agent: held.identity().clone(),
            keeper: held.keeper().unwrap().clone(),
            sidecar,
            launch_id,
        };
        held.go().await.unwrap();
        session
    }

    pub fn is_alive(&self, identity: &ProcessIdentity) -> bool {
        self.host.probe(identity) == Verdict::Same
    }

    pub async fn gone(&self, identity: &ProcessIdentity) {
        within(self.host.exited(identity)).await;
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        for (launch_id, keeper) in self.started.lock().unwrap().iter() {
            for member in self.host.launch_members(launch_id) {
                self.host.signal(&member.identity, Signal::Kill, Target::Process);
            }
            if let Some(keeper) = keeper {
                self.host.signal(keeper, Signal::Kill, Target::Process);
            }
        }
        let _ = &self.folder; // removed after what runs in it
    }
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it did not happen in time")
}

/// A viewer: applies frames as the page does.
pub struct Viewer {
    pub connection: Connection,
    pub seq: u64,
    pub rows: Vec<Row>,
    pub cols: u16,
    pub keys: u32,
    pub gaps: Vec<(u64, u64)>,
    pub state: SessionState,
}

impl Viewer {
    pub async fn new(session: &Session, role: Role) -> Self {
        let mut viewer = Self::resumed(session, role, 0, Vec::new()).await;
        viewer.until("a keyframe", |viewer| viewer.keys > 0).await;
        viewer
    }

    pub async fn resumed(session: &Session, role: Role, since: u64, rows: Vec<Row>) -> Self {
        let connection = session.connect(role).await;
        let state = connection.welcome.session.state.clone();
        connection.commands.sub((since > 0).then_some(since), None, None).await.unwrap();
        Self { connection, seq: since, rows, cols: 0, keys: 0, gaps: Vec::new(), state }
    }

    pub fn text(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    pub async fn until(&mut self, what: &str, is_done: impl Fn(&Self) -> bool) {
        let done = tokio::time::timeout(DEADLINE, async {
            while !is_done(self) {
                let message = self.connection.events.next().await.unwrap();
                self.apply(message);
            }
        });
        if done.await.is_err() {
            panic!("waited in vain for {what}; the screen: {:#?}", self.text());
        }
    }

    pub async fn until_text(&mut self, text: &str) {
        self.until(text, |viewer| viewer.text().iter().any(|line| line.contains(text))).await;
    }

    pub async fn until_exit(&mut self) {
        self.until("the exit", |viewer| viewer.state.phase == Phase::Exited).await;
    }

    pub fn apply(&mut self, message: FromKeeper) {
        match message {
            FromKeeper::Key(key) => {
                self.keys += 1;
                assert_eq!(key.rows.len(), usize::from(key.row_count));
                (self.seq, self.rows, self.cols) = (key.seq, key.rows, key.cols);
            }
            FromKeeper::Diff(diff) => {
                assert_eq!(diff.base, self.seq, "a diff of another frame");
                if let Some(moved) = diff.scroll {
                    let region = &mut self.rows[usize::from(moved.top)..=usize::from(moved.bottom)];
                    region.rotate_left(usize::from(moved.n));
                    let kept = region.len() - usize::from(moved.n);
                    region[kept..].fill(Row::default());
                }
                for (y, row) in diff.rows {
                    self.rows[usize::from(y)] = row;
                }
                self.seq = diff.seq;
            }
            FromKeeper::Gap { from, to } => self.gaps.push((from, to)),
            FromKeeper::State(state) => self.state = state,
            _ => {}
        }
    }
}
