//! The agents of the contract tests: the simulator, and a real one if named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Done, Stage};

/// An agent under test in a home of its own, logged out.
pub struct Agent {
    pub name: &'static str,
    pub stage: Stage,
    pub cwd: PathBuf,
}

pub fn agents() -> Vec<Agent> {
    let simulator = Stage::new(env!("CARGO_BIN_EXE_svc-agent-sim"));
    let real = std::env::var("SVC_CONTRACT_AGENT").ok().map(|program| {
        let stage = Stage::bare(&program);
        fs::create_dir(&stage.home).unwrap();
        ("real agent", stage)
    });
    let all = std::iter::once(("simulator", simulator)).chain(real);
    all.map(|(name, stage)| Agent { name, cwd: stage.directory("project"), stage }).collect()
}

impl Agent {
    pub fn command(&self) -> Command {
        let mut command = self.stage.command(&self.cwd, &[("auth", "logged_out")]);
        command.env("DISABLE_AUTOUPDATER", "1");
        command
    }

    pub fn run(&self, args: &[&str]) -> Done {
        done(self.command().args(args))
    }

    /// Whether this is the version the simulator's default profile describes.
    pub fn is_described(&self) -> bool {
        self.run(&["--version"]).stdout.starts_with("2.1.197 ")
    }

    pub fn config_file(&self) -> PathBuf {
        self.stage.home.join(".claude.json")
    }

    pub fn start(&self, args: &[&str], log: &Path) -> Done {
        let debug = ["remote-control", "--name", "X", "--debug-file", log.to_str().unwrap()];
        done(self.command().args(debug).args(args))
    }
}

pub fn done(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    Done {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
