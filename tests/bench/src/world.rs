//! A private machine for one measure: projects, agent home, state, services.
//!
//! Everything that was started in it ends with it.

use crate::http::{Connection, word};
use crate::tidy::{self, MARK};
use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything takes, loaded or not.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The programs that are measured and measured with.
#[derive(Debug, Clone)]
pub struct Programs {
    pub service: PathBuf,
    pub simulator: PathBuf,
}

pub struct World {
    pub programs: Programs,
    pub root: PathBuf,
    pub projects: PathBuf,
    pub state: PathBuf,
    agent_home: PathBuf,
    settings: Value,
    port: u16,
    _tree: TempDir,
}

/// A service that answers.
pub struct Service {
    child: Child,
    pub port: u16,
    /// From the start of the process to its first healthy answer.
    pub healthy_after: Duration,
}

impl World {
    /// With so many trusted projects, `p0000` and on.
    pub fn new(programs: &Programs, projects: usize) -> Result<Self> {
        let tree = tempfile::Builder::new().prefix("svc-bench-").tempdir()?;
        let root = tree.path().canonicalize()?;
        tidy::remember(&root);
        for dir in ["home", "projects", "tmp"] {
            fs::create_dir(root.join(dir))?;
        }
        let agent_home = root.join("agent");
        let init = Command::new(&programs.simulator).arg("init").arg(&agent_home).output()?;
        ensure!(init.status.success(), "the simulator cannot make a home");
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut world = Self {
            programs: programs.clone(),
            projects: root.join("projects"),
            state: root.join("state"),
            agent_home,
            settings: json!({}),
            port,
            root,
            _tree: tree,
        };
        for number in 0..projects {
            fs::create_dir(world.projects.join(name(number)))?;
        }
        let trusted = json!({ "hasTrustDialogAccepted": true });
        let root = world.projects.to_string_lossy().into_owned();
        let config = json!({ "remoteDialogSeen": true, "projects": { root: trusted } });
        fs::write(world.agent_home.join(".claude.json"), config.to_string())?;
        world.configure(json!({
            "projects_root": world.projects,
            "state_dir": world.state,
            "host": "127.0.0.1",
            "port": port,
            "log_level": "warning",
            "claude": { "binary": programs.simulator, "node_from_nvm": false },
            "instance_defaults": { "max_bridges": 1000 },
        }))?;
        Ok(world)
    }

    /// Lays settings over the configuration; a running service does not see them.
    pub fn configure(&mut self, changes: Value) -> Result<()> {
        merge(&mut self.settings, changes);
        let file = self.config();
        fs::write(&file, self.settings.to_string())?; // JSON is YAML
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        Ok(())
    }

    fn config(&self) -> PathBuf {
        self.root.join("svc.yml")
    }

    /// How the agent of a project behaves from its next start on.
    pub fn set_knobs(&self, project: &str, knobs: &Value) -> Result<()> {
        Ok(fs::write(self.projects.join(project).join(".agent-sim.json"), knobs.to_string())?)
    }

    /// Where the agent keeps the conversations of a project.
    pub fn conversations(&self, project: &str) -> Result<PathBuf> {
        let dir = self.projects.join(project).to_string_lossy().into_owned();
        let name = dir.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let place = self.agent_home.join("projects").join(name);
        fs::create_dir_all(&place)?;
        Ok(place)
    }

    /// Deletes what the agent of a project remembers of its last environment.
    /// With it the next start would be a reattachment, which the service watches for seconds before
    /// it counts as running.
    pub fn forget(&self, project: &str) -> Result<()> {
        // Before the first start there is no such directory, and nothing to forget.
        let entries = fs::read_dir(self.agent_home.join("projects")).into_iter().flatten();
        for entry in entries.filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().ends_with(&format!("-{project}")) {
                match fs::remove_file(entry.path().join("bridge-pointer.json")) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(error.into());
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Deletes the environments and sessions of the simulated remote service.
    /// Each start reads and writes all of them, which would be measured as a cost of the service.
    /// No environment may be in use.
    pub fn empty_remote(&self) -> Result<()> {
        let file = self.agent_home.join(".agent-sim/remote.json");
        let Ok(bytes) = fs::read(&file) else { return Ok(()) }; // before the first start
        let mut all: serde_json::Map<String, Value> = serde_json::from_slice(&bytes)?;
        // How many ids were given out stays, or they would be given out again.
        for known in ["environments", "sessions"] {
            all.insert(known.into(), json!({}));
        }
        Ok(fs::write(&file, serde_json::to_vec(&all)?)?)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let plain: [(&str, OsString); 8] = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.root.join("home").into()),
            ("TMPDIR", self.root.join("tmp").into()),
            ("CLAUDE_CONFIG_DIR", self.agent_home.clone().into()),
            ("AGENT_SIM", "1".into()),
            // The agent's own time is not what is measured.
            ("AGENT_SIM_READY_MS", "0".into()),
            ("LANG", "C.UTF-8".into()),
            (MARK, self.root.clone().into()),
        ];
        plain.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env_clear().envs(self.environment()).stdin(Stdio::null());
        command
    }

    /// A command of the service, run to its end; what it printed.
    pub fn cli(&self, args: &[&str]) -> Result<String> {
        let mut command = self.command(&self.programs.service);
        let done = command.args(args).arg("--config").arg(self.config()).output()?;
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        ensure!(done.status.success(), "`svc {}` failed: {words}", args.join(" "));
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Starts the service and waits for its first healthy answer.
    pub fn serve(&self) -> Result<Service> {
        self.serve_when(answers)
    }

    /// The same, where another client says whether it answers.
    pub fn serve_when(&self, answers: impl Fn(u16) -> bool) -> Result<Service> {
        let log = fs::File::create(self.root.join("service.log"))?;
        let mut command = self.command(&self.programs.service);
        command.arg("run").arg("--config").arg(self.config());
        command.stdout(Stdio::null()).stderr(log);
        let began = Instant::now();
        let mut child = command.spawn().context("the service does not start")?;
        loop {
            if answers(self.port) {
                let healthy_after = began.elapsed();
                return Ok(Service { child, port: self.port, healthy_after });
            }
            if let Some(status) = child.try_wait()? {
                let words = fs::read_to_string(self.root.join("service.log")).unwrap_or_default();
                bail!("the service ended with {status} instead of serving:\n{words}");
            }
            ensure!(began.elapsed() < DEADLINE, "the service does not answer");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Starts one bridge in each of the first so many projects and waits until all run.
    pub fn run_bridges(&self, service: &Service, bridges: usize) -> Result<()> {
        const AT_ONCE: usize = 4;
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE)
                .map(|worker| {
                    scope.spawn(move || -> Result<()> {
                        let mut connection = service.connect()?;
                        for number in (worker..bridges).step_by(AT_ONCE) {
                            launch(&mut connection, &name(number))?;
                        }
                        Ok(())
                    })
                })
                .collect();
            for worker in workers {
                worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
            }
            Ok(())
        })
    }

    /// Ends everything, and says what would not go.
    pub fn end(self) -> Result<()> {
        let left = tidy::end(&self.root);
        ensure!(left.is_empty(), "processes do not end: {left:?}");
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        tidy::end(&self.root);
    }
}

/// Name of a project by its number.
pub fn name(number: usize) -> String {
    format!("p{number:04}")
}

/// Starts a bridge that must end up running; its record.
pub fn launch(connection: &mut Connection, project: &str) -> Result<Value> {
    let body = json!({ "project": project });
    let record = connection.post("/api/v1/instances", &body)?.expect(201)?.json()?;
    ensure!(word(&record, "status") == "running", "{project} does not run: {record}");
    Ok(record)
}

/// Starts bridges in the first `count` projects at the same moment.
/// That moment and the records.
pub fn launch_together(service: &Service, count: usize) -> Result<(Instant, Vec<Value>)> {
    let barrier = Barrier::new(count + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..count)
            .map(|number| {
                let connection = service.connect();
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    launch(&mut connection?, &name(number))
                })
            })
            .collect();
        let began = Instant::now();
        barrier.wait();
        let records = workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))?);
        Ok((began, records.collect::<Result<Vec<_>>>()?))
    })
}

/// Stops a bridge; its record.
pub fn stop(connection: &mut Connection, record: &Value) -> Result<Value> {
    let path = format!("/api/v1/instances/{}", word(record, "instance_id"));
    connection.send("DELETE", &path, None)?.expect(200)?.json()
}

/// One fresh connection, one request, a healthy answer.
fn answers(port: u16) -> bool {
    let asked = || Connection::open(port)?.get("/healthz")?.expect(200);
    asked().is_ok()
}

impl Service {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the service has asked the agent everything it asks after a start.
    /// Until then its answers change. `headers` must give access to the whole report.
    pub fn settle(&self, headers: &str) -> Result<()> {
        let mut connection = self.connect()?;
        connection.headers = headers.to_owned();
        let (began, mut before) = (Instant::now(), Vec::new());
        loop {
            let health = connection.get("/healthz")?.expect(200)?;
            let is_known = health.json()?.get("claude_version").is_some_and(Value::is_string);
            if is_known && health.body == before {
                return Ok(());
            }
            before = health.body;
            ensure!(began.elapsed() < DEADLINE, "the health does not settle");
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Its process and its port.
    pub fn place(&self) -> (u32, u16) {
        (self.pid(), self.port)
    }

    pub fn connect(&self) -> Result<Connection> {
        Connection::open(self.port)
    }

    /// Asks it to end as a service manager does, and waits for that.
    pub fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let status = self.wait()?;
        ensure!(status.success(), "the service ended with {status}");
        Ok(())
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.wait()?;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.pid())?).context("a process id")?;
        Ok(kill_process(pid, signal)?)
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(began.elapsed() < DEADLINE, "the service does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Ends the service of a failed measure; the end of the world ends the bridges.
impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
