//! Installs missing tools, and leaves the others alone.
//!
//! A tool counts as present only when it answers with exactly the pinned version, so an
//! interrupted installation is simply done again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::pins;
use crate::progress::{Progress, Step};
use crate::stop::Stop;
use crate::workspace::{self, Workspace};

/// Whether the page is built too, and its tools are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// The tools of the page are installed.
    Wanted,
    /// `--no-web`: the service answers on `/` how to build it.
    Unwanted,
}

/// Free space a first build needs.
///
/// 4.2 GB were seen for debug, release and wasm together.
const FIRST_BUILD_GB: u64 = 8;
/// Free space needed where everything was built before.
const NEXT_BUILD_GB: u64 = 1;

/// A tool that is compiled from the registry.
struct Compiled {
    name: &'static str,
    version: &'static str,
    expect: &'static str,
    crates: usize,
    origin: Origin,
}

enum Origin {
    /// A crate of the registry with its own lock file.
    Registry,
    /// A package of this checkout.
    Checkout(&'static str),
}

const TRUNK: Compiled = Compiled {
    name: "trunk",
    version: pins::TRUNK,
    expect: "about 4 min",
    crates: 370,
    origin: Origin::Registry,
};
const WASM_BINDGEN: Compiled = Compiled {
    name: "wasm-bindgen",
    version: pins::WASM_BINDGEN,
    expect: "under a minute",
    crates: 45,
    origin: Origin::Checkout("tools/wasm-bindgen"),
};
const CARGO_DENY: Compiled = Compiled {
    name: "cargo-deny",
    version: pins::CARGO_DENY,
    expect: "about 2 min",
    crates: 190,
    origin: Origin::Registry,
};

const CARGO_SBOM: Compiled = Compiled {
    name: "cargo-sbom",
    version: pins::CARGO_SBOM,
    expect: "about 2 min",
    crates: 110,
    origin: Origin::Registry,
};

/// Checks the machine, then installs what building the page needs.
pub(crate) fn run(progress: &Progress, workspace: &Workspace, page: Page) -> Result<()> {
    preflight(workspace, page)?;
    if page == Page::Unwanted {
        return Ok(());
    }
    let _turn = turn(progress, workspace)?;
    wasm_target(progress, workspace)?;
    compiled(progress, workspace, &[&TRUNK, &WASM_BINDGEN])?;
    wasm_opt(progress, workspace)
}

/// Whether a tool of the page is missing, so that [`run`] would take minutes.
pub(crate) fn lacks_tools(workspace: &Workspace) -> bool {
    [&TRUNK, &WASM_BINDGEN].iter().any(|tool| !is_present(workspace, tool))
}

/// Installs what only the checks need, after [`run`].
pub(crate) fn licence_check(progress: &Progress, workspace: &Workspace) -> Result<()> {
    let _turn = turn(progress, workspace)?;
    compiled(progress, workspace, &[&CARGO_DENY])
}

/// Installs what lists the contents of a release.
pub(crate) fn inventory(progress: &Progress, workspace: &Workspace) -> Result<()> {
    let _turn = turn(progress, workspace)?;
    compiled(progress, workspace, &[&CARGO_SBOM])
}

/// Whether `cargo deny` is there without installing it.
pub(crate) fn has_licence_check(workspace: &Workspace) -> bool {
    is_present(workspace, &CARGO_DENY)
}

/// Makes two callers wait for each other instead of installing over each other.
pub(crate) fn turn(progress: &Progress, workspace: &Workspace) -> Result<File> {
    fs::create_dir_all(&workspace.tools)
        .with_context(|| format!("cannot create the tools folder {}", workspace.tools.display()))?;
    exclusive(progress, &workspace.tools.join("lock"))
}

/// Holds the lock on `path` for as long as the answer lives.
pub(crate) fn exclusive(progress: &Progress, path: &Path) -> Result<File> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot open the lock {}", path.display()))?;
    if file.try_lock().is_err() {
        progress
            .say(format_args!("another task runner is at work; waiting for {}", path.display()));
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// Refuses a machine that lacks what only its owner can install.
pub(crate) fn preflight(workspace: &Workspace, page: Page) -> Result<()> {
    let (major, minor) = pins::RUSTC_AT_LEAST;
    match output(workspace, "rustc", &["--version"]).as_deref().and_then(rustc_version) {
        Some(found) if found >= pins::RUSTC_AT_LEAST => {}
        Some((a, b)) => {
            return Err(Stop::prerequisite(format!(
                "rustc {a}.{b} is too old, {major}.{minor} is needed; run `rustup update stable`"
            )));
        }
        None => {
            return Err(Stop::prerequisite("rustc is missing; install it from https://rustup.rs"));
        }
    }
    if output(workspace, "cc", &["--version"]).is_none() {
        return Err(Stop::prerequisite(
            "no C compiler `cc`; install one (Debian: `apt-get install gcc libc6-dev`)",
        ));
    }
    let built = ["release", "quick"].iter().any(|kind| workspace.target.join(kind).is_dir());
    let first = !built || (page == Page::Wanted && !is_present(workspace, &TRUNK));
    let needed = if first { FIRST_BUILD_GB } else { NEXT_BUILD_GB };
    match free_gb(&workspace.root) {
        Some(free) if free < needed => Err(Stop::prerequisite(format!(
            "only {free} GB are free at {}, {needed} GB are needed; make room or set CARGO_TARGET_DIR",
            workspace.root.display()
        ))),
        Some(_) | None => Ok(()), // what cannot be asked is not refused
    }
}

/// `rustc 1.95.0 (…)` → `(1, 95)`.
pub(crate) fn rustc_version(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line.split_whitespace().nth(1)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Free space where `path` lies, in GB of 10^9 bytes.
pub(crate) fn free_gb(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize) / 1_000_000_000)
}

/// Where the compiler keeps a target, whether or not it is installed.
fn target_folder(workspace: &Workspace, target: &str) -> Option<PathBuf> {
    let sysroot = output(workspace, "rustc", &["--print", "sysroot"])?;
    Some(PathBuf::from(sysroot.trim()).join("lib/rustlib").join(target).join("lib"))
}

/// Where the compiler keeps the target of the page.
pub(crate) fn wasm_target_folder(workspace: &Workspace) -> Option<PathBuf> {
    target_folder(workspace, pins::WASM_TARGET)
}

fn wasm_target(progress: &Progress, workspace: &Workspace) -> Result<()> {
    let advice = "without it the page cannot be built: `cargo xtask run --no-web` goes on without";
    target(progress, workspace, pins::WASM_TARGET, advice)
}

/// What the compiler needs to check the service for macOS.
pub(crate) fn macos_target(progress: &Progress, workspace: &Workspace) -> Result<()> {
    let advice = "without it only `cargo xtask test --fast` can be run";
    target(progress, workspace, pins::MACOS_TARGET, advice)
}

fn target(
    progress: &Progress,
    workspace: &Workspace,
    target: &'static str,
    advice: &str,
) -> Result<()> {
    if target_folder(workspace, target).is_some_and(|folder| folder.is_dir()) {
        return Ok(());
    }
    let log = workspace.log(&format!("target-{target}"))?;
    let step = Step { name: target, expect: "a few seconds", crates: 0, log: &log };
    let mut add = workspace.command("rustup");
    add.args(["target", "add", target]);
    match progress.step(&step, &mut add) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Stop::unreachable(format!(
            "`rustup target add {target}` failed, see {}; {advice}",
            log.display()
        ))),
        Err(error) => Err(Stop::unreachable(format!(
            "the compiler has no target {target} and rustup did not start ({error:#}); install \
             rustup or your distribution's package of that target; {advice}"
        ))),
    }
}

/// Installs the missing tools at the same time: one alone leaves a core idle.
fn compiled(progress: &Progress, workspace: &Workspace, wanted: &[&Compiled]) -> Result<()> {
    let missing: Vec<_> = wanted.iter().filter(|tool| !is_present(workspace, tool)).collect();
    workspace::at_once(&missing, |tool| compile(progress, workspace, tool))
}

fn compile(progress: &Progress, workspace: &Workspace, tool: &Compiled) -> Result<()> {
    let log = workspace.log(&format!("install-{}", tool.name))?;
    let step = Step { name: tool.name, expect: tool.expect, crates: tool.crates, log: &log };
    let build = workspace.tools.join("build").join(tool.name);
    let mut done = progress.step(&step, &mut install(workspace, tool, &build, Lock::Kept))?;
    if !done && is_refused_lock(&crate::progress::read(&log)) {
        progress.say(format_args!(
            "warning: the registry lacks a version of {}'s lock file; once more without it",
            tool.name
        ));
        done = progress.step(&step, &mut install(workspace, tool, &build, Lock::Dropped))?;
    }
    // Only for speed of a second try; 1 GB otherwise stays for ever.
    let _ = fs::remove_dir_all(&build); // left-overs do no harm
    if done && is_present(workspace, tool) {
        return Ok(());
    }
    Err(Stop::unreachable(format!(
        "{} {} could not be installed, see {}; check that cargo reaches its registry and run this \
         again",
        tool.name,
        tool.version,
        log.display()
    )))
}

/// Whether the tool's own lock file decides its dependencies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Kept,
    Dropped,
}

fn install(workspace: &Workspace, tool: &Compiled, build: &Path, lock: Lock) -> Command {
    let mut install = workspace.cargo(&["install"]);
    match tool.origin {
        // Their own profile is fat LTO: 7 min instead of 3, for tools that hardly compute.
        // Default features would bring TLS for downloads that are not wanted.
        Origin::Registry => install
            .args([tool.name, "--no-default-features", "--version"])
            .arg(format!("={}", tool.version))
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256")
            .env("CARGO_PROFILE_RELEASE_STRIP", "true"),
        Origin::Checkout(path) => install.args(["--path", path]),
    };
    if lock == Lock::Kept {
        install.arg("--locked");
    }
    install.arg("--root").arg(&workspace.tools).env("CARGO_TARGET_DIR", build);
    install
}

/// Whether an installation failed because the resolver cannot follow the lock file.
fn is_refused_lock(log: &str) -> bool {
    ["failed to select a version", "is yanked", "needs to be updated but --locked"]
        .iter()
        .any(|sign| log.contains(sign))
}

fn is_present(workspace: &Workspace, tool: &Compiled) -> bool {
    found(workspace, tool.name).as_deref() == Some(tool.version)
}

/// The version a tool in our folder answers with.
pub(crate) fn found(workspace: &Workspace, name: &str) -> Option<String> {
    let program = workspace.tools.join("bin").join(name);
    // `cargo-deny` reads its first argument as cargo's subcommand only when it is `deny`.
    let text = output(workspace, program.to_str()?, &["--version"])?;
    text.split_whitespace().nth(1).map(ToString::to_string)
}

/// wasm-opt makes the module 9 % smaller: wanted, but nothing fails without it.
fn wasm_opt(progress: &Progress, workspace: &Workspace) -> Result<()> {
    if wasm_opt_version(workspace).is_some() {
        return Ok(());
    }
    let log = workspace.log("install-wasm-opt")?;
    let step = Step { name: "wasm-opt", expect: "a few seconds", crates: 0, log: &log };
    let mut npm = workspace.command("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(workspace.tools.join("npm"))
        .arg(format!("binaryen@{}", pins::BINARYEN));
    let installed = progress.step(&step, &mut npm).unwrap_or_else(|error| {
        progress.say(format_args!("npm did not start: {error:#}"));
        false
    });
    if installed && wasm_opt_version(workspace).is_some() {
        return Ok(());
    }
    if workspace::on_path("wasm-opt").is_some() || debian(progress, workspace, "binaryen")? {
        return Ok(());
    }
    progress.say(format_args!(
        "warning: no wasm-opt; the page works but is larger. Install Node {} or newer with npm, or \
         your distribution's `binaryen`, and run this again",
        pins::NODE_AT_LEAST
    ));
    write_stand_in(&workspace.stand_in())
}

/// The version of the wasm-opt that npm installed for us, if it runs.
pub(crate) fn wasm_opt_version(workspace: &Workspace) -> Option<String> {
    let program = workspace.modules("npm").join(".bin/wasm-opt");
    let text = output(workspace, program.to_str()?, &["--version"])?;
    let major = pins::BINARYEN.split('.').next()?;
    text.contains(&format!("version_{major}")).then(|| text.trim().to_string())
}

/// A program that answers like wasm-opt and copies.
///
/// Trunk would otherwise try to download one.
fn write_stand_in(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    const SCRIPT: &str = "#!/bin/sh\n\
        [ \"$1\" = --version ] && echo 'wasm-opt version 0 (stand-in)' && exit\n\
        for a; do case $a in --output=*) o=${a#--output=};; -o) n=1;; -*) ;; *) \
        if [ \"$n\" ]; then o=$a; n=; else i=$a; fi;; esac; done; cp \"$i\" \"$o\"\n";
    let file = folder.join("wasm-opt");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&file, SCRIPT))
        .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Installs a Debian package where that is possible: as root, with apt.
///
/// `Ok(false)`: it is not.
pub(crate) fn debian(progress: &Progress, workspace: &Workspace, package: &str) -> Result<bool> {
    if workspace::on_path("apt-get").is_none() {
        return Ok(false);
    }
    if !rustix::process::geteuid().is_root() {
        progress.say(format_args!(
            "`{package}` needs root: run `apt-get install --no-install-recommends {package}`"
        ));
        return Ok(false);
    }
    let log = workspace.log(&format!("apt-{package}"))?;
    let step = Step { name: package, expect: "under a minute (apt-get)", crates: 0, log: &log };
    let mut apt = workspace.command("sh");
    apt.env("DEBIAN_FRONTEND", "noninteractive").args([
        "-c",
        "apt-get update -q && apt-get install -q -y --no-install-recommends \"$0\"",
        package,
    ]);
    progress.step(&step, &mut apt)
}

/// Standard output of a tool that ended well.
pub(crate) fn output(workspace: &Workspace, program: &str, args: &[&str]) -> Option<String> {
    let out = workspace.command(program).args(args).stdin(Stdio::null()).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_versions_are_read_with_and_without_suffix() {
        assert_eq!(rustc_version("rustc 1.95.0 (59807616e 2026-04-14)"), Some((1, 95)));
        assert_eq!(rustc_version("rustc 2.0.0-nightly"), Some((2, 0)));
        assert_eq!(rustc_version("rustc"), None);
        assert_eq!(rustc_version("clang version x.y"), None);
    }

    #[test]
    fn only_a_refused_lock_file_is_tried_again_without_it() {
        assert!(is_refused_lock(
            "error: failed to select a version for the requirement `a = \"=1\"`"
        ));
        assert!(!is_refused_lock("error[E0425]: cannot find value `x` in this scope"));
        assert!(!is_refused_lock("error: failed to download from registry"));
    }

    #[test]
    fn the_stand_in_copies_and_never_counts_as_the_real_one() {
        let folder = std::env::temp_dir().join(format!("xtask-stand-in-{}", std::process::id()));
        write_stand_in(&folder).unwrap();
        let program = folder.join("wasm-opt");
        let answer = Command::new(&program).arg("--version").output().unwrap();
        let answer = String::from_utf8(answer.stdout).unwrap();
        // The form trunk parses.
        assert!(answer.starts_with("wasm-opt version 0 "), "{answer}");
        let (from, to) = (folder.join("in.wasm"), folder.join("out.wasm"));
        fs::write(&from, b"module").unwrap();
        for args in [
            vec![format!("--output={}", to.display()), "-Oz".into(), from.display().to_string()],
            vec!["-Oz".into(), from.display().to_string(), "-o".into(), to.display().to_string()],
        ] {
            assert!(Command::new(&program).args(&args).status().unwrap().success(), "{args:?}");
            assert_eq!(fs::read(&to).unwrap(), b"module", "{args:?}");
            fs::remove_file(&to).unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
