//! `cargo xtask redaction`: judges redaction beside two other scanners.
//!
//! The corpus is generated from a fixed seed. A scanner that cannot be installed is left out, and
//! the command says so; the table of the documentation is written only with both.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bootstrap;
use crate::progress::{Progress, Step};
use crate::workspace::Workspace;

/// The scanners, each with how it is installed and asked.
const SCANNERS: [Scanner; 2] = [
    Scanner { name: "secretlint", install: npm, ask: secretlint },
    Scanner { name: "detect-secrets", install: pip, ask: detect_secrets },
];

struct Scanner {
    name: &'static str,
    /// The steps that install it into a folder.
    install: fn(&Workspace, &Path) -> Vec<Command>,
    /// The command that judges the corpus in its working directory.
    ask: fn(&Workspace, &Path) -> Command,
}

/// Judges, measures and prints.
pub(crate) fn run(progress: &Progress, workspace: &Workspace) -> Result<ExitCode> {
    let judge = build(progress, workspace)?;
    let dir = workspace.target.join("redaction");
    // What an earlier run found must not be taken for an answer of this one.
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).context("cannot create a folder for the corpus")?;
    done(workspace.command(&judge.to_string_lossy()).arg("write").arg(&dir))?;
    for scanner in &SCANNERS {
        match installed(progress, workspace, scanner)? {
            Some(folder) => ask(workspace, scanner, &folder, &dir)?,
            None => progress.say(format_args!(
                "{} cannot be installed here, see its log; it is left out",
                scanner.name
            )),
        }
    }
    let note = workspace.root.join("docs/security.md");
    done(workspace.command(&judge.to_string_lossy()).arg("judge").arg(&dir).arg(note))?;
    progress.say(format_args!("measuring the speed"));
    done(workspace.command(&judge.to_string_lossy()).arg("speed"))?;
    Ok(ExitCode::SUCCESS)
}

fn build(progress: &Progress, workspace: &Workspace) -> Result<PathBuf> {
    let log = workspace.log("redaction-build")?;
    let step = Step { name: "redaction", expect: "half a minute", crates: 20, log: &log };
    let what = ["build", "--locked", "--release", "-p", "svc-domain", "--example", "redaction"];
    if !progress.step(&step, &mut workspace.cargo(&what))? {
        bail!("the judge does not build, see {}", log.display());
    }
    Ok(workspace.target.join("release/examples/redaction"))
}

/// The folder of the scanner, or nothing where it cannot be had.
fn installed(
    progress: &Progress,
    workspace: &Workspace,
    scanner: &Scanner,
) -> Result<Option<PathBuf>> {
    let folder = workspace.tools.join("scanners").join(scanner.name);
    let wanted = wanted(workspace)?;
    let mark = folder.join("installed");
    if fs::read(&mark).is_ok_and(|there| there == wanted) {
        return Ok(Some(folder));
    }
    let _turn = bootstrap::turn(progress, workspace)?;
    let _ = fs::remove_dir_all(&folder); // half of it may be there
    fs::create_dir_all(&folder).context("cannot create a folder for a scanner")?;
    let name = format!("install-{}", scanner.name);
    let log = workspace.log(&name)?;
    for mut command in (scanner.install)(workspace, &folder) {
        let step = Step { name: scanner.name, expect: "half a minute", crates: 0, log: &log };
        // A program that is not there at all is no other answer.
        if !progress.step(&step, command.current_dir(&folder)).unwrap_or(false) {
            return Ok(None);
        }
    }
    fs::write(mark, wanted)?;
    Ok(Some(folder))
}

/// What is to be installed: the files that pin the versions.
fn wanted(workspace: &Workspace) -> Result<Vec<u8>> {
    let folder = workspace.root.join("tests/scanners");
    let mut all = Vec::new();
    for name in ["package-lock.json", "requirements.txt"] {
        all.extend(fs::read(folder.join(name)).with_context(|| format!("cannot read {name}"))?);
    }
    Ok(all)
}

fn ask(workspace: &Workspace, scanner: &Scanner, folder: &Path, dir: &Path) -> Result<()> {
    let answer = File::create(dir.join(format!("{}.json", scanner.name)))?;
    let log = File::create(workspace.log(&format!("scan-{}", scanner.name))?)?;
    let mut command = (scanner.ask)(workspace, folder);
    // Both end with 1 when they found something; whether the answer is whole is seen in it.
    command.current_dir(dir).stdin(Stdio::null()).stdout(answer).stderr(log).status()?;
    Ok(())
}

fn npm(workspace: &Workspace, folder: &Path) -> Vec<Command> {
    let from = workspace.root.join("tests/scanners");
    for name in ["package.json", "package-lock.json"] {
        let _ = fs::copy(from.join(name), folder.join(name)); // npm says what is missing
    }
    let mut npm = workspace.command("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    vec![npm]
}

fn pip(workspace: &Workspace, folder: &Path) -> Vec<Command> {
    let mut venv = workspace.command("python3");
    venv.args(["-m", "venv", "--clear"]).arg(folder.join("python"));
    let mut pip = workspace.command(&folder.join("python/bin/pip").to_string_lossy());
    pip.args(["install", "--no-deps", "--quiet", "--disable-pip-version-check", "-r"]);
    pip.arg(workspace.root.join("tests/scanners/requirements.txt"));
    vec![venv, pip]
}

fn secretlint(workspace: &Workspace, folder: &Path) -> Command {
    let mut command = workspace.command("node");
    command.arg(folder.join("node_modules/secretlint/bin/secretlint.js"));
    command.args(["--format", "json", "--secretlintrc"]);
    command.arg(workspace.root.join("tests/scanners/.secretlintrc.json"));
    command.args(["planted.txt", "harmless.txt"]);
    command
}

fn detect_secrets(workspace: &Workspace, folder: &Path) -> Command {
    let mut command =
        workspace.command(&folder.join("python/bin/detect-secrets").to_string_lossy());
    command.args(["scan", "--all-files", "--no-verify", "planted.txt", "harmless.txt"]);
    command
}

fn done(command: &mut Command) -> Result<()> {
    if !command.status()?.success() {
        bail!("the judge failed");
    }
    Ok(())
}
