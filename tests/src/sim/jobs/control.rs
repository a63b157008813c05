//! Talks to the background service: one JSON line each way over a local socket.
//!
//! A file of the simulator has the path of the socket, so that commands with another temporary
//! directory find the same service.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{record, roster};
use crate::sim::console::{print, say};
use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::home::AgentHome;
use crate::sim::ids::Draw;
use crate::sim::{files, process};

/// A service that does not answer within this time is as good as none.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a command asks for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub(crate) enum Request {
    Dispatch(Box<Dispatch>),
    Stop { id: String },
    Remove { id: String },
    Respawn { id: String },
    Status,
    Shutdown,
}

/// A new session, with the part of the caller's environment its knobs come from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dispatch {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) cwd: PathBuf,
    /// `launch` of the roster entry.
    pub(crate) launch: Value,
    pub(crate) respawn_flags: Vec<String>,
    pub(crate) intent: String,
    /// Arguments of the session process.
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// What the service says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Done,
    Refused(String),
    Status(Value),
}

/// Where the socket of a home's service is: short enough for a socket address.
pub(super) fn new_address(home: &AgentHome) -> io::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let name = Draw::new(0, &["service", &home.dir().to_string_lossy()]).hex();
    let dir = Path::new("/tmp").join(format!("svc-sim-daemon-{user}")).join(name);
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    Ok(dir)
}

/// The file that names the socket and the service behind it.
pub(super) fn address_file(home: &AgentHome) -> PathBuf {
    home.mark().join("daemon.json")
}

/// The live service: its pid and its socket.
fn service(home: &AgentHome) -> Option<(u32, PathBuf)> {
    let known: Value = serde_json::from_slice(&fs::read(address_file(home)).ok()?).ok()?;
    let pid = u32::try_from(known.get("pid")?.as_u64()?).ok()?;
    let socket = known.get("socket")?.as_str()?;
    process::is_same(pid, known.get("start").and_then(Value::as_str))
        .then(|| (pid, PathBuf::from(socket)))
}

/// The service's answer; `None` without a service that answers.
pub(crate) fn ask(home: &AgentHome, request: &Request) -> Option<Answer> {
    let (_, socket) = service(home)?;
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let line = serde_json::to_string(request).ok()?;
    stream.write_all(format!("{line}\n").as_bytes()).ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    serde_json::from_str(&answer).ok()
}

/// Starts the service unless it runs; `label` is the command that needed it.
pub(crate) fn ensure(double: &Double, label: &str) -> Result<(), Failure> {
    let home = &double.home;
    let _lock = files::lock_beside(&address_file(home))
        .map_err(|e| Failure::refused(format!("cannot lock the background service: {e}")))?;
    if service(home).is_some() {
        return Ok(());
    }
    say("Starting background service…\n");
    let starter = json!({ "label": label, "cwd": double.cwd, "pid": std::process::id() });
    let mut child = Command::new(env::current_exe().map_err(|e| no_service(&e))?)
        .args(["daemon", "run", "--origin", "transient", "--spawned-by", &starter.to_string()])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| no_service(&e))?;
    // One line says that the socket is open; end of file that it never will be.
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        let _ = BufReader::new(out).read_line(&mut line); // no line is the answer then
    }
    if line.trim().is_empty() { Err(no_service(&"it ended at once")) } else { Ok(()) }
}

fn no_service(cause: &dyn std::fmt::Display) -> Failure {
    Failure::agent(format!("Error: could not start the background service: {cause}"))
}

/// `daemon status`.
pub(super) fn status(home: &AgentHome) -> u8 {
    let listed = roster::read(home).len();
    let Some(Answer::Status(state)) = ask(home, &Request::Status) else {
        print(&format!(
            "not running\n\nbg sessions:\n  control.sock: unreachable\n  bg workers:   {listed} \
             in roster.json (control unreachable)\n"
        ));
        return 1;
    };
    let text = |field: &str| state.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
    print(&format!(
        "pid:     {}\nversion: {}\nuptime:  {}s\norigin:  {}\nlog:     {}\n\nbg sessions:\n  \
         control.sock: reachable\n  bg workers:   {} running (control.sock), {listed} in \
         roster.json\n",
        state.get("pid").and_then(Value::as_u64).unwrap_or(0),
        text("version"),
        state.get("uptime").and_then(Value::as_u64).unwrap_or(0),
        text("origin"),
        text("log"),
        state.get("workers").and_then(Value::as_u64).unwrap_or(0),
    ));
    0
}

/// `daemon stop [--any]`.
pub(super) fn stop(home: &AgentHome, words: &[&str]) -> Result<u8, Failure> {
    let Some((pid, _)) = service(home) else {
        print("no daemon running\n");
        return Ok(0);
    };
    if !words.contains(&"--any") {
        return Err(Failure::agent(format!(
            "no background service is installed, but a daemon is running (pid={pid}, \
             origin=transient). Run `claude daemon stop --any` to stop it."
        )));
    }
    let live = roster::read(home).len();
    let start = process::start_ticks(pid).map(|ticks| ticks.to_string());
    if ask(home, &Request::Shutdown).is_none() {
        return Err(Failure::agent("Error: the daemon did not answer"));
    }
    // It still ends its sessions: only then may its home go away.
    process::wait_for_end(pid, start.as_deref());
    let plural = if live == 1 { "" } else { "s" };
    let what = match live {
        0 => "stopped".to_owned(),
        live => format!("stopped (terminated {live} background session{plural})"),
    };
    print(&format!(
        "{what}\nnote: the next `claude agents` or `claude --bg` will start a new one\n"
    ));
    Ok(0)
}

/// The record of `id`, if it still exists. A job may be removed while it ends.
pub(super) fn record_of(home: &AgentHome, id: &str) -> Option<record::Record> {
    record::Record::open(home, id)
}
