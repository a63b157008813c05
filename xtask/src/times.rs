//! `cargo xtask times`: how long the page takes, as a table. Nothing of it can fail a build.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::browser::{self, Browser};
use crate::place::{self, Place};
use crate::progress::Progress;
use crate::{dist, run};

/// Builds page and release, then measures in a browser.
pub(crate) fn run(progress: &Progress, place: &Place) -> Result<ExitCode> {
    dist::run(progress, place)?;
    run::build(progress, place)?;
    let chromium = match browser::bootstrap(progress, place)? {
        Browser::Found(chromium) => chromium,
        Browser::Missing(why) => bail!("{why}"),
    };
    let mut node = place.command("node");
    place::forget_cargo(&mut node);
    node.arg(place.root.join("tests/browser/times.mjs"))
        .env("CHROMIUM", chromium)
        .env("SVC_BROWSER_MODULES", place.modules("browser"))
        .env("SVC_BIN", place.target.join("release/svc"))
        .env("SVC_SIM_BIN", place.target.join("release/svc-agent-sim"));
    progress.say(format_args!("measuring; about ten minutes, best with nothing else running"));
    Ok(if node.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
