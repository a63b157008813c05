//! A git server over TLS.
//!
//! A service with fail points takes it for one in the internet.

use super::World;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// It ends when this is dropped.
pub struct GitServer {
    _child: Child,
    root: PathBuf,
    port: u16,
}

impl GitServer {
    pub async fn start(world: &World) -> Self {
        let root = world.root.join("git");
        fs::create_dir(&root).expect("a directory");
        let mut child = Command::new(super::program("SVC_GIT_SERVER_BIN", "svc-git-server"))
            .arg(&root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the git server runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = super::within("its port", lines.next_line()).await.expect("a line");
        let port = line.and_then(|line| line.parse().ok()).expect("a port");
        Self { _child: child, root, port }
    }

    /// Makes the repository `name` from files, each with its content.
    pub fn repository(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = self.root.join(name);
        fs::create_dir(&dir).expect("a directory");
        git(&dir, &["init", "-q", "-b", "main"]);
        for (file, content) in files {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().expect("it is inside")).expect("a directory");
            fs::write(path, content).expect("a file");
        }
        self.commit(&dir);
        dir
    }

    /// Commits everything in a repository.
    pub fn commit(&self, dir: &Path) {
        git(dir, &["add", "-A"]);
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        git(dir, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "one"]].concat());
    }

    /// Its port on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets what is held go on.
    pub fn open(&self) {
        fs::write(self.root.join("open"), "").expect("a file");
    }

    /// What was asked for so far: host and path.
    pub fn asked(&self) -> String {
        fs::read_to_string(self.root.join("asked")).unwrap_or_default()
    }

    /// The address of a path under a name that `answers` belong to.
    pub fn url(path: &str) -> String {
        format!("https://git.test/{path}")
    }

    /// Fail points under which `git.test` has the address 1.1.1.1, and that leads here.
    pub fn points(&self, more: &str) -> String {
        self.points_with("git.test:1.1.1.1", more)
    }

    /// The same with other answers of the resolver.
    pub fn points_with(&self, dns: &str, more: &str) -> String {
        let port = self.port;
        format!("clone.dns={dns};clone.dial=1.1.1.1:443>127.0.0.1:{port};{more}")
    }

    /// The authority that signed its certificate.
    pub fn authority() -> String {
        format!("{}/git-server/ca.pem", env!("CARGO_MANIFEST_DIR"))
    }
}

fn git(dir: &Path, args: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Runs git in a directory, as a person who prepares a repository.
pub fn by_hand(dir: &Path, args: &[&str]) {
    git(dir, args);
}
