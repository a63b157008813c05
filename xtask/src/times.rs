//! `cargo xtask times`: prints how long the page takes. No time fails a build.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::browser::{self, Browser};
use crate::progress::Progress;
use crate::workspace::{self, Workspace};
use crate::{dist, run};

/// Builds page and release, then measures in a browser.
pub(crate) fn run(progress: &Progress, workspace: &Workspace) -> Result<ExitCode> {
    dist::run(progress, workspace)?;
    run::build(progress, workspace)?;
    let chromium = match browser::bootstrap(progress, workspace)? {
        Browser::Found(chromium) => chromium,
        Browser::Missing(why) => bail!("{why}"),
    };
    let mut node = workspace.command("node");
    workspace::forget_cargo(&mut node);
    node.arg(workspace.root.join("tests/browser/times.mjs"))
        .env("CHROMIUM", chromium)
        .env("SVC_BROWSER_MODULES", workspace.modules("browser"))
        .env("SVC_BIN", workspace.target.join("release/svc"))
        .env("SVC_SIM_BIN", workspace.target.join("release/svc-agent-sim"));
    progress.say(format_args!("measuring; about ten minutes, best with nothing else running"));
    Ok(if node.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
