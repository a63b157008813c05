//! The task runner: `cargo xtask COMMAND`.
//!
//! Reads the arguments and turns failures into exit codes.
//!
//! Each command has its own module. `pins` has the versions, `workspace` the folders and the
//! environment, and `progress` prints everything the user reads.

mod bench;
mod bootstrap;
mod browser;
mod dist;
mod doctor;
mod endurance;
mod fuzz;
mod modules;
mod package;
mod pins;
mod precompress;
mod progress;
mod redaction;
mod rows;
mod run;
mod skips;
mod smoke;
mod stop;
mod tally;
mod test;
mod times;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::bootstrap::Page;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workspace::Workspace;

const HELP: &str = "\
cargo xtask COMMAND

  run [ARGS]              page, service and agent simulator are built, then the service runs:
                          with the config it finds, else as `svc demo`; ARGS are passed on
                          (before ARGS: --no-web goes on without the page's tools, --release
                          builds what is shipped, which takes minutes longer)
  test [FILTER]           formatting, lints, licences, every test, browser tests included;
                          with FILTER only the tests whose name contains it
                          (--fast: nothing that needs WebAssembly, Node or a browser;
                          --quick: formatting, lints and the tests of the single packages,
                          for the loop while working)
  dist                    builds only the page, into dist/
  bootstrap               installs the tools that are missing
  rows                    every failure case and hardening row: proved by which tests, not yet,
                          or excused; from tests/rows.md and the names of the tests
  model [NAME NUMBER]...  searches all states of the lifecycle, with every order of steps
                          (--short: as the tests do; NAME: commands, crashes, …, how often each
                          may happen; a wrong one lists them)
  soak [--minutes 20] [--seed N] [--bridges 100]
                          bridges live and die under clients, commands and sockets; at the end
                          everything must be where it was (--debug: not the release build)
  chaos [--seed N] [--rounds K] [--only KIND]
                          processes die and stop, disk, clock, watches and descriptors fail;
                          every round ends in the invariants (--release: not the debug build;
                          --from R: the first round; --show: every step)
  fuzz [TARGET]           searches the parsers of foreign input for inputs that break them
                          (--seconds N: each target, 60 by default; --keep: what reaches new code
                          goes into tests/fuzz/corpus)
  smoke                   release build without fail points, one start of `svc demo`, page and
                          health asked for
  bench [--only NAME] [--compare FILE] [--json FILE]
                          release build, then requests, latencies, memory, processor time and
                          endurance as a table with budgets; at most 15 minutes
                          (--short: debug build, only that every answer is right)
  package                 what is published: static programs (musl), an archive, a Debian package,
                          an image for containers, a list of what is inside, and SHA256SUMS; the
                          same bytes from the same commit (--out DIR; --release-url URL: where the
                          files will be, for `svc deps install`; --shared: link the C library of
                          this machine; --sign KEY: gpg signs the digests; --twice: built again
                          elsewhere and compared; --check: builds nothing, unpacks, installs and
                          uses what lies there, as root)
  redaction               a corpus of planted secrets, judged by our redaction, secretlint and
                          detect-secrets; writes the table of docs/security.md, prints the speed
  times                   release build, then how long the page takes, as a table; only printed
  ci                      test, then smoke; the release is built beside the tests
  doctor                  shows what is needed and what is there; changes nothing

Environment: SVC_TOOLS_DIR (where tools are kept), CHROMIUM (program for the browser tests),
CARGO_TARGET_DIR, CI=true (what cannot be tested is a failure, not a skip).
";

fn main() -> ExitCode {
    let progress = Progress::start();
    match command(&progress, std::env::args_os().skip(1).collect()) {
        Ok(code) => code,
        Err(error) => {
            progress.say(format_args!("stopped: {error:#}"));
            ExitCode::from(error.downcast_ref::<Stop>().map_or(1, |stop| stop.code))
        }
    }
}

fn command(progress: &Progress, mut args: Vec<OsString>) -> Result<ExitCode> {
    let name = if args.is_empty() { OsString::from("help") } else { args.remove(0) };
    if name == "precompress" {
        // The only command that trunk calls, inside its own build: the tools are there.
        no_more(&args)?;
        precompress::run(progress, &Workspace::find()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let workspace = Workspace::find()?;
    match name.to_str() {
        Some("help" | "--help" | "-h") => progress.print(HELP),
        Some("bootstrap") => {
            no_more(&args)?;
            bootstrap::run(progress, &workspace, Page::Wanted)?;
        }
        Some("dist") => {
            no_more(&args)?;
            dist::run(progress, &workspace)?;
        }
        Some("run") => {
            let options = run::Options::take(&mut args);
            return Err(run::run(progress, &workspace, &options, &args)?);
        }
        Some("test") => return test::run(progress, &workspace, &test::Options::parse(&args)?),
        Some("rows") => {
            no_more(&args)?;
            return rows::run(progress, &workspace);
        }
        Some("fuzz") => {
            return fuzz::run(progress, &workspace, &fuzz::Options::parse(&args)?);
        }
        Some("model") => {
            // Its own words and its own exit code, as it goes.
            let mut search =
                workspace.cargo(&["run", "--locked", "--quiet", "-p", "svc-model", "--"]);
            return match search.args(&args).status()?.code() {
                Some(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
                None => bail!("the search was ended by a signal"),
            };
        }
        Some(name @ ("soak" | "chaos")) => return endurance::run(progress, &workspace, name, args),
        Some("smoke") => {
            no_more(&args)?;
            return smoke::run(progress, &workspace);
        }
        Some("bench") => return bench::run(progress, &workspace, &args),
        Some("package") => {
            package::run(progress, &workspace, &package::Options::parse(&args)?)?;
        }
        Some("redaction") => {
            no_more(&args)?;
            return redaction::run(progress, &workspace);
        }
        Some("times") => {
            no_more(&args)?;
            return times::run(progress, &workspace);
        }
        Some("ci") => {
            no_more(&args)?;
            let tests = test::run(progress, &workspace, &test::Options::before_smoke())?;
            if tests != ExitCode::SUCCESS {
                return Ok(tests);
            }
            return smoke::run(progress, &workspace);
        }
        Some("doctor") => {
            no_more(&args)?;
            return doctor::run(progress, &workspace);
        }
        _ => bail!("`{}` is not a command; `cargo xtask help` lists them", name.to_string_lossy()),
    }
    Ok(ExitCode::SUCCESS)
}

fn no_more(args: &[OsString]) -> Result<()> {
    match args.first() {
        None => Ok(()),
        Some(extra) => bail!(
            "`{}` is too much: this command takes no arguments; `cargo xtask help` lists them",
            extra.to_string_lossy()
        ),
    }
}
