//! A directory of its own for one test, and the program in it.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Long enough for a loaded machine; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A private directory with a home, a project and a configuration.
pub struct Workspace {
    directory: TempDir,
}

impl Workspace {
    /// Without a configuration.
    pub fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "projects/api", "bin"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    /// With a minimal configuration, on a port that was free a moment ago.
    pub fn configured(extra: &str) -> Self {
        let workspace = Self::empty();
        let port = free_port();
        workspace.write(
            "svc.yml",
            &format!("projects_root: projects\nstate_dir: state\nport: {port}\n{extra}"),
        );
        workspace
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The program with an environment that holds nothing but what a test says.
    pub fn command<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_svc"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", self.path("bin"))
            .env("LANG", "C")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, line: &str) -> Ended {
        Ended::of(self.command(line.split_whitespace()).output().unwrap())
    }

    /// Starts a server and waits until it says where it is.
    pub fn serve(&self) -> Server {
        self.serve_with(|command| command)
    }

    pub fn serve_with(&self, change: impl FnOnce(&mut Command) -> &mut Command) -> Server {
        let mut command = self.command(["run"]);
        change(&mut command);
        Server::start(command)
    }

    /// Everything below the directory that is there now.
    pub fn listing(&self) -> Vec<PathBuf> {
        fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), found);
                }
                found.push(entry.path());
            }
        }
        let mut found = Vec::new();
        walk(self.directory.path(), &mut found);
        found.sort();
        found
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// What a command left behind.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// Waits for another process; it has no way to tell us.
#[track_caller]
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a process says, line by line, with a deadline.
pub struct Lines {
    heard: Receiver<String>,
    said: Vec<String>,
}

/// Reads a pipe to its end in the background.
pub fn lines(pipe: impl Read + Send + 'static) -> Lines {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    Lines { heard, said: Vec::new() }
}

impl Lines {
    /// The next line that holds `words`.
    #[track_caller]
    pub fn next_with(&mut self, words: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self
                .heard
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no line with `{words}`; it said {:#?}", self.said));
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Waits for the end of the pipe, which is the end of the process.
    fn end(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        assert!(Instant::now() < deadline, "it did not end");
    }
}

/// A server of this test, killed when the test ends early.
pub struct Server {
    child: Child,
    lines: Lines,
    pub address: String,
}

impl Server {
    pub fn start(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("svc starts");
        let lines = lines(child.stderr.take().unwrap());
        let mut server = Self { child, lines, address: String::new() };
        let banner = server.line_with("http://");
        let (_, after) = banner.split_once("http://").unwrap();
        server.address = after.trim_end_matches('/').to_owned();
        server
    }

    /// The last line that was waited for; after the start, the banner.
    pub fn said(&self) -> &str {
        self.lines.said.last().map_or("", String::as_str)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line on standard error that holds `words`.
    #[track_caller]
    pub fn line_with(&mut self, words: &str) -> String {
        self.lines.next_with(words)
    }

    /// Status line and body of a GET.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal)
            .unwrap();
    }

    /// Exit code after the process has ended by itself.
    pub fn exit_code(mut self) -> Option<i32> {
        self.lines.end();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A service manager that only listens.
pub struct Manager {
    socket: UnixDatagram,
    pub path: PathBuf,
}

impl Manager {
    pub fn new(workspace: &Workspace) -> Self {
        let path = workspace.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, path }
    }

    pub fn hears(&self) -> String {
        let mut buffer = [0; 256];
        let length = self.socket.recv(&mut buffer).expect("a datagram");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}
