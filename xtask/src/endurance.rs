//! `cargo xtask soak` and `cargo xtask chaos`: the whole program for long and under faults. Builds
//! what they need and calls it; what happens then is `tests/examples/endurance`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::place::{self, Place};
use crate::progress::{Progress, Step};
use crate::run;

/// Which build of the service is tried.
const BUILDS: [&str; 2] = ["--release", "--debug"];

/// Runs one of the two with its arguments. The exit code is its own.
pub(crate) fn run(
    progress: &Progress,
    place: &Place,
    name: &str,
    mut args: Vec<OsString>,
) -> Result<ExitCode> {
    let chosen = args.iter().position(|arg| BUILDS.iter().any(|build| arg == build));
    let is_release = match chosen.map(|at| args.remove(at)) {
        Some(build) => build == "--release",
        // Memory is that of the program that is shipped; faults are best met with every check in.
        None => name == "soak",
    };
    let log = place.log("build-endurance")?;
    let step = Step {
        name: "build-endurance",
        expect: "about 3 min the first time",
        crates: 330,
        log: &log,
    };
    let args_of_build = ["build", "--locked", "-p", "svc-server", "-p", "svc-tests", "--bins"];
    let mut build = place.cargo(&args_of_build);
    if !progress.step(&step, build.args(["--example", "endurance"]))? {
        bail!("the programs do not build, see {}", log.display());
    }
    if is_release {
        run::build(progress, place)?;
    }
    let kind = if is_release { "release" } else { "debug" };
    let mut endurance = program(place);
    endurance
        .arg(name)
        .args(args)
        .env("SVC_BIN", place.target.join(kind).join("svc"))
        .env("SVC_SIM_BIN", place.target.join(kind).join("svc-agent-sim"));
    // Its own words as it goes; it ends what it started when it is interrupted.
    match endurance.status()?.code() {
        Some(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        None => bail!("{name} was ended by a signal"),
    }
}

/// The program that does it, built with the tests.
pub(crate) fn program(place: &Place) -> Command {
    let mut command = Command::new(place.target.join("debug/examples/endurance"));
    place::forget_cargo(&mut command);
    command.current_dir(&place.root);
    command
}
