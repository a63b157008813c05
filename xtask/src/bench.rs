//! `cargo xtask bench`: measures the product and prints a table.
//!
//! `--short` only checks answers.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::progress::{Progress, Step};
use crate::workspace::{self, Workspace};
use crate::{dist, run};

/// Builds the service and the measuring program, then runs the latter.
pub(crate) fn run(
    progress: &Progress,
    workspace: &Workspace,
    args: &[OsString],
) -> Result<ExitCode> {
    let short = args.iter().any(|arg| arg == "--short");
    dist::run(progress, workspace)?;
    if short {
        build(progress, workspace, &["-p", "svc-server", "-p", "svc-tests", "-p", "svc-bench"])?;
    } else {
        // The service as it is shipped: built in the selection in which it always is.
        run::build(progress, workspace)?;
        build(progress, workspace, &["--release", "-p", "svc-bench"])?;
    }
    let kind = if short { "debug" } else { "release" };
    let programs = workspace.target.join(kind);
    let mut bench = workspace.command(&programs.join("svc-bench").to_string_lossy());
    workspace::forget_cargo(&mut bench);
    bench
        .args(["--build", &format!("{kind}, {}", revision(workspace))])
        .args(args)
        .env("SVC_BIN", programs.join("svc"))
        .env("SVC_SIM_BIN", programs.join("svc-agent-sim"));
    if !args.iter().any(|arg| arg == "--json") {
        bench.arg("--json").arg(workspace.log("bench")?.with_extension("json"));
    }
    if !short {
        progress.say(format_args!("measuring; under 15 minutes, best with nothing else running"));
    }
    Ok(if bench.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(progress: &Progress, workspace: &Workspace, what: &[&str]) -> Result<()> {
    let log = workspace.log("bench-build")?;
    let expect = "about 4 min the first time";
    let step = Step { name: "bench", expect, crates: 200, log: &log };
    let mut build = workspace.cargo(&["build", "--locked", "--bins"]);
    if !progress.step(&step, build.args(what))? {
        bail!("the bench does not build, see {}", log.display());
    }
    Ok(())
}

/// The revision of the checkout; empty when git does not know it.
fn revision(workspace: &Workspace) -> String {
    let asked = workspace.command("git").args(["describe", "--always", "--dirty"]).output();
    let words = asked.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
    words.unwrap_or_default()
}
