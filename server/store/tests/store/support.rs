//! What the store tests share: records, other processes, raw access to the file.

use sha2::{Digest, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use svc_domain::bridge::{Anchor, Bridge, Ended, Launch, Live, Outcome, Stage, State};
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;
use svc_shared::status::{ExitReason, Origin, PermissionMode, ResumeMode, SpawnMode};
use svc_store::{Access, Cap, Inserted, OpenError, Saved, Store, Stored};
use tempfile::TempDir;

pub fn now() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}
pub const NO_CAP: Cap = Cap { max_live: None };
pub const WRITE: Access = Access::ReadWrite { snapshot: true };

pub fn state_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub async fn open(dir: &Path) -> Store {
    Store::open(dir, WRITE).await.unwrap()
}

pub async fn refusal(dir: &Path, access: Access) -> OpenError {
    Store::open(dir, access).await.expect_err("the start is refused")
}

pub fn id(number: u32) -> InstanceId {
    format!("00000000-0000-4000-8000-{number:012x}").parse().unwrap()
}

pub fn stopped() -> State {
    State::Ended(Ended {
        outcome: Outcome::Stopped,
        at: now(),
        intentional: true,
        forced: false,
        reason: Some(ExitReason::OperatorStop),
        exit_code: Some(0),
        exit_signal: None,
        detail: None,
    })
}

pub fn live(stage: Stage) -> State {
    State::Live(Live { stage, stop_requested: false })
}

pub fn starting() -> State {
    live(Stage::Launching { deadline: Some(now()) })
}

/// A bridge with every optional field set.
pub fn bridge(number: u32, project: &str, state: State) -> Bridge {
    Bridge {
        id: id(number),
        project: project.parse().unwrap(),
        cwd: PathBuf::from("/srv/projects").join(project),
        custom_name: Some("Näme \u{1f980} \"quoted\"".to_owned()),
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::Worktree,
        permission_mode: PermissionMode::AcceptEdits,
        origin: Origin::Adopted,
        generation: 7,
        state,
        status_since: now(),
        started_at: Some(now()),
        launch: Some(Launch {
            id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            argv: ["agent", "", "a \"b\"\n\u{0}c"].into_iter().collect(),
            log_stem: format!("{project}-1700000000000-1"),
            relaunched: true,
        }),
        process: Some(identity()),
        keeper: Some(ProcessIdentity { pid: Pid::new(4243).unwrap(), ..identity() }),
        worktree: Some("svc-00000000".parse().unwrap()),
        conversation: Some("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0".parse().unwrap()),
        anchor: Anchor {
            environment_id: Some("env_01".to_owned()),
            session_id: Some("session_01".to_owned()),
        },
        notice: Some("advice".to_owned()),
        quarantine: None,
        restarts: Default::default(),
        reboot: Default::default(),
        on_limit: None,
    }
}

pub fn identity() -> ProcessIdentity {
    ProcessIdentity {
        pid: Pid::new(4242).unwrap(),
        start_ticks: 77_010,
        boot_id: "b00t-1d".parse().unwrap(),
    }
}

pub async fn add(store: &Store, bridge: &Bridge) {
    assert_eq!(store.insert(bridge, NO_CAP, now()).await.unwrap(), Inserted::Yes);
}

pub async fn save(store: &Store, revision: i64, bridge: &Bridge) -> Saved {
    store.save(revision, bridge, &[], NO_CAP, now()).await.unwrap()
}

pub async fn stored(store: &Store, number: u32) -> Stored {
    store.bridge(&id(number)).await.unwrap().expect("the row is there")
}

/// A connection with none of our settings.
pub async fn raw(dir: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(dir.join("svc.db")).connect().await.unwrap()
}

/// Runs statements as somebody who does not care for our rules.
pub async fn tamper(dir: &Path, sql: &str) {
    let mut connection = raw(dir).await;
    sqlx::raw_sql("PRAGMA ignore_check_constraints = ON").execute(&mut connection).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Every file below a directory with its SHA-256; symbolic links with their target.
pub fn files(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                found.insert(path, target.display().to_string());
            } else {
                let digest = Sha256::digest(std::fs::read(&path).unwrap());
                found.insert(path, format!("{digest:x}"));
            }
        }
    }
    // The lock of creation and migration has no content and stays for ever.
    found.retain(|path, _| !path.ends_with("locks/store.lock"));
    found
}

/// Another process; killed when dropped.
pub struct Helper {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Helper {
    pub fn start(command: &str, dir: &Path, rest: &[&str]) -> Self {
        Self::run(Command::new(helper()).arg(command).arg(dir).args(rest))
    }

    pub fn run(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the helper runs");
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line it says, empty at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends its input and waits for a good end.
    pub fn finish(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success(), "the helper failed");
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn helper() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_svc-store-helper"))
}
