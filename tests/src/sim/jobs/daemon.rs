//! The background service: owns the roster, starts hosts, and settles their jobs.
//!
//! Facts from agent 2.1.197: it leaves five seconds after its last job, takes over live hosts of
//! a service that died, and starts a host again about ten seconds after it was killed.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::control::{self, Answer, Dispatch, Request};
use super::dispatch::roster_fields;
use super::host::{BY_SIGNAL, HOST, output_file};
use super::roster::{self, Worker};
use crate::sim::calls::now_ms;
use crate::sim::console::later;
use crate::sim::console::print;
use crate::sim::debug_log::timestamp;
use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::home::AgentHome;
use crate::sim::ids::Draw;
use crate::sim::knobs::PREFIX;
use crate::sim::{files, process, signals};

/// Time without jobs and clients after which the service leaves (agent 2.1.197).
const IDLE: Duration = Duration::from_secs(5);

enum Event {
    Asked(UnixStream, Request),
    /// The host with this pid ended; `None` if its exit code could not be seen.
    Ended {
        id: String,
        pid: u32,
        code: Option<u8>,
    },
    Signal,
}

/// How often the service checks that its home exists: it must not outlive a test.
const LOOK: Duration = Duration::from_secs(2);

/// What the log calls the end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Killed,
    Crashed,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Killed => "killed",
            Self::Crashed => "crashed",
        }
    }
}

struct Service<'a> {
    double: &'a Double,
    home: &'a AgentHome,
    started: Instant,
    sender: SyncSender<Event>,
    workers: BTreeMap<String, Live>,
    /// Hosts that were killed, and when they are started again.
    revivals: Vec<(Instant, String)>,
    idle_since: Instant,
}

struct Live {
    worker: Worker,
    dispatch: Option<Dispatch>,
}

pub(super) fn log_file(home: &AgentHome) -> PathBuf {
    home.dir().join("daemon.log")
}

/// `daemon run`: serves until nothing is left to do.
pub(super) fn run(double: &Double, words: &[&str]) -> Result<u8, Failure> {
    let refuse = |e: io::Error| Failure::agent(format!("Error: the daemon cannot start: {e}"));
    let option = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).copied()
    };
    // Nobody's terminal and nobody's process group: it outlives the command that started it.
    let _ = rustix::process::setsid();
    let origin = option("--origin").unwrap_or("foreground");
    let dir = control::new_address(&double.home).map_err(refuse)?;
    let socket = dir.join("control.sock");
    let _ = fs::remove_file(&socket); // of a service that was killed
    let listener = UnixListener::bind(&socket).map_err(refuse)?;
    // 64 requests: a full channel only makes the asking command wait.
    let (sender, receiver) = sync_channel(64);
    signals::forward(&[SIGINT, SIGTERM], sender.clone(), |_| Event::Signal)?;
    let now = Instant::now();
    let mut service = Service {
        double,
        home: &double.home,
        started: now,
        sender: sender.clone(),
        workers: BTreeMap::new(),
        revivals: Vec::new(),
        idle_since: now,
    };
    service.open(origin, option("--spawned-by"), &socket).map_err(refuse)?;
    std::thread::spawn(move || listen(&listener, &sender));
    print("ready\n");
    let cause = loop {
        match receiver.recv_timeout(service.patience()) {
            Ok(Event::Asked(stream, request)) => {
                let last = matches!(request, Request::Shutdown);
                let answer = service.serve(request);
                let line = serde_json::to_string(&answer).unwrap_or_default();
                let _ = (&stream).write_all(format!("{line}\n").as_bytes()); // gone: fine
                service.idle_since = Instant::now();
                if last {
                    break "shutdown_op";
                }
            }
            Ok(Event::Ended { id, pid, code }) => service.host_ended(&id, pid, code),
            Ok(Event::Signal) => break "signal",
            Err(RecvTimeoutError::Timeout) => {
                if !service.home.mark().is_dir() {
                    break "home_gone";
                }
                service.revive_due();
                if service.is_idle() {
                    service.log("supervisor", "idle 5s with no clients — exiting");
                    break "idle_exit";
                }
            }
            Err(RecvTimeoutError::Disconnected) => break "signal",
        }
    };
    service.close(cause, &dir);
    Ok(0)
}

fn listen(listener: &UnixListener, sender: &SyncSender<Event>) {
    for stream in listener.incoming().map_while(Result::ok) {
        let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
        let mut line = String::new();
        if BufReader::new(&stream).read_line(&mut line).is_err() {
            continue;
        }
        if let Ok(request) = serde_json::from_str(&line)
            && sender.send(Event::Asked(stream, request)).is_err()
        {
            return; // the loop ended: so does the process
        }
    }
}

impl Service<'_> {
    fn log(&self, who: &str, text: &str) {
        let line = format!("[{}] [{who}] {text}\n", timestamp());
        let _ = files::append(&log_file(self.home), line.as_bytes());
    }

    fn open(&mut self, origin: &str, starter: Option<&str>, socket: &Path) -> io::Result<()> {
        let pid = std::process::id();
        let version = self.double.profile.version();
        self.log(
            "supervisor",
            &format!("─── daemon start ─── version={version} pid={pid} origin={origin}"),
        );
        let start = process::own_start();
        let starter = starter.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let mut lock = json!({
            "pid": pid, "version": version, "jsonPath": self.home.dir().join("daemon.json"),
            "logPath": log_file(self.home), "startedAt": now_ms(), "origin": origin,
            "spawnedBy": starter, "procStart": start, "launchTarget": env::current_exe()?,
        });
        if self.double.profile.is_future()
            && let Some(fields) = lock.as_object_mut()
        {
            fields.insert("channel".into(), json!("next"));
        }
        files::replace(&self.home.dir().join("daemon.lock"), format!("{lock:#}").as_bytes())?;
        let status = json!({
            "supervisorPid": pid, "supervisorProcStart": start, "writtenAt": now_ms(),
            "workers": {},
        });
        let file = self.home.dir().join("daemon.status.json");
        files::replace(&file, format!("{status:#}").as_bytes())?;
        self.log("supervisor", "workers=0");
        self.log("bg", &format!("bg: control socket bound at {}", socket.display()));
        self.adopt();
        self.write_roster();
        let address = json!({ "pid": pid, "start": start, "socket": socket });
        files::replace(&control::address_file(self.home), address.to_string().as_bytes())
    }

    /// Takes over the hosts of an earlier service. Dead hosts have lost their job.
    fn adopt(&mut self) {
        let left = roster::read(self.home);
        if left.is_empty() {
            return;
        }
        let mut dead = 0;
        for (id, worker) in left {
            if worker.is_alive() {
                self.watch_stranger(&id, &worker);
                self.workers.insert(id, Live { worker, dispatch: None });
            } else {
                dead += 1;
                if let Some(record) = control::record_of(self.home, &id) {
                    record.settle("stopped", Some("stopped"));
                }
            }
        }
        let adopted = self.workers.len();
        self.log("bg", &format!("bg adopt: adopted={adopted} respawned=0 dead={dead}"));
    }

    /// A host this process did not start: its end is seen through its descriptor.
    fn watch_stranger(&self, id: &str, worker: &Worker) {
        let (id, pid, start) = (id.to_owned(), worker.pid, worker.start.clone());
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            process::wait_for_end(pid, start.as_deref());
            let _ = sender.send(Event::Ended { id, pid, code: None }); // the service left
        });
    }

    fn serve(&mut self, request: Request) -> Answer {
        match request {
            Request::Dispatch(dispatch) => {
                let id = dispatch.id.clone();
                match self.start(*dispatch, 1, "shell") {
                    Ok(()) => Answer::Done,
                    Err(e) => Answer::Refused(format!("Error: cannot start {id}: {e}")),
                }
            }
            Request::Stop { id } => {
                self.kill(&id);
                if let Some(record) = control::record_of(self.home, &id) {
                    record.settle("stopped", Some("stopped"));
                }
                Answer::Done
            }
            Request::Remove { id } => {
                self.kill(&id);
                if let Some(record) = control::record_of(self.home, &id)
                    && let Err(e) = record.remove()
                {
                    return Answer::Refused(format!("Error: cannot remove {id}: {e}"));
                }
                Answer::Done
            }
            Request::Respawn { id } => self.respawn(&id),
            Request::Status => Answer::Status(json!({
                "pid": std::process::id(), "version": self.double.profile.version(),
                "uptime": self.started.elapsed().as_secs(), "origin": "transient",
                "log": log_file(self.home), "workers": self.workers.len(),
            })),
            Request::Shutdown => {
                self.log("supervisor", "shutdown requested via control socket");
                Answer::Done
            }
        }
    }

    /// Starts a job's host and writes it into the roster.
    fn start(&mut self, dispatch: Dispatch, attempt: u64, source: &str) -> io::Result<()> {
        let sockets = control::new_address(self.home)?;
        let socket = |kind: &str| sockets.join(kind).join(format!("{}.sock", dispatch.id));
        let program = env::current_exe()?;
        let mut command = Command::new(&program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with(PREFIX) {
                command.env_remove(name); // the knobs of the service are not those of a job
            }
        }
        let mut child = command
            .arg(HOST)
            .arg(socket("pty"))
            .args(["200", "50", "--"])
            .arg(&program)
            .args(&dispatch.args)
            .envs(dispatch.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&dispatch.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = child.id();
        let start = process::start_ticks(pid).map(|ticks| ticks.to_string());
        let mut secret = Draw::new(self.double.knobs.seed, &["auth", &dispatch.id]);
        let fields = json!({
            "pid": pid, "procStart": start, "sessionId": dispatch.session,
            "rendezvousSock": socket("rv"), "ptySock": socket("pty"),
            "cliVersion": self.double.profile.version(), "startedAt": now_ms(),
            "attempt": attempt, "cwd": dispatch.cwd,
            "dispatch": roster_fields(&dispatch, self.home.dir()),
            "decModes": [1000, 1002, 1003, 1006, 2004, 1004, 2031],
            "rvAuth": secret.hex(), "ptyAuth": secret.hex(),
        });
        let Value::Object(fields) = fields else {
            return Ok(());
        };
        let id = dispatch.id.clone();
        let worker = Worker { pid, start, fields };
        self.workers.insert(id.clone(), Live { worker, dispatch: Some(dispatch) });
        self.write_roster();
        if attempt == 1 {
            self.log("bg", &format!("bg spawned {id} ({source})"));
        }
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let code = child.wait().ok().map(|status| {
                status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(BY_SIGNAL)
            });
            let _ = sender.send(Event::Ended { id, pid, code }); // the service left
        });
        Ok(())
    }

    fn respawn(&mut self, id: &str) -> Answer {
        let Some(record) = control::record_of(self.home, id) else {
            return Answer::Refused(format!("No job matching '{id}'"));
        };
        self.kill(id);
        let text = |field: &str| record.text(field).unwrap_or_default();
        let (session, cwd) = (text("sessionId"), PathBuf::from(text("cwd")));
        let own = ["--session-id", &session, "--resume", &session].map(str::to_owned);
        let dispatch = Dispatch {
            id: id.to_owned(),
            launch: json!({
                "mode": "resume", "sessionId": session, "fork": false, "flagArgs": [],
                "transcriptPath": self.home.project_dir(&cwd).join(format!("{session}.jsonl")),
            }),
            session,
            cwd,
            respawn_flags: Vec::new(),
            intent: String::new(),
            args: own.to_vec(),
            env: Vec::new(),
        };
        // Agent 2.1.197: a word that no other path writes, without any detail.
        record.change(json!({ "state": "running", "detail": "", "tempo": "idle", "needs": null }));
        match self.start(dispatch, 1, "fleet") {
            Ok(()) => Answer::Done,
            Err(e) => Answer::Refused(format!("Error: cannot start {id}: {e}")),
        }
    }

    /// Ends a live host and waits for it; its session ends with it.
    fn kill(&mut self, id: &str) {
        self.revivals.retain(|(_, other)| other != id);
        if let Some(live) = self.workers.remove(id) {
            live.worker.kill();
            process::wait_for_end(live.worker.pid, live.worker.start.as_deref());
            self.log("bg", &format!("bg settled {id} ({})", Outcome::Killed.word()));
            self.write_roster();
        }
    }

    fn host_ended(&mut self, id: &str, pid: u32, code: Option<u8>) {
        if self.workers.get(id).is_none_or(|live| live.worker.pid != pid) {
            return; // ended by this service, which settled it
        }
        let outcome = match code {
            Some(0) => Outcome::Done,
            Some(code) if code < BY_SIGNAL => Outcome::Crashed,
            // Killed, or not seen: the record stays as it is, and a killed one is started again.
            Some(_) => {
                if let Some(ms) = self.double.knobs.bg_respawn_ms {
                    self.revivals.push((later(ms), id.to_owned()));
                } else {
                    self.workers.remove(id);
                    self.write_roster();
                }
                return;
            }
            None => Outcome::Done,
        };
        self.workers.remove(id);
        self.write_roster();
        self.idle_since = Instant::now();
        self.log("bg", &format!("bg settled {id} ({})", outcome.word()));
        let Some(record) = control::record_of(self.home, id) else {
            return;
        };
        match outcome {
            Outcome::Crashed => {
                let code = code.unwrap_or(1);
                let begun = record.fields().is_some_and(|f| f.contains_key("linkScanPath"));
                let when = if begun { "" } else { " before init" };
                let said = fs::read_to_string(output_file(self.home, id)).unwrap_or_default();
                let last = said.lines().rev().find(|line| !line.trim().is_empty());
                let last = last.map(|line| format!(" — {line}")).unwrap_or_default();
                record.settle("failed", Some(&format!("exit {code}{when}{last}")));
            }
            Outcome::Done | Outcome::Killed => {}
        }
    }

    fn revive_due(&mut self) {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) =
            self.revivals.drain(..).partition(|(at, _)| *at <= now);
        self.revivals = later;
        for (_, id) in due {
            let Some(live) = self.workers.remove(&id) else {
                continue;
            };
            let attempt = live.worker.fields.get("attempt").and_then(Value::as_u64).unwrap_or(1);
            if let Some(dispatch) = live.dispatch {
                let _ = self.start(dispatch, attempt + 1, "respawn"); // stays lost otherwise
            }
        }
    }

    /// How long to wait for an event.
    fn patience(&self) -> Duration {
        let revival = self.revivals.iter().map(|(at, _)| *at).min();
        let leave = self.workers.is_empty().then(|| self.idle_since + IDLE);
        let next = revival.into_iter().chain(leave).min();
        next.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()).min(LOOK))
    }

    fn is_idle(&self) -> bool {
        self.workers.is_empty() && self.idle_since.elapsed() >= IDLE
    }

    fn write_roster(&self) {
        let workers = self.workers.iter();
        let workers =
            workers.map(|(id, l)| (id.clone(), Value::Object(l.worker.fields.clone()))).collect();
        let _ = roster::write(self.home, std::process::id(), &workers); // the disk may be full
    }

    fn close(&mut self, cause: &str, sockets: &Path) {
        self.log(
            "supervisor",
            &format!(
                "shutting down (cause={cause}, uptime={}s, leases=0, live_workers={})",
                self.started.elapsed().as_secs(),
                self.workers.len()
            ),
        );
        let ids: Vec<String> = self.workers.keys().cloned().collect();
        for id in ids {
            if cause == "shutdown_op" {
                self.kill(&id);
                if let Some(record) = control::record_of(self.home, &id) {
                    record.settle("stopped", Some("stopped"));
                }
            } else if let Some(live) = self.workers.get(&id) {
                live.worker.kill(); // its record keeps what it said last
            }
        }
        let _ = fs::remove_file(self.home.dir().join("daemon.lock"));
        let _ = fs::remove_file(self.home.dir().join("daemon.status.json"));
        let _ = fs::remove_file(control::address_file(self.home));
        let _ = fs::remove_dir_all(sockets);
    }
}
