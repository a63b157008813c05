//! A private agent home with projects; simulators started in it end with the test.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a helper of tests: what it cannot do fails the test that asked"
)]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for a loaded machine; a pass never waits for it.
const DEADLINE: Duration = Duration::from_secs(120);

pub type Knobs<'a> = &'a [(&'a str, &'a str)];

pub struct Stage {
    pub root: PathBuf,
    pub home: PathBuf,
    program: PathBuf,
    config: Value,
    launched: AtomicU32,
    changes: Receiver<notify::Result<notify::Event>>,
    _watcher: RecommendedWatcher,
    _tree: TempDir,
}

/// What a start that ended left behind.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }
}

impl Stage {
    /// A home made by `init`, for the agent at `program`.
    pub fn new(program: &str) -> Self {
        let stage = Self::bare(program);
        let init = stage.command(&stage.root, &[]).args(["init"]).arg(&stage.home).output();
        assert!(init.expect("the program runs").status.success());
        stage
    }

    /// An empty tree without a home.
    pub fn bare(program: &str) -> Self {
        let tree = tempfile::tempdir().expect("a temporary directory");
        // The kernel names directories without symbolic links.
        let root = tree.path().canonicalize().expect("the directory exists");
        fs::create_dir(root.join("logs")).expect("a new directory");
        let (sender, changes) = channel();
        let mut watcher = notify::recommended_watcher(sender).expect("a file watcher");
        watcher.watch(&root, RecursiveMode::Recursive).expect("the tree can be watched");
        Self {
            home: root.join("home"),
            program: program.into(),
            config: json!({ "remoteDialogSeen": true, "projects": {} }),
            launched: AtomicU32::new(0),
            changes,
            _watcher: watcher,
            root,
            _tree: tree,
        }
    }

    /// A new directory, not trusted.
    pub fn directory(&self, name: &str) -> PathBuf {
        let dir = self.root.join(name);
        fs::create_dir_all(&dir).expect("a new directory");
        dir
    }

    /// A new trusted directory.
    pub fn project(&mut self, name: &str) -> PathBuf {
        let dir = self.directory(name);
        self.trust(&dir);
        dir
    }

    /// A new trusted repository with one commit.
    pub fn repository(&mut self, name: &str) -> PathBuf {
        let dir = self.project(name);
        let git = |args: &[&str]| {
            let done = Command::new("git").arg("-C").arg(&dir).args(args).output();
            assert!(done.expect("git runs").status.success(), "git {args:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        fs::write(dir.join("README.md"), "sample\n").expect("a new file");
        git(&["add", "."]);
        git(&["-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-q", "-m", "one"]);
        dir
    }

    pub fn trust(&mut self, dir: &Path) {
        self.config["projects"][dir.to_str().expect("a text path")] =
            json!({ "hasTrustDialogAccepted": true });
        self.write_config(&self.config);
    }

    pub fn write_config(&self, config: &Value) {
        fs::write(self.home.join(".claude.json"), config.to_string()).expect("a configuration");
    }

    /// The program with nothing in its environment but this stage and `knobs`.
    pub fn command(&self, cwd: &Path, knobs: Knobs) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(cwd)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.root)
            .env("CLAUDE_CONFIG_DIR", &self.home)
            .env("AGENT_SIM", "1")
            .stdin(Stdio::null());
        for (knob, value) in knobs {
            command.env(format!("AGENT_SIM_{}", knob.to_uppercase()), value);
        }
        command
    }

    /// One start to its end.
    pub fn run(&self, cwd: &Path, args: &[&str], knobs: Knobs) -> Done {
        let output = self.command(cwd, knobs).args(args).output().expect("the program runs");
        Done {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A bridge start that is expected to end by itself: its output and its debug file.
    pub fn start(&self, cwd: &Path, args: &[&str], knobs: Knobs) -> (Done, String) {
        let log = self.log_path();
        let mut all = vec!["remote-control", "--debug-file", log.to_str().expect("a text path")];
        all.extend(args);
        let done = self.run(cwd, &all, knobs);
        (done, read(&log))
    }

    /// A bridge that stays.
    pub fn bridge(&self, cwd: &Path, args: &[&str], knobs: Knobs) -> Bridge<'_> {
        let log = self.log_path();
        let output = log.with_extension("out");
        let file = File::create(&output).expect("a new file");
        let child = self
            .command(cwd, knobs)
            .args(["remote-control", "--name", "X", "--spawn"])
            .args(if args.is_empty() { &["same-dir"] } else { args })
            .arg("--debug-file")
            .arg(&log)
            .stdout(file.try_clone().expect("a second descriptor"))
            .stderr(file)
            .spawn()
            .expect("the program runs");
        Bridge { stage: self, log, output, process: Process::of(child) }
    }

    fn log_path(&self) -> PathBuf {
        let number = self.launched.fetch_add(1, Ordering::Relaxed);
        self.root.join(format!("logs/{number}.log"))
    }

    /// What the simulated remote service did.
    pub fn remote(&self, args: &[&str]) -> String {
        let mut all = vec!["remote"];
        all.extend(args);
        let done = self.run(&self.root, &all, &[]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        done.stdout.trim().to_owned()
    }

    /// Waits until `look` finds something; it looks again at every change of a file.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            match self.changes.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{what} did not come within {DEADLINE:?}")
                }
            }
        }
    }

    pub fn calls(&self) -> Vec<Value> {
        lines(&self.home.join(".agent-sim/calls.jsonl"))
    }

    pub fn pointer_file(&self, cwd: &Path) -> PathBuf {
        let slug: String = cwd
            .to_string_lossy()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        self.home.join("projects").join(slug).join("bridge-pointer.json")
    }

    pub fn pointer(&self, cwd: &Path) -> Value {
        serde_json::from_str(&read(&self.pointer_file(cwd))).expect("a pointer")
    }
}

impl Drop for Stage {
    /// Ends the background service and its jobs, if a test started one.
    fn drop(&mut self) {
        if self.home.join("daemon/roster.json").exists() {
            let _ = self.command(&self.root, &[]).args(["daemon", "stop", "--any"]).output();
        }
    }
}

/// A running bridge; it is killed with its group's reading ends when the test ends.
pub struct Bridge<'a> {
    stage: &'a Stage,
    pub log: PathBuf,
    pub output: PathBuf,
    pub process: Process,
}

impl Bridge<'_> {
    pub fn text(&self) -> String {
        read(&self.log)
    }

    /// Waits for a line of the debug file that holds `part`, and returns it.
    #[track_caller]
    pub fn until(&self, part: &str) -> String {
        self.stage.until(part, || {
            self.text().split_inclusive('\n').find_map(|line| {
                let line = line.strip_suffix('\n')?;
                line.contains(part).then(|| line.to_owned())
            })
        })
    }

    #[track_caller]
    pub fn until_ready(&self) {
        self.until("[bridge:work] Starting poll loop");
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    #[track_caller]
    pub fn stop(&mut self) -> String {
        self.signal(Signal::INT);
        assert_eq!(self.process.wait().code(), Some(0), "{}", self.text());
        self.text()
    }
}

/// A child whose end is an event.
pub struct Process {
    pub pid: u32,
    ends: Receiver<ExitStatus>,
    ended: Option<ExitStatus>,
}

impl Process {
    pub fn of(mut child: Child) -> Self {
        let pid = child.id();
        let (sender, ends) = channel();
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(status); // the test is over
            }
        });
        Self { pid, ends, ended: None }
    }

    pub fn signal(&self, signal: Signal) {
        assert!(self.ended.is_none(), "the process ended before");
        kill(self.pid, signal);
    }

    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let status = self.ends.recv_timeout(DEADLINE).expect("the process ends");
        self.ended = Some(status);
        status
    }

    #[track_caller]
    pub fn wait_signal(&mut self) -> Option<i32> {
        self.wait().signal()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() && self.ends.try_recv().is_err() {
            kill(self.pid, Signal::KILL);
        }
    }
}

pub fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    let _ = kill_process(pid, signal); // gone already
}

/// The text of a file, lossily; empty if there is none.
pub fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

pub fn lines(path: &Path) -> Vec<Value> {
    read(path).lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

/// The word behind `key=` in `text`.
pub fn value_of(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("{key}="))?;
    Some(rest.split_ascii_whitespace().next().unwrap_or_default().to_owned())
}

/// Runs with `text` on standard input.
pub fn feed(mut command: Command, text: &str) -> Process {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program runs");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("the program reads");
    Process::of(child)
}
