//! The folders of a run, and the environment of its commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result};

use crate::pins;

/// Folders of this run. Nothing here is created before it is needed.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// The checkout.
    pub(crate) root: PathBuf,
    /// Tools of exactly the pinned versions.
    ///
    /// Outside the checkout, so that a fresh clone has them.
    pub(crate) tools: PathBuf,
    /// Cargo's output.
    pub(crate) target: PathBuf,
    /// `CI=true`: nobody is there to read about a skipped test.
    pub(crate) ci: bool,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the task runner must lie in a folder of the checkout")?
            .to_path_buf();
        let kept = match set("SVC_TOOLS_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => cache()?.join("svc-tools"),
        };
        let ci = set("CI").is_some_and(|value| value != "false" && value != "0");
        let target = match set("CARGO_TARGET_DIR") {
            Some(dir) => root.join(dir),
            // A fresh clone per run: compiled dependencies survive beside the tools.
            None if ci => kept.join("target"),
            None => root.join("target"),
        };
        Ok(Self { tools: kept.join(pins::folder_name()), root, target, ci })
    }

    /// The log file of one step. Creates its folder.
    pub(crate) fn log(&self, step: &str) -> Result<PathBuf> {
        let folder = self.target.join("xtask").join("log");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create the log folder {}", folder.display()))?;
        Ok(folder.join(format!("{step}.log")))
    }

    /// The packages that npm put there: `binaryen` or the browser driver.
    pub(crate) fn modules(&self, set: &str) -> PathBuf {
        self.tools.join(set).join("node_modules")
    }

    /// The folder of the program that replaces a tool that could not be installed.
    pub(crate) fn stand_in(&self) -> PathBuf {
        self.tools.join("stand-in")
    }

    /// A command in the checkout that finds our tools before any other.
    pub(crate) fn command(&self, program: &str) -> Command {
        let path = self.path();
        // Looked up by us: the child's `PATH` is not the one `Command` searches everywhere.
        let mut command = Command::new(find(program, &path).unwrap_or_else(|| program.into()));
        command.current_dir(&self.root).env("PATH", path).env("CARGO_TARGET_DIR", &self.target);
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        forget_cargo(&mut command);
        if self.ci {
            // Never used twice in a fresh clone, and large.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// `cargo` with the workspace's lock file respected.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut command = self.command("cargo");
        command.args(args).env("CARGO_TERM_COLOR", "never");
        command
    }

    /// The `PATH` of children.
    ///
    /// Trunk takes the first tool on it and no other, so the folder of the replacement comes last
    /// and never hides the real tool.
    fn path(&self) -> OsString {
        let inherited = env::var_os("PATH").unwrap_or_default();
        let parts = [self.tools.join("bin"), self.modules("npm").join(".bin")]
            .into_iter()
            .chain(env::split_paths(&inherited))
            .chain([self.stand_in()]);
        env::join_paths(parts).unwrap_or(inherited)
    }
}

/// Does the same with each, one thread each, and tells of the first that failed.
pub(crate) fn at_once<T: Sync>(all: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let work = &work;
    std::thread::scope(|threads| {
        let running: Vec<_> = all.iter().map(|one| threads.spawn(move || work(one))).collect();
        running.into_iter().try_for_each(|one| match one.join() {
            Ok(result) => result,
            Err(_) => Err(anyhow::anyhow!("a thread of the task runner stopped unexpectedly")),
        })
    })
}

/// Removes the variables that the calling cargo set for this package only.
pub(crate) fn forget_cargo(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
}

/// First executable file of that name on `path`.
fn find(program: &str, path: &OsString) -> Option<PathBuf> {
    env::split_paths(path).map(|dir| dir.join(program)).find(|file| is_program(file))
}

/// First program of that name on the `PATH` of this process.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    find(program, &env::var_os("PATH").unwrap_or_default())
}

/// A file that may be executed by somebody.
pub(crate) fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// An environment variable that is set to something.
pub(crate) fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn cache() -> Result<PathBuf> {
    if let Some(dir) = set("XDG_CACHE_HOME") {
        return Ok(PathBuf::from(dir));
    }
    let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Ok(home
        .context("no home folder is known; set SVC_TOOLS_DIR to a folder for the tools")?
        .join(".cache"))
}
