//! `cargo xtask fuzz`: searches the parsers of foreign input, guided by coverage.
//!
//! It needs only the stable toolchain. Kept inputs lie in `tests/fuzz/corpus`, findings in the
//! target folder.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::progress::{Progress, Step};
use crate::workspace::{self, Workspace};

/// The flags of `cargo fuzz` without the sanitizer, which only nightly has.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 --cfg=fuzzing";
/// Longest input, in bytes: longer than every limit except those of whole files.
const LONGEST: u32 = 4096;
/// Time of all targets together in `cargo xtask test`.
const SHORT_SECONDS: usize = 30;
/// Default time of each target in `cargo xtask fuzz`.
const LONG_SECONDS: u64 = 60;

/// What the caller wants searched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    target: Option<String>,
    seconds: u64,
    /// Add inputs that reach new code to the corpus in the repository.
    keep: bool,
}

impl Options {
    pub(crate) fn parse(args: &[OsString]) -> Result<Self> {
        let mut options = Self { target: None, seconds: LONG_SECONDS, keep: false };
        let mut args = args.iter().map(|arg| arg.to_string_lossy());
        while let Some(arg) = args.next() {
            match &*arg {
                "--keep" => options.keep = true,
                "--seconds" => {
                    let number = args.next().and_then(|number| number.parse().ok());
                    options.seconds = number.context("`--seconds` needs a number")?;
                }
                name if !name.starts_with('-') && options.target.is_none() => {
                    options.target = Some(name.to_owned());
                }
                _ => bail!(
                    "`{arg}` is not understood; the command is \
                     `cargo xtask fuzz [TARGET] [--seconds N] [--keep]`"
                ),
            }
        }
        Ok(options)
    }
}

/// Searches the chosen targets for the chosen time.
pub(crate) fn run(
    progress: &Progress,
    workspace: &Workspace,
    options: &Options,
) -> Result<ExitCode> {
    let fuzzer = Fuzzer::build(progress, workspace)?;
    let all = fuzzer.targets()?;
    let chosen: Vec<&String> = all
        .iter()
        .filter(|name| options.target.as_ref().is_none_or(|wanted| wanted == *name))
        .collect();
    if chosen.is_empty() {
        bail!("there is no such target; the targets are {}", all.join(", "));
    }
    let mut failed = Vec::new();
    for name in chosen {
        let output = fuzzer.search(name, options.seconds)?;
        progress.say(format_args!("{name}: {}", output.line()));
        if output.is_finding {
            failed.push(name.as_str());
        } else if options.keep {
            fuzzer.keep(name)?;
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let findings = fuzzer.findings("").display().to_string();
    progress.say(format_args!(
        "FOUND something in {}; the inputs lie in {findings}",
        failed.join(", ")
    ));
    Ok(ExitCode::FAILURE)
}

/// The short search of the tests: every kept input, then half a minute.
///
/// Returns whether nothing was found.
///
/// # Errors
/// The fuzzer cannot be built or started.
pub(crate) fn short(progress: &Progress, workspace: &Workspace) -> Result<bool> {
    let fuzzer = Fuzzer::build(progress, workspace)?;
    let all = fuzzer.targets()?;
    let seconds = u64::try_from(SHORT_SECONDS.div_ceil(all.len().max(1)))?;
    let mut is_clean = true;
    for name in &all {
        let replayed = fuzzer.replay(name)?;
        let output = if replayed.is_finding { replayed } else { fuzzer.brief(name, seconds)? };
        if output.is_finding {
            is_clean = false;
            progress.say(format_args!("failed: fuzz {name}: {}", output.line()));
        }
    }
    Ok(is_clean)
}

/// The reason why this machine cannot run the fuzzer, if there is one.
pub(crate) fn obstacle() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("it is built for Linux only".into());
    }
    let compiler =
        ["c++", "g++", "clang++"].into_iter().any(|name| workspace::on_path(name).is_some());
    (!compiler).then(|| "there is no C++ compiler for the fuzzer's own code".into())
}

struct Fuzzer {
    program: PathBuf,
    corpus: PathBuf,
    work: PathBuf,
}

/// What one run printed.
struct Output {
    is_finding: bool,
    text: String,
}

impl Output {
    /// The line to show: the panic, else how many inputs were tried.
    fn line(&self) -> String {
        let mut lines = self.text.lines();
        let panic = lines.by_ref().find(|line| line.contains(" panicked at "));
        match panic {
            Some(panic) => format!("{panic} {}", lines.next().unwrap_or_default()),
            None => {
                let told = |line: &&str| line.starts_with("Done ") || line.contains("ERROR: ");
                self.text.lines().rfind(told).unwrap_or("it printed nothing").to_owned()
            }
        }
    }
}

impl Fuzzer {
    fn build(progress: &Progress, workspace: &Workspace) -> Result<Self> {
        let target = host(workspace)?;
        let folder = workspace.target.join("fuzz");
        let log = workspace.log("build-fuzz")?;
        let mut build = workspace.cargo(&["build", "--release", "--target", &target]);
        // Its lock file is its own: a change of the workspace need not be repeated there.
        build.arg("--manifest-path").arg(workspace.root.join("tests/fuzz/Cargo.toml"));
        build.arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS);
        build.env_remove("CARGO_TARGET_DIR");
        let step = Step {
            name: "build-fuzz",
            expect: "about 2 min the first time",
            crates: 110,
            log: &log,
        };
        if !progress.step(&step, &mut build)? {
            bail!("the fuzzer does not build, see {}", log.display());
        }
        Ok(Self {
            program: folder.join(target).join("release/svc-fuzz"),
            corpus: workspace.root.join("tests/fuzz/corpus"),
            work: folder.join("work"),
        })
    }

    /// A folder of kept inputs each.
    fn targets(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.corpus)
            .with_context(|| format!("cannot read {}", self.corpus.display()))?;
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }

    fn replay(&self, name: &str) -> Result<Output> {
        let mut command = self.command(name)?;
        command.arg("-runs=0").arg(self.corpus.join(name));
        run_program(&mut command)
    }

    fn search(&self, name: &str, seconds: u64) -> Result<Output> {
        let found = self.work.join(name);
        fs::create_dir_all(&found).context("cannot make a folder for new inputs")?;
        let mut command = self.command(name)?;
        command.arg(format!("-max_total_time={seconds}")).arg(found).arg(self.corpus.join(name));
        run_program(&mut command)
    }

    /// A search with a fixed seed, for the tests.
    ///
    /// It tries the same inputs each time, as far as its time goes: what it finds was caused by
    /// the change under test.
    fn brief(&self, name: &str, seconds: u64) -> Result<Output> {
        let found = self.work.join("brief").join(name);
        let _ = fs::remove_dir_all(&found); // of the last time
        fs::create_dir_all(&found).context("cannot make a folder for new inputs")?;
        let mut command = self.command(name)?;
        command.args([format!("-max_total_time={seconds}"), "-seed=1".into()]);
        command.arg("-runs=3000").arg(found).arg(self.corpus.join(name));
        run_program(&mut command)
    }

    /// Replaces the kept inputs by the smallest set that reaches the same code.
    fn keep(&self, name: &str) -> Result<()> {
        let (kept, next) = (self.corpus.join(name), self.work.join(format!("{name}.next")));
        let _ = fs::remove_dir_all(&next); // left by a merge that was interrupted
        fs::create_dir_all(&next)?;
        let mut command = self.command(name)?;
        command.arg("-merge=1").arg(&next).arg(self.work.join(name)).arg(&kept);
        if run_program(&mut command)?.is_finding {
            bail!("the inputs of {name} could not be merged");
        }
        fs::remove_dir_all(&kept)?;
        copy(&next, &kept)?;
        fs::remove_dir_all(&next)?;
        Ok(())
    }

    fn findings(&self, name: &str) -> PathBuf {
        self.work.join("findings").join(name)
    }

    fn command(&self, name: &str) -> Result<Command> {
        let findings = self.findings(name);
        fs::create_dir_all(&findings).context("cannot make a folder for findings")?;
        let mut command = Command::new(&self.program);
        command.env("SVC_FUZZ_TARGET", name).env("RUST_BACKTRACE", "0");
        command.arg(format!("-artifact_prefix={}/", findings.display()));
        command.args([format!("-max_len={LONGEST}"), "-timeout=20".into()]);
        Ok(command)
    }
}

fn run_program(command: &mut Command) -> Result<Output> {
    let done = command.output().context("cannot run the fuzzer")?;
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    Ok(Output { is_finding: !done.status.success(), text })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)?.filter_map(Result::ok) {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The target triple of this machine.
///
/// Named, so that build scripts and macros are not instrumented.
fn host(workspace: &Workspace) -> Result<String> {
    let out = workspace.command("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc does not tell its host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options> {
        Options::parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_target_and_its_time_come_in_any_order() {
        let options = Options { target: Some("redact".into()), seconds: 5, keep: true };
        assert_eq!(parse(&["--seconds", "5", "redact", "--keep"]).unwrap(), options);
        assert_eq!(parse(&[]).unwrap().seconds, LONG_SECONDS);
        assert!(parse(&["--seconds"]).is_err());
        assert!(parse(&["one", "two"]).is_err());
    }

    #[test]
    fn a_finding_is_told_by_its_panic() {
        let text = "INFO: x\nthread '<unnamed>' (1) panicked at src/a.rs:1:2:\nwhy\nmore\n".into();
        let output = Output { is_finding: true, text };
        assert_eq!(output.line(), "thread '<unnamed>' (1) panicked at src/a.rs:1:2: why");
        let output = Output { is_finding: false, text: "x\nDone 5 runs in 1 second(s)\n".into() };
        assert_eq!(output.line(), "Done 5 runs in 1 second(s)");
    }
}
