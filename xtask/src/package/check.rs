//! `--check`: the packages that lie there are unpacked, installed and used.
//!
//! `--twice`: the same commit is built again elsewhere, and every byte is compared.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::{STATIC, tree};
use crate::progress::{Progress, Step};
use crate::stop::Stop;
use crate::workspace::Workspace;

/// Runs `tests/packages` against a folder of packages.
pub(super) fn run(progress: &Progress, workspace: &Workspace, out: &Path) -> Result<()> {
    if !out.join("SHA256SUMS").is_file() {
        let advice = "run `cargo xtask package` first, or name their folder with --out DIR";
        return Err(Stop::prerequisite(format!("no packages in {}; {advice}", out.display())));
    }
    if !rustix::process::getuid().is_root() {
        return Err(Stop::prerequisite(
            "the checks enter roots of their own, which only root may; run this as root",
        ));
    }
    let tools = workspace.tools.with_file_name("packages");
    let log = workspace.log("package-tools")?;
    let step = Step { name: "tools", expect: "2 min the first time", crates: 0, log: &log };
    let mut prepare = workspace.command(".ci/packages");
    if !progress.step(&step, prepare.current_dir(&workspace.root).arg(&tools))? {
        return Err(Stop::unreachable(format!("the tools are missing, see {}", log.display())));
    }
    let log = workspace.log("package-simulator")?;
    let step = Step { name: "simulator", expect: "1 min the first time", crates: 60, log: &log };
    let mut build = workspace.cargo(&["build", "--locked", "-p", "svc-tests", "--target", STATIC]);
    if !progress.step(&step, build.args(["--bin", "svc-agent-sim"]))? {
        bail!("the simulator does not build, see {}", log.display());
    }
    let simulator = workspace.target.join(STATIC).join("debug/svc-agent-sim");
    let mut tests = workspace.cargo(&["test", "--locked", "-p", "svc-tests", "--test", "packages"]);
    tests.env("SVC_PACKAGES", out).env("SVC_STATIC_SIM", simulator);
    ensure!(tests.env("SVC_PACKAGE_TOOLS", tools).status()?.success(), "the packages are not good");
    Ok(())
}

/// Builds the commit again in another folder and compares the packages.
pub(super) fn again(
    progress: &Progress,
    workspace: &Workspace,
    out: &Path,
    args: &[OsString],
) -> Result<()> {
    let elsewhere = Elsewhere::clone(workspace)?;
    let second = elsewhere.folder.join("packages");
    progress.say(format_args!("the same commit again, in {}", elsewhere.folder.display()));
    let mut package = workspace.cargo(&["xtask", "package"]);
    package.current_dir(elsewhere.folder.join("svc")).args(args);
    package.arg("--out").arg(&second);
    package.env("CARGO_TARGET_DIR", elsewhere.folder.join("output"));
    ensure!(package.status()?.success(), "the second build failed");
    let differing = compare(out, &second)?;
    if differing.is_empty() {
        progress.say(format_args!("both builds are equal, byte for byte"));
        return Ok(());
    }
    // What differs is worth a look.
    let kept = workspace.target.join("package-again");
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    fs::rename(&second, &kept)
        .or_else(|_| {
            let mut copy = Command::new("cp");
            copy.arg("-r").arg(&second).arg(&kept).status().map(drop)
        })
        .context("cannot keep the second build")?;
    bail!("two builds differ: {}; the second is in {}", differing.join(", "), kept.display());
}

/// Names of the files that only one folder has, or that differ.
fn compare(one: &Path, other: &Path) -> Result<Vec<String>> {
    let mut differing = Vec::new();
    for (here, there) in [(one, other), (other, one)] {
        for entry in fs::read_dir(here)? {
            let name = entry?.file_name();
            let digest = |folder: &Path| fs::read(folder.join(&name)).map(|all| tree::digest(&all));
            // A signature tells its time.
            let is_told = name == "SHA256SUMS.asc";
            if !is_told && digest(here)? != digest(there).unwrap_or_default() {
                differing.push(name.to_string_lossy().into_owned());
            }
        }
    }
    differing.sort();
    differing.dedup();
    Ok(differing)
}

/// A clone of the commit that goes away with its owner.
struct Elsewhere {
    folder: PathBuf,
}

impl Elsewhere {
    fn clone(workspace: &Workspace) -> Result<Self> {
        let changed = workspace.command("git").args(["status", "--porcelain"]).output()?;
        if !changed.stdout.is_empty() {
            return Err(Stop::prerequisite("only what is committed can be built twice"));
        }
        // The length of its path is another one, too.
        let name = format!("svc-package-again-{}", std::process::id());
        let elsewhere = Self { folder: std::env::temp_dir().join(name) };
        fs::create_dir(&elsewhere.folder)?;
        let mut clone = workspace.command("git");
        clone.args(["clone", "--quiet"]).arg(&workspace.root).arg(elsewhere.folder.join("svc"));
        ensure!(clone.status()?.success(), "git did not clone the checkout");
        Ok(elsewhere)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder); // nothing more can be done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h141_a_difference_of_two_builds_is_named() {
        let folder = std::env::temp_dir().join(format!("xtask-compare-{}", std::process::id()));
        let [one, other] = ["one", "other"].map(|name| folder.join(name));
        for (dir, name, text) in [
            (&one, "same", "a"),
            (&other, "same", "a"),
            (&one, "differs", "a"),
            (&other, "differs", "b"),
            (&other, "alone", "a"),
            (&one, "SHA256SUMS.asc", "a"),
        ] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join(name), text).unwrap();
        }
        let differing = compare(&one, &other).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(differing, ["alone", "differs"]);
    }
}
