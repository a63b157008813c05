//! `cargo xtask run`: builds everything, then becomes the service.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bootstrap::{self, Page};
use crate::dist;
use crate::place::{self, Place};
use crate::progress::{Progress, Step};

/// Returns only when the service could not be started.
pub(crate) fn run(
    progress: &Progress,
    place: &Place,
    page: Page,
    args: &[OsString],
) -> Result<anyhow::Error> {
    match page {
        Page::Wanted => {
            dist::run(progress, place).context("use `--no-web` to go on without the page")?
        }
        Page::Unwanted => bootstrap::run(progress, place, page)?,
    }
    build(progress, place)?;
    let service = place.target.join("release/svc");
    let mut command = Command::new(&service);
    place::forget_cargo(&mut command);
    let mode = mode(progress, place, args)?;
    progress.say(format_args!("{}; Ctrl-C stops it", mode.describe()));
    match mode {
        Mode::Configured(_) => command.arg("run"),
        Mode::Demo => command.arg("demo"),
    };
    // Replaced, not supervised: signals and exit code are the service's own.
    let failure = command.args(args).exec();
    Ok(anyhow::Error::new(failure).context(format!("cannot start {}", service.display())))
}

/// Release build of the service and of the simulator beside it.
pub(crate) fn build(progress: &Progress, place: &Place) -> Result<()> {
    let log = place.log("release-build")?;
    let step = Step {
        name: "service",
        expect: "release build, about 7 min the first time, then 3",
        crates: 300,
        log: &log,
    };
    let args = ["build", "--release", "--locked", "-p", "svc-server", "-p", "svc-tests", "--bins"];
    if !progress.step(&step, &mut place.cargo(&args))? {
        bail!("the service does not build, see {}", log.display());
    }
    Ok(())
}

/// How the service is started.
enum Mode {
    /// A configuration was found, here named in the service's own words.
    Configured(String),
    Demo,
}

impl Mode {
    fn describe(&self) -> String {
        match self {
            Self::Configured(file) => format!("starting `svc run` with {file}"),
            Self::Demo => {
                "no config found: starting `svc demo`, in a temporary tree of its own".into()
            }
        }
    }
}

/// Asks the service itself where its configuration is, so that there is one search order.
fn mode(progress: &Progress, place: &Place, args: &[OsString]) -> Result<Mode> {
    // Named by the user: then a mistake in the name must be said, not answered with a demo.
    if args.iter().any(names_a_config) {
        return Ok(Mode::Configured("the config named".into()));
    }
    if let Some(file) = place::set("SVC_CONFIG") {
        return Ok(Mode::Configured(file.to_string_lossy().into_owned()));
    }
    let mut asked = Command::new(place.target.join("release/svc"));
    place::forget_cargo(&mut asked);
    let answer = asked
        .args(["config", "path"])
        .stdin(Stdio::null())
        .output()
        .context("cannot ask `svc config path`")?;
    if answer.status.success() {
        let text = String::from_utf8_lossy(&answer.stdout);
        let file = text.lines().next().unwrap_or_default().trim().to_string();
        return Ok(Mode::Configured(file));
    }
    for line in String::from_utf8_lossy(&answer.stderr).lines() {
        progress.say(format_args!("{line}"));
    }
    Ok(Mode::Demo)
}

/// `-c PATH`, `-cPATH`, `--config PATH` or `--config=PATH`.
fn names_a_config(arg: &OsString) -> bool {
    let arg = arg.to_string_lossy();
    (arg.starts_with("-c") && !arg.starts_with("--"))
        || arg == "--config"
        || arg.starts_with("--config=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_named_in_any_form_is_never_answered_with_a_demo() {
        for arg in ["-c", "-c/etc/svc.yml", "--config", "--config=svc.yml"] {
            assert!(names_a_config(&arg.into()), "{arg}");
        }
        for arg in ["--port", "9000", "--configure", "/c", "--keep"] {
            assert!(!names_a_config(&arg.into()), "{arg}");
        }
    }
}
