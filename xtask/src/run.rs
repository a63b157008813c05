//! `cargo xtask run`: builds everything, then becomes the service.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bootstrap::{self, Page};
use crate::dist;
use crate::progress::{Progress, Step};
use crate::workspace::{self, Workspace};

/// What the caller wants run, before the arguments of the service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    page: Page,
    build: Build,
}

impl Options {
    /// Takes the options at the beginning of `args`.
    pub(crate) fn take(args: &mut Vec<OsString>) -> Self {
        let mut options = Self { page: Page::Wanted, build: Build::Quick };
        loop {
            match args.first().and_then(|first| first.to_str()) {
                Some("--no-web") => options.page = Page::Unwanted,
                Some("--release") => options.build = Build::Release,
                _ => return options,
            }
            args.remove(0);
        }
    }
}

/// Which build of the service is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    /// Built in a third of the time, without optimisation.
    Quick,
    /// The build that is shipped.
    Release,
}

impl Build {
    fn profile(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Release => "release",
        }
    }

    fn of_the_page(self) -> dist::Build {
        match self {
            Self::Quick => dist::Build::Quick,
            Self::Release => dist::Build::Shipped,
        }
    }
}

/// Returns only when the service could not be started.
pub(crate) fn run(
    progress: &Progress,
    workspace: &Workspace,
    options: &Options,
    args: &[OsString],
) -> Result<anyhow::Error> {
    let Options { page, build } = *options;
    match page {
        Page::Unwanted => bootstrap::run(progress, workspace, page)?,
        Page::Wanted => {
            bootstrap::preflight(workspace, page)?;
            let advice = "use `--no-web` to go on without the page";
            let page =
                || dist::build_page(progress, workspace, build.of_the_page()).context(advice);
            if bootstrap::lacks_tools(workspace) {
                // The tools leave a core idle for minutes. With the page only two crates of the
                // service are built again.
                std::thread::scope(|threads| {
                    // May meet a page that is being replaced: only the build below counts.
                    threads.spawn(|| build_service(progress, workspace, build));
                    page()
                })?;
            } else {
                page()?;
            }
        }
    }
    build_service(progress, workspace, build)?;
    let service = workspace.target.join(build.profile()).join("svc");
    let mut command = Command::new(&service);
    workspace::forget_cargo(&mut command);
    let mode = mode(progress, &service, args)?;
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
pub(crate) fn build(progress: &Progress, workspace: &Workspace) -> Result<()> {
    build_service(progress, workspace, Build::Release)
}

fn build_service(progress: &Progress, workspace: &Workspace, build: Build) -> Result<()> {
    let log = workspace.log(&format!("{}-build", build.profile()))?;
    let expect = match build {
        Build::Quick => "about 3 min the first time, then half a minute",
        Build::Release => "release build, about 7 min the first time, then 3",
    };
    let step = Step { name: "service", expect, crates: 300, log: &log };
    let mut cargo = workspace.cargo(&["build", "--locked", "--profile", build.profile()]);
    cargo.args(["-p", "svc-server", "-p", "svc-tests", "--bins"]);
    if !progress.step(&step, &mut cargo)? {
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

/// Asks the service for its configuration, so that there is one search order.
fn mode(progress: &Progress, service: &Path, args: &[OsString]) -> Result<Mode> {
    // Named by the user: then a mistake in the name must be said, not answered with a demo.
    if args.iter().any(names_a_config) {
        return Ok(Mode::Configured("the config named".into()));
    }
    if let Some(file) = workspace::set("SVC_CONFIG") {
        return Ok(Mode::Configured(file.to_string_lossy().into_owned()));
    }
    let mut asked = Command::new(service);
    workspace::forget_cargo(&mut asked);
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
    fn options_before_the_arguments_of_the_service_are_taken() {
        let mut args =
            ["--release", "--no-web", "--port", "9000", "--release"].map(Into::into).into();
        let options = Options::take(&mut args);
        assert_eq!(options, Options { page: Page::Unwanted, build: Build::Release });
        assert_eq!(args, ["--port", "9000", "--release"]);
        let options = Options::take(&mut Vec::new());
        assert_eq!(options, Options { page: Page::Wanted, build: Build::Quick });
    }

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
