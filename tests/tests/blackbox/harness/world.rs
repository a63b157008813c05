//! A private machine for one test: homes, projects, state, configuration.
//!
//! Everything that was started in it ends with it.

use super::{DEADLINE, Process, of_tree, simulator, within};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;
use tempfile::TempDir;
use tokio::sync::watch;

/// Marks every process of one world; children inherit it.
pub const MARK: &str = "BLACKBOX_TREE";

pub struct World {
    pub root: PathBuf,
    pub projects: PathBuf,
    pub agent_home: PathBuf,
    pub state: PathBuf,
    pub config: PathBuf,
    settings: Mutex<Value>,
    trusted: Mutex<Map<String, Value>>,
    /// What every program of the world is started with, in front of its own name.
    inside: Mutex<Vec<OsString>>,
    changed: watch::Receiver<u64>,
    _watcher: RecommendedWatcher,
    _tree: TempDir,
}

impl World {
    pub fn new() -> Self {
        Self::with(json!({}))
    }

    /// With these settings over the plain ones.
    pub fn with(settings: Value) -> Self {
        Self::inside(&std::env::temp_dir(), settings)
    }

    /// The same, in a tree below `parent`.
    pub fn inside(parent: &Path, settings: Value) -> Self {
        fs::create_dir_all(parent).expect("a directory for temporary trees");
        let tree = tempfile::Builder::new().prefix("svc-").tempdir_in(parent);
        let tree = tree.expect("a temporary directory");
        let root = tree.path().canonicalize().expect("the directory exists");
        for dir in ["home", "projects", "tmp"] {
            fs::create_dir(root.join(dir)).expect("a new directory");
        }
        super::canary::guard(&root);
        let agent_home = root.join("agent");
        let init = Command::new(simulator()).arg("init").arg(&agent_home).output();
        assert!(init.expect("the simulator runs").status.success());
        let (sender, changed) = watch::channel(0);
        let mut watcher = notify::recommended_watcher(move |_| sender.send_modify(|n| *n += 1))
            .expect("a file watcher");
        watcher.watch(&root, RecursiveMode::Recursive).expect("the tree can be watched");
        let world = Self {
            projects: root.join("projects"),
            state: root.join("state"),
            config: root.join("svc.yml"),
            agent_home,
            settings: Mutex::new(json!({})),
            trusted: Mutex::default(),
            inside: Mutex::default(),
            changed,
            root,
            _watcher: watcher,
            _tree: tree,
        };
        world.configure(json!({
            "projects_root": world.projects,
            "state_dir": world.state,
            "host": "127.0.0.1",
            "port": free_port(),
            "api": { "openapi_enabled": true },
            "claude": {
                "binary": simulator(),
                "node_from_nvm": false,
                "startup_grace_seconds": 20,
            },
        }));
        world.configure(settings);
        world.write_agent_config();
        world
    }

    /// Lays these settings over the configuration; a running server does not see them.
    pub fn configure(&self, changes: Value) {
        let mut settings = self.settings.lock().expect("one test");
        merge(&mut settings, changes);
        let text = serde_json::to_string_pretty(&*settings).expect("JSON");
        fs::write(&self.config, text).expect("a configuration"); // JSON is YAML
        fs::set_permissions(&self.config, fs::Permissions::from_mode(0o600)).expect("its mode");
    }

    pub fn port(&self) -> u16 {
        let settings = self.settings.lock().expect("one test");
        settings["port"].as_u64().and_then(|port| port.try_into().ok()).expect("a port")
    }

    /// The configured state directory, which a test can move from [`World::state`].
    pub fn state_dir(&self) -> PathBuf {
        let settings = self.settings.lock().expect("one test");
        settings["state_dir"].as_str().expect("a path").into()
    }

    /// Another port: somebody else took the one chosen before.
    pub fn move_port(&self) {
        self.configure(json!({ "port": free_port() }));
    }

    /// Starts every program of the world through this one from now on.
    pub fn enter(&self, through: &[&str]) {
        *self.inside.lock().expect("one test") = through.iter().map(OsString::from).collect();
    }

    /// The words in front of a program.
    pub(super) fn entrance(&self) -> Vec<OsString> {
        self.inside.lock().expect("one test").clone()
    }

    /// The environment of everything that is started here.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        // The machine of a world has its own accounts: `home/accounts`, else root alone.
        let mut path = OsString::from(concat!(env!("CARGO_MANIFEST_DIR"), "/accounts:"));
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let plain = [
            ("PATH", path),
            ("HOME", self.root.join("home").into()),
            ("TMPDIR", self.root.join("tmp").into()),
            ("CLAUDE_CONFIG_DIR", self.agent_home.clone().into()),
            ("AGENT_SIM", "1".into()),
            ("AGENT_SIM_READY_MS", "20".into()),
            ("LANG", "C.UTF-8".into()),
            (MARK, self.root.clone().into()),
        ];
        let planted = super::PLANTED.map(|(name, value)| (name, value.into()));
        let all = plain.into_iter().chain(planted);
        all.map(|(name, value)| (name.into(), value)).collect()
    }

    /// A new directory among the projects, not trusted.
    pub fn untrusted(&self, name: &str) -> PathBuf {
        let dir = self.projects.join(name);
        fs::create_dir(&dir).expect("a new project");
        dir
    }

    /// A new trusted project.
    pub fn project(&self, name: &str) -> PathBuf {
        let dir = self.untrusted(name);
        self.trust(&dir);
        dir
    }

    /// A new trusted repository with one commit.
    pub fn repository(&self, name: &str) -> PathBuf {
        let dir = self.project(name);
        fs::write(dir.join("README.md"), "sample\n").expect("a new file");
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            git.arg("-C").arg(&dir).args(args).env_clear().envs(self.environment());
            assert!(git.output().expect("git runs").status.success(), "git {args:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["add", "."]);
        git(&["-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-q", "-m", "one"]);
        dir
    }

    /// A trusted project whose agent behaves as these knobs say.
    pub fn project_with(&self, name: &str, knobs: Value) -> PathBuf {
        let dir = self.project(name);
        self.set_knobs(name, knobs);
        dir
    }

    pub fn set_knobs(&self, name: &str, knobs: Value) {
        let file = self.projects.join(name).join(".agent-sim.json");
        fs::write(file, knobs.to_string()).expect("the knobs of a project");
    }

    pub fn trust(&self, dir: &Path) {
        let key = dir.to_str().expect("a text path").to_owned();
        let grant = json!({ "hasTrustDialogAccepted": true });
        self.trusted.lock().expect("one test").insert(key, grant);
        self.write_agent_config();
    }

    fn write_agent_config(&self) {
        let projects = self.trusted.lock().expect("one test").clone();
        let config = json!({ "remoteDialogSeen": true, "projects": projects });
        let text = serde_json::to_string_pretty(&config).expect("JSON");
        fs::write(self.agent_config(), text).expect("the agent's configuration");
    }

    pub fn agent_config(&self) -> PathBuf {
        self.agent_home.join(".claude.json")
    }

    /// What every start of the agent recorded.
    pub fn calls(&self) -> Vec<Value> {
        self.recorded("calls.jsonl")
    }

    /// Every answer that the agents of Direct Sessions were given.
    pub fn answers(&self) -> Vec<Value> {
        self.recorded("answers.jsonl")
    }

    fn recorded(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.agent_home.join(".agent-sim").join(name));
        let text = text.unwrap_or_default();
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }

    /// The records of the keepers of a project, or of all for an empty name.
    pub fn keeper_records(&self, project: &str) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.state_dir().join("logs")).into_iter().flatten().flatten();
        let is_its = |entry: &fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(project) && name.ends_with(".keeper.json")
        };
        listed.filter(is_its).map(|entry| entry.path()).collect()
    }

    /// Waits until every keeper has recorded all that it will learn.
    /// One that learns more replaces its record, and a damage of before is undone.
    pub async fn until_recorded(&self) {
        let is_whole =
            |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("\"url\""));
        self.until("whole records of the keepers", || {
            self.keeper_records("").iter().all(is_whole).then_some(())
        })
        .await;
    }

    /// The records of bridge starts in a project.
    pub fn starts(&self, project: &str) -> Vec<Value> {
        let cwd = self.projects.join(project);
        let mut calls = self.calls();
        calls.retain(|call| {
            call["argv"].as_array().is_some_and(|argv| argv.iter().any(|a| a == "remote-control"))
                && call["cwd"].as_str().map(Path::new) == Some(&*cwd)
        });
        calls
    }

    /// Everything alive that was started here.
    pub fn processes(&self) -> Vec<Process> {
        of_tree(&self.root)
    }

    /// All live processes of bridges.
    /// What the service asks of the agent at any moment is left out.
    pub fn trees(&self) -> Vec<Process> {
        let mut trees = self.processes();
        trees.retain(|process| process.launch_id.is_some());
        trees
    }

    /// The live bridges of this world, workers and services left out.
    pub fn bridges(&self) -> Vec<Process> {
        let mut bridges = self.processes();
        bridges.retain(|process| {
            process.argv.get(1).is_some_and(|word| word == "remote-control")
                && process.argv.first().is_some_and(|program| program.ends_with("svc-agent-sim"))
        });
        // A child of a bridge is its image until it has become what it is to run.
        let pids: Vec<i32> = bridges.iter().map(|bridge| bridge.pid).collect();
        bridges.retain(|bridge| !pids.contains(&bridge.parent));
        bridges
    }

    /// The live agents of Interactive Sessions.
    pub fn sessions(&self) -> Vec<Process> {
        let mut sessions = self.processes();
        sessions.retain(|process| {
            process.argv.iter().any(|word| word == "--remote-control")
                && process.argv.first().is_some_and(|program| program.ends_with("svc-agent-sim"))
        });
        let pids: Vec<i32> = sessions.iter().map(|session| session.pid).collect();
        sessions.retain(|session| !pids.contains(&session.parent));
        sessions
    }

    /// The live keepers of Interactive Sessions.
    pub fn keepers(&self) -> Vec<Process> {
        let mut keepers = self.processes();
        keepers.retain(|process| process.argv.iter().any(|word| word == "__keeper__"));
        keepers
    }

    /// The live bridges of one project.
    pub fn bridges_of(&self, project: &str) -> Vec<Process> {
        let cwd = self.projects.join(project);
        let mut bridges = self.bridges();
        bridges.retain(|bridge| bridge.cwd.as_deref() == Some(&*cwd));
        bridges
    }

    /// Waits until `look` returns something; calls it at every change in the tree.
    pub async fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let mut changed = self.changed.clone();
        within(what, async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = look() {
                    return found;
                }
                changed.changed().await.expect("the watcher lives as long as the world");
            }
        })
        .await
    }

    /// Changes of files of the tree, counted.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Runs the simulator's remote control of the pretended service.
    pub fn remote(&self, args: &[&str]) -> String {
        let mut remote = Command::new(simulator());
        remote.arg("remote").args(args).env_clear().envs(self.environment());
        let done = remote.output().expect("the simulator runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let end = Instant::now() + DEADLINE;
        loop {
            let left = of_tree(&self.root);
            if left.is_empty() || Instant::now() > end {
                break;
            }
            for process in left {
                process.kill_and_wait();
            }
        }
        self.unguard();
    }
}

fn merge(base: &mut Value, changes: Value) {
    match (base, changes) {
        (Value::Object(base), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, changes) => *base = changes,
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
