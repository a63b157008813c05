//! The sessions a bridge serves at the moment: one worker process each.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use super::args::Args;
use super::engine::{Event, duration};
use super::{own_program, screen};
use crate::sim::debug_log::{DebugLog, Level};
use crate::sim::double::Double;
use crate::sim::ids::Draw;
use crate::sim::worktree::{self, Worktree};
use crate::sim::{files, signals};

/// How a session's worker ended, in the agent's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Completed,
    Failed,
    Interrupted,
}

impl Ended {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

struct Worker {
    pid: u32,
    /// Closing it ends the worker.
    stdin: Option<ChildStdin>,
    work: String,
    since: Instant,
    worktree: Option<Worktree>,
    transcript: Option<PathBuf>,
}

pub(super) struct Sessions {
    log: DebugLog,
    verbose: bool,
    capacity: usize,
    permission_mode: Option<String>,
    workers: BTreeMap<String, Worker>,
}

impl Sessions {
    pub(super) fn new(log: DebugLog, args: &Args) -> Self {
        Self {
            log,
            verbose: args.verbose,
            capacity: usize::try_from(args.capacity()).unwrap_or(usize::MAX),
            permission_mode: args.permission_mode.clone(),
            workers: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.workers.keys().cloned().collect()
    }

    /// Starts a session: its worktree if needed, its worker, and the lines of both.
    pub(super) fn start(
        &mut self,
        double: &Double,
        session: &str,
        own_worktree: bool,
        events: &SyncSender<Event>,
    ) {
        let work = Draw::new(double.knobs.seed, &["work", session]).id("work_");
        self.log.debug(&format!(
            "[bridge:api] GET .../work/poll -> 200 workId={work} type=session sessionId={session}"
        ));
        if self.workers.contains_key(session) {
            self.log.debug(&format!(
                "[bridge:work] Updated access token for existing sessionId={session} workId={work}"
            ));
            return;
        }
        if self.workers.len() >= self.capacity {
            self.log.debug(&format!(
                "[bridge:work] At capacity ({}/{}), cannot spawn new session for workId={work}",
                self.workers.len(),
                self.capacity
            ));
            return;
        }
        self.log.debug(&format!("[bridge:work] Acknowledging workId={work}"));
        let worktree = match own_worktree.then(|| worktree::create(double, &worktree_name(session)))
        {
            None => None,
            Some(Ok(worktree)) => {
                self.log.debug(&format!(
                    "[bridge:session] Created worktree for sessionId={session} at {}",
                    worktree.path.display()
                ));
                Some(worktree)
            }
            Some(Err(cause)) => {
                screen::error(&format!("Failed to create worktree for session {session}: {cause}"));
                self.log.line(
                    Level::Error,
                    &format!("Worktree creation failed for session {session}: {cause}"),
                );
                return;
            }
        };
        let dir = worktree.as_ref().map_or(double.cwd.clone(), |made| made.path.clone());
        match self.spawn(session, &dir, events) {
            Ok(mut worker) => {
                worker.worktree = worktree;
                worker.work = work;
                self.workers.insert(session.to_owned(), worker);
            }
            Err(cause) => {
                screen::error(&format!("Failed to spawn session {session}: {cause}"));
                if let Some(worktree) = worktree {
                    worktree.end();
                }
            }
        }
    }

    fn spawn(&self, session: &str, dir: &Path, events: &SyncSender<Event>) -> io::Result<Worker> {
        let url = format!("ws://sim/v2/session_ingress/ws/{session}");
        let mut args: Vec<String> = ["--print", "--sdk-url", &url, "--session-id", session]
            .into_iter()
            .chain(["--input-format", "stream-json", "--output-format", "stream-json"])
            .chain(["--replay-user-messages"])
            .map(str::to_owned)
            .collect();
        if self.verbose {
            args.push("--verbose".into());
        }
        // Agent 2.1.197 puts both files of a session beside the bridge's debug file.
        let debug_file = self.log.path().map(|path| beside(path, session));
        if let Some(path) = &debug_file {
            args.extend(["--debug-file".to_owned(), path.to_string_lossy().into_owned()]);
        }
        if let Some(mode) = &self.permission_mode {
            args.extend(["--permission-mode".to_owned(), mode.clone()]);
        }
        self.log.debug(&format!(
            "[bridge:session] Spawning sessionId={session} sdkUrl={url} accessToken=present"
        ));
        self.log.debug(&format!("[bridge:session] Child args: {}", args.join(" ")));
        let mut child = own_program()?
            .args(&args)
            .current_dir(dir)
            .env("CLAUDE_CODE_ENVIRONMENT_KIND", "bridge")
            .env("CLAUDE_CODE_SESSION_ACCESS_TOKEN", format!("sim-token-{session}"))
            .env_remove("CLAUDE_CODE_OAUTH_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let pid = child.id();
        self.log.debug(&format!("[bridge:session] sessionId={session} pid={pid}"));
        if self.verbose {
            screen::status(&format!("Session started: \"Session {session}\" ({session})"));
        }
        let stdin = child.stdin.take();
        follow(session.to_owned(), child, events.clone());
        Ok(Worker {
            pid,
            stdin,
            work: String::new(),
            since: Instant::now(),
            worktree: None,
            transcript: self
                .log
                .path()
                .map(|path| path.with_file_name(format!("bridge-transcript-{session}.jsonl"))),
        })
    }

    /// A line a worker printed: the log of the wire, and the activity seen in it.
    pub(super) fn heard(&self, session: &str, line: &str) {
        if let Some(path) = self.workers.get(session).and_then(|w| w.transcript.as_ref()) {
            let _ = files::append(path, format!("{line}\n").as_bytes());
        }
        self.log.debug(&format!("[bridge:ws] sessionId={session} <<< {line}"));
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        let text_at = |pointer| message.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        match text_at("/type") {
            "assistant" => {
                let blocks = message.pointer("/message/content").and_then(Value::as_array);
                for block in blocks.into_iter().flatten() {
                    self.log_block(session, block);
                }
            }
            "result" => {
                self.activity(session, &format!("result subtype={}", text_at("/subtype")));
                self.activity(session, "result Session completed");
            }
            "control_request" if text_at("/request/subtype") == "can_use_tool" => {
                self.log.debug(&format!(
                    "[bridge:perm] sessionId={session} tool={} request_id={} (not auto-approving)",
                    text_at("/request/tool_name"),
                    text_at("/request_id")
                ));
            }
            _ => {}
        }
    }

    fn log_block(&self, session: &str, block: &Value) {
        let field = |name| block.get(name).and_then(Value::as_str).unwrap_or("");
        if field("type") == "text" {
            let text: String = field("text").chars().take(100).collect();
            let summary: String = field("text").chars().take(80).collect();
            self.activity(session, &format!("text \"{text}\""));
            self.activity(session, &format!("text {summary}"));
        } else {
            let file = block.pointer("/input/file_path").and_then(Value::as_str).unwrap_or("");
            let name = field("name");
            self.activity(session, &format!("tool_use name={name} file_path=\"{file}\""));
            self.activity(session, &format!("tool_start {name} {file}"));
        }
    }

    fn activity(&self, session: &str, what: &str) {
        self.log.debug(&format!("[bridge:activity] sessionId={session} {what}"));
    }

    /// The lines of a lease kept alive.
    pub(super) fn heartbeat(&self) {
        for worker in self.workers.values() {
            self.log.debug(&format!(
                "[bridge:api] POST .../work/{}/heartbeat -> 200 lease_extended=true state=active",
                worker.work
            ));
        }
    }

    /// Tells a worker that its session is over; `reason` if the service took it away.
    pub(super) fn end(&mut self, session: &str, reason: Option<&str>) {
        // Taken, so that it is told once; the closed pipe says the same again.
        if let Some(mut stdin) = self.workers.get_mut(session).and_then(|w| w.stdin.take()) {
            if let Some(reason) = reason {
                self.log_end_request(session, reason);
            }
            let request = end_request(reason.unwrap_or("completed"));
            let _ = writeln!(stdin, "{request}"); // ended by itself: fine
        }
    }

    /// The control message of a session that is no more, as the wire's log shows it.
    pub(super) fn log_end_request(&self, session: &str, reason: &str) {
        self.log.debug(&format!("[bridge:ws] sessionId={session} <<< {}", end_request(reason)));
    }

    /// Asks every worker to end.
    pub(super) fn terminate(&self) {
        self.log.debug(&format!(
            "[bridge:shutdown] Shutting down {} active session(s)",
            self.workers.len()
        ));
        for (session, worker) in &self.workers {
            self.log.debug(&format!("[bridge:shutdown] Sending SIGTERM to sessionId={session}"));
            signals::send(worker.pid, Signal::TERM);
        }
    }

    /// Ends every worker that did not.
    pub(super) fn kill(&self) {
        for (session, worker) in &self.workers {
            self.log.debug(&format!("[bridge:shutdown] Force-killing stuck sessionId={session}"));
            signals::send(worker.pid, Signal::KILL);
        }
    }

    /// A worker is gone: its lines, and its worktree.
    pub(super) fn ended(&mut self, session: &str, status: ExitStatus) -> Ended {
        let Some(worker) = self.workers.remove(session) else {
            return Ended::Failed;
        };
        let pid = worker.pid;
        let (ended, how) = match (status.code(), status.signal()) {
            (Some(0), _) => (Ended::Completed, format!("completed exit_code=0 pid={pid}")),
            (_, Some(signal @ (2 | 15))) => {
                let name = if signal == 2 { "SIGINT" } else { "SIGTERM" };
                (Ended::Interrupted, format!("interrupted signal={name} pid={pid}"))
            }
            (code, _) => {
                let code = code.map_or("null".to_owned(), |code| code.to_string());
                (Ended::Failed, format!("failed exit_code={code} pid={pid}"))
            }
        };
        self.log.debug(&format!("[bridge:session] sessionId={session} {how}"));
        self.log.debug(&format!(
            "[bridge:session] sessionId={session} workId={} exited status={} duration={}",
            worker.work,
            ended.word(),
            duration(worker.since.elapsed())
        ));
        if let Some(worktree) = worker.worktree {
            self.end_worktree(worktree, ended);
        }
        ended
    }

    fn end_worktree(&self, worktree: Worktree, ended: Ended) {
        let path = worktree.path.clone();
        let path = path.display();
        if ended == Ended::Failed {
            screen::status(&format!("kept worktree {path} · session crashed"));
            return;
        }
        match worktree.end() {
            worktree::Ended::Removed => screen::status(&format!("removed worktree {path}")),
            worktree::Ended::Stuck => {
                screen::status(&format!("worktree removal failed, kept: {path}"));
            }
            worktree::Ended::Kept { dirty, ahead } => {
                screen::status(&format!("kept worktree {path}"));
                self.log.debug(&format!(
                    "[bridge:worktree] kept {path} dirty={dirty} commitsAhead={ahead} \
                     gitError=false"
                ));
            }
        }
    }
}

/// Reads a worker's output and its end from threads of their own.
fn follow(session: String, mut child: Child, events: SyncSender<Event>) {
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|out| BufReader::new(out).lines());
        for line in lines.map_while(Result::ok) {
            let event = Event::WorkerLine { session: session.clone(), line };
            if events.send(event).is_err() {
                return; // the bridge ended: so does the worker
            }
        }
        if let Ok(status) = child.wait() {
            let _ = events.send(Event::WorkerEnd { session, status }); // as above
        }
    });
}

/// Key order differs between reasons on purpose: readers must not depend on it.
fn end_request(reason: &str) -> String {
    if reason == "deleted" {
        return format!(
            "{{\"type\":\"control_request\",\"request\":{{\"reason\":\"{reason}\",\
             \"subtype\":\"end_session\"}}}}"
        );
    }
    format!(
        "{{\"type\":\"control_request\",\"request\":{{\"subtype\":\"end_session\",\
         \"reason\":\"{reason}\"}}}}"
    )
}

/// `a.log` becomes `a-<session>.log`.
fn beside(debug_file: &Path, session: &str) -> PathBuf {
    let stem = debug_file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match debug_file.extension() {
        Some(extension) => format!("{stem}-{session}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{session}"),
    };
    debug_file.with_file_name(name)
}

fn worktree_name(session: &str) -> String {
    format!("bridge-{session}")
}
