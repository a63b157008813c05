//! `cargo xtask soak` and `chaos`: long runs, and runs with injected faults.
//!
//! Builds the programs and starts `tests/examples/endurance`, which does the rest.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::progress::{Progress, Step};
use crate::run;
use crate::workspace::{self, Workspace};

/// The builds of the service that can be chosen.
const BUILDS: [&str; 2] = ["--release", "--debug"];

/// Builds and runs `soak` or `chaos`, and returns its exit code.
pub(crate) fn run(
    progress: &Progress,
    workspace: &Workspace,
    name: &str,
    mut args: Vec<OsString>,
) -> Result<ExitCode> {
    let chosen = args.iter().position(|arg| BUILDS.iter().any(|build| arg == build));
    let is_release = match chosen.map(|at| args.remove(at)) {
        Some(build) => build == "--release",
        // Memory is that of the program that is shipped; faults are best met with every check in.
        None => name == "soak",
    };
    let log = workspace.log("build-endurance")?;
    let step = Step {
        name: "build-endurance",
        expect: "about 3 min the first time",
        crates: 330,
        log: &log,
    };
    let args_of_build = ["build", "--locked", "-p", "svc-server", "-p", "svc-tests", "--bins"];
    let mut build = workspace.cargo(&args_of_build);
    if !progress.step(&step, build.args(["--example", "endurance"]))? {
        bail!("the programs do not build, see {}", log.display());
    }
    if is_release {
        run::build(progress, workspace)?;
    }
    let kind = if is_release { "release" } else { "debug" };
    let mut endurance = program(workspace);
    endurance
        .arg(name)
        .args(args)
        .env("SVC_BIN", workspace.target.join(kind).join("svc"))
        .env("SVC_SIM_BIN", workspace.target.join(kind).join("svc-agent-sim"));
    // Its own words as it goes; it ends what it started when it is interrupted.
    match endurance.status()?.code() {
        Some(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        None => bail!("{name} was ended by a signal"),
    }
}

/// The program of the long runs, built with the tests.
pub(crate) fn program(workspace: &Workspace) -> Command {
    let mut command = Command::new(workspace.target.join("debug/examples/endurance"));
    workspace::forget_cargo(&mut command);
    command.current_dir(&workspace.root);
    command
}
