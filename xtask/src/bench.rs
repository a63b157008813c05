//! `cargo xtask bench`: what the product costs, as a table. `--short` sees only that it works.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::place::{self, Place};
use crate::progress::{Progress, Step};
use crate::{dist, run};

/// Builds what is measured and what measures, then hands over.
pub(crate) fn run(progress: &Progress, place: &Place, args: &[OsString]) -> Result<ExitCode> {
    let short = args.iter().any(|arg| arg == "--short");
    dist::run(progress, place)?;
    if short {
        build(progress, place, &["-p", "svc-server", "-p", "svc-tests", "-p", "svc-bench"])?;
    } else {
        // The service as it is shipped: built in the selection in which it always is.
        run::build(progress, place)?;
        build(progress, place, &["--release", "-p", "svc-bench"])?;
    }
    let kind = if short { "debug" } else { "release" };
    let programs = place.target.join(kind);
    let mut bench = place.command(&programs.join("svc-bench").to_string_lossy());
    place::forget_cargo(&mut bench);
    bench
        .args(["--build", &format!("{kind}, {}", revision(place))])
        .args(args)
        .env("SVC_BIN", programs.join("svc"))
        .env("SVC_SIM_BIN", programs.join("svc-agent-sim"));
    if !args.iter().any(|arg| arg == "--json") {
        bench.arg("--json").arg(place.log("bench")?.with_extension("json"));
    }
    if !short {
        progress.say(format_args!("measuring; under 15 minutes, best with nothing else running"));
    }
    Ok(if bench.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(progress: &Progress, place: &Place, what: &[&str]) -> Result<()> {
    let log = place.log("bench-build")?;
    let expect = "about 4 min the first time";
    let step = Step { name: "bench", expect, crates: 200, log: &log };
    let mut build = place.cargo(&["build", "--locked", "--bins"]);
    if !progress.step(&step, build.args(what))? {
        bail!("the bench does not build, see {}", log.display());
    }
    Ok(())
}

/// The checkout that was built, as far as git knows it.
fn revision(place: &Place) -> String {
    let asked = place.command("git").args(["describe", "--always", "--dirty"]).output();
    let words = asked.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
    words.unwrap_or_default()
}
