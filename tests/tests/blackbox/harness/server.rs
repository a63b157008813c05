//! A running service, from its start to its end.

use super::canary::{self, Audience};
use super::{Client, Events, LogSocket, World, service, within};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::sync::watch;

/// Far more than connections to the database.
const READS_AT_ONCE: usize = 64;

/// How to start a service.
#[derive(Default)]
pub struct Start<'a> {
    /// Another build of the program.
    pub program: Option<PathBuf>,
    /// More environment.
    pub env: &'a [(&'a str, &'a str)],
    /// Another user, whose world it is.
    pub uid: Option<u32>,
    /// What it gets as its standard input.
    pub stdin: Option<OwnedFd>,
}

/// It ends before its world does.
pub struct Server<'w> {
    world: std::marker::PhantomData<&'w World>,
    child: Child,
    pub pid: i32,
    /// What a person calls it: `http://127.0.0.1:PORT`.
    pub base: String,
    pub client: Client,
    voice: Voice,
}

/// What a service says on standard error, line by line.
#[derive(Clone)]
struct Voice {
    said: Arc<Mutex<Vec<String>>>,
    heard: watch::Receiver<usize>,
}

impl World {
    /// Starts `svc run` and waits until it serves.
    pub async fn serve(&self) -> Server<'_> {
        self.serve_as(Start::default()).await
    }

    pub async fn serve_as(&self, start: Start<'_>) -> Server<'_> {
        // Another test may be given the port between our look and the server's bind.
        for _ in 0..5 {
            match self.try_serve(&start).await {
                Ok(server) => return server,
                Err(words) if words.contains("in use") => self.move_port(),
                Err(words) => panic!("the service did not start:\n{words}"),
            }
        }
        panic!("no free port was found");
    }

    /// Starts `svc run` and waits for nothing.
    pub fn begin(&self, start: &Start<'_>) -> Server<'_> {
        let program = start.program.clone().unwrap_or_else(service);
        let mut command = self.command(&program, &["run"]);
        if let Some(uid) = start.uid {
            command.uid(uid).gid(uid);
        }
        if let Some(stdin) = &start.stdin {
            command.stdin(stdin.try_clone().expect("a descriptor"));
        }
        command.envs(start.env.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let pid: i32 = child.id().and_then(|pid| pid.try_into().ok()).expect("it runs");
        let base = format!("http://127.0.0.1:{}", self.port());
        let said = Arc::new(Mutex::new(Vec::new()));
        let (count, heard) = watch::channel(0);
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let into = Arc::clone(&said);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                into.lock().expect("nobody panics with it").push(line);
                count.send_modify(|lines| *lines += 1);
            }
        });
        let client = Client::new(&base);
        let voice = Voice { said, heard };
        Server { world: std::marker::PhantomData, child, pid, base, client, voice }
    }

    /// One start, or what the service said instead of serving.
    pub async fn try_serve(&self, start: &Start<'_>) -> Result<Server<'_>, String> {
        let mut server = self.begin(start);
        if self.is_up(&mut server).await {
            return Ok(server);
        }
        within("the last words", server.voice.clone().all()).await;
        Err(server.log())
    }

    /// Waits until it serves; false when it ends before that.
    pub async fn is_up(&self, server: &mut Server<'_>) -> bool {
        let pid = server.pid;
        // The banner waits for the agent's version; the lock names the address as soon as it serves.
        let lock = self.state_dir().join("run.lock");
        let serves = || {
            let text = std::fs::read(&lock).ok()?;
            let record: serde_json::Value = serde_json::from_slice(&text).ok()?;
            (record["pid"] == pid && record["address"].is_string()).then_some(())
        };
        tokio::select! {
            () = self.until("the service", serves) => true,
            _ = server.child.wait() => false,
        }
    }
}

impl Voice {
    fn lines(&self) -> Vec<String> {
        self.said.lock().expect("nobody panics with it").clone()
    }

    /// Until there is nothing more to hear.
    async fn all(mut self) {
        while self.heard.changed().await.is_ok() {}
    }
}

impl<'w> Server<'w> {
    pub fn said(&self) -> Vec<String> {
        self.voice.lines()
    }

    pub fn log(&self) -> String {
        self.said().join("\n")
    }

    /// Makes the service open all connections to its database.
    /// Each has a thread, and is opened when it is first needed.
    pub async fn open_connections(&self) {
        let reader = Client::new(&self.base);
        let history = (0..READS_AT_ONCE).map(|_| reader.get("/api/history"));
        for reply in futures_util::future::join_all(history).await {
            reply.expect(200);
        }
    }

    /// Waits until it says a line with these words.
    pub async fn says(&self, words: &str) -> String {
        let mut heard = self.voice.heard.clone();
        within(words, async {
            loop {
                heard.mark_unchanged();
                if let Some(line) = self.said().into_iter().find(|line| line.contains(words)) {
                    return line;
                }
                heard.changed().await.expect("it says so before it ends");
            }
        })
        .await
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        within("the end of the service", self.child.wait()).await.expect("it is our child")
    }

    /// Kills it at once, as a power cut would.
    pub async fn kill(mut self) {
        self.child.start_kill().expect("it runs");
        self.ended().await;
    }

    /// Asks it to end as a service manager does. The exit code and all it said.
    pub async fn stop(mut self) -> (Option<i32>, String) {
        let pid = Pid::from_raw(self.pid).expect("a process id");
        kill_process(pid, Signal::TERM).expect("it runs");
        let status = self.ended().await;
        within("the last words", self.voice.clone().all()).await;
        (status.code(), self.log())
    }

    /// The stream that the page follows.
    pub async fn events(&self) -> Events {
        Events::open(&self.base).await
    }

    /// The log of a bridge as the page follows it.
    pub async fn log_of(&self, reference: &str) -> LogSocket {
        LogSocket::open(&self.base, reference).await
    }
}

/// Ends the service, waits for its end, and shows its output after a failed test.
///
/// The next service of this world needs the lock and the port of this one.
impl Drop for Server<'_> {
    fn drop(&mut self) {
        // Without an id it has ended and was waited for.
        let running = self.child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        if let Some(pid) = running
            && self.child.start_kill().is_ok()
        {
            // Not collected here: the runtime does that.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let _ = waitid(WaitId::Pid(pid), options); // collected meanwhile: it has ended
        }
        if std::thread::panicking() {
            eprintln!("--- the service on {} said:\n{}", self.base, self.log());
        } else {
            canary::check("the service's own log", Audience::Operator, &self.log());
        }
    }
}
