//! Finds or installs Chromium and its driver, for the browser tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::bootstrap;
use crate::pins;
use crate::progress::{Progress, Step};
use crate::stop::Stop;
use crate::workspace::{self, Workspace};

/// Program names of Chromium in common distributions.
const PROGRAMS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// Whether tests in a browser are possible here.
pub(crate) enum Browser {
    Found(PathBuf),
    /// With what the user can do.
    Missing(String),
}

/// Installs Chromium where root and apt allow it, and the driver.
pub(crate) fn bootstrap(progress: &Progress, workspace: &Workspace) -> Result<Browser> {
    let chromium = match chromium()? {
        Some(found) => found,
        None => {
            let _turn = bootstrap::turn(progress, workspace)?;
            bootstrap::debian(progress, workspace, "chromium")?;
            match chromium()? {
                Some(found) => found,
                None => {
                    return Ok(Browser::Missing(
                        "no Chromium; install one, or set CHROMIUM to its program".into(),
                    ));
                }
            }
        }
    };
    driver(progress, workspace)?;
    Ok(Browser::Found(chromium))
}

/// `$CHROMIUM`, else the first known name on `PATH`.
pub(crate) fn chromium() -> Result<Option<PathBuf>> {
    if let Some(chosen) = workspace::set("CHROMIUM") {
        let chosen = PathBuf::from(chosen);
        if !workspace::is_program(&chosen) {
            return Err(Stop::prerequisite(format!(
                "CHROMIUM names {}, which is not a program; correct or unset it",
                chosen.display()
            )));
        }
        return Ok(Some(chosen));
    }
    Ok(PROGRAMS.iter().find_map(|name| workspace::on_path(name)))
}

/// The driver's version as npm installed it.
pub(crate) fn driver_version(workspace: &Workspace) -> Option<String> {
    let file = workspace.modules("browser").join("puppeteer-core/package.json");
    let text = fs::read_to_string(file).ok()?;
    let (_, after) = text.split_once("\"version\":")?;
    after.split('"').nth(1).map(ToString::to_string)
}

/// Installs the driver by the committed lock file, whose hashes npm checks.
fn driver(progress: &Progress, workspace: &Workspace) -> Result<()> {
    let wanted = workspace.root.join("tests/browser");
    let folder = workspace.tools.join("browser");
    let same = |name| match (fs::read(wanted.join(name)), fs::read(folder.join(name))) {
        (Ok(wanted), Ok(there)) => wanted == there,
        _ => false,
    };
    let is_present = || driver_version(workspace).as_deref() == Some(pins::PUPPETEER);
    if is_present() && same("package-lock.json") {
        return Ok(());
    }
    let _turn = bootstrap::turn(progress, workspace)?;
    fs::create_dir_all(&folder).context("cannot create a folder for the browser driver")?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(wanted.join(name), folder.join(name))
            .with_context(|| format!("cannot copy tests/browser/{name}"))?;
    }
    let log = workspace.log("install-browser-driver")?;
    let step = Step { name: "browser driver", expect: "a few seconds", crates: 0, log: &log };
    let mut npm = workspace.command("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&folder);
    npm.current_dir(&folder);
    if progress.step(&step, &mut npm)? && is_present() {
        return Ok(());
    }
    Err(Stop::unreachable(format!(
        "the browser driver could not be installed by npm, see {}; `cargo xtask test --fast` goes \
         on without a browser",
        log.display()
    )))
}

/// The browser tests: `tests/browser/*.test.mjs`.
///
/// Other files there are their helpers.
pub(crate) fn files(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let folder = workspace.root.join("tests/browser");
    let is_test = |path: &Path| path.to_string_lossy().ends_with(".test.mjs");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| is_test(path))
        .collect();
    files.sort();
    Ok(files)
}
