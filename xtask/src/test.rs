//! `cargo xtask test`: every check and every test, the cheap ones first.
//!
//! A failed check does not end the run, so one run shows everything that is wrong; only what
//! later steps stand on does (the page, the programs under test).

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::bootstrap::{self, Page};
use crate::browser::{self, Browser};
use crate::progress::{self, Progress, Step};
use crate::skips::{self, Skip};
use crate::tally::{self, Tally};
use crate::workspace::{self, Workspace};
use crate::{dist, endurance, fuzz, pins, rows, run, smoke};

/// Packages with code of their own for macOS.
///
/// Those that need its C headers are left out.
const MACOS: [&str; 8] = [
    "svc-agent",
    "svc-archive",
    "svc-config",
    "svc-hosted",
    "svc-keeper",
    "svc-process",
    "svc-projects",
    "svc-watch",
];

/// The workspace as it is tested on the host.
///
/// The page is compiled for it only where it can be.
const HOST: [&str; 3] = ["--workspace", "--exclude", "svc-web"];
const FAIL_POINTS: &str = "svc-server/failpoints";
/// Left out by the quick run: tests that start whole services, and a long search.
const SLOW: [&str; 6] =
    ["--exclude", "svc-tests", "--exclude", "svc-bench", "--exclude", "svc-model"];
/// Files of browser tests at once. By default Node leaves one core to itself.
const AT_ONCE: &str = "--test-concurrency=2";
/// One round of every kind of trouble, and a soak as short as one can be.
const SHORT_FORMS: [(&str, &[&str]); 2] = [
    ("chaos", &["--seed", "1", "--rounds", "11", "--steps", "5"]),
    ("soak", &["--seed", "1", "--seconds", "20", "--bridges", "12"]),
];
/// How many lines of failed tests are repeated; the log has all.
const REPORT_LINES: usize = 120;

/// What the caller wants tested.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    filter: Option<String>,
    extent: Extent,
    /// Builds the release beside the tests, for the smoke test after them.
    release: bool,
}

/// How much is tested.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Extent {
    #[default]
    Everything,
    /// Nothing that needs WebAssembly, Node or a browser.
    Fast,
    /// Formatting, lints and the tests of the single packages: the loop while working.
    Quick,
}

impl Options {
    /// All tests, and the release build that the smoke test needs next.
    pub(crate) fn before_smoke() -> Self {
        Self { release: true, ..Self::default() }
    }

    pub(crate) fn parse(args: &[OsString]) -> Result<Self> {
        let mut options = Self::default();
        for arg in args {
            match arg.to_str() {
                Some("--fast") if options.extent == Extent::Everything => {
                    options.extent = Extent::Fast;
                }
                Some("--quick") if options.extent == Extent::Everything => {
                    options.extent = Extent::Quick;
                }
                Some(name) if !name.starts_with('-') && options.filter.is_none() => {
                    options.filter = Some(name.to_string());
                }
                _ => bail!(
                    "`{}` is not understood; the command is `cargo xtask test [FILTER] [--fast | \
                     --quick]`",
                    arg.to_string_lossy()
                ),
            }
        }
        Ok(options)
    }
}

/// The programs that black-box and browser tests start.
struct Programs {
    service: PathBuf,
    /// The service with fail points between its steps.
    service_failpoints: PathBuf,
    simulator: PathBuf,
}

impl Programs {
    fn hand_to(&self, command: &mut Command) {
        command
            .env("SVC_BIN", &self.service)
            .env("SVC_FAILPOINTS_BIN", &self.service_failpoints)
            .env("SVC_SIM_BIN", &self.simulator);
    }
}

struct Run<'a> {
    progress: &'a Progress,
    workspace: &'a Workspace,
    options: &'a Options,
    tally: Tally,
    /// Names of the steps that failed.
    failed: Vec<String>,
    /// What could not be tested here, and why.
    skipped: Vec<Skip>,
}

/// Runs what is wanted. The exit code tells whether all of it passed.
pub(crate) fn run(
    progress: &Progress,
    workspace: &Workspace,
    options: &Options,
) -> Result<ExitCode> {
    Tally::take(workspace);
    let mut run = Run {
        progress,
        workspace,
        options,
        tally: Tally::default(),
        failed: vec![],
        skipped: vec![],
    };
    if let Err(error) = run.all() {
        // What later steps stand on is missing: the count is closed with that failure.
        run.note("everything after this", false);
        run.close()?;
        return Err(error);
    }
    run.close()
}

impl Run<'_> {
    fn all(&mut self) -> Result<()> {
        let browser = self.prepare()?;
        let is_filtered = self.options.filter.is_some();
        if !is_filtered {
            self.checks()?;
        }
        if self.options.extent == Extent::Quick {
            return self.package_tests();
        }
        let programs = self.programs()?;
        if is_filtered {
            self.host_tests(&programs)?;
        } else {
            // Tests wait for processes most of the time: there is room beside them.
            let (progress, workspace, options) = (self.progress, self.workspace, self.options);
            let beside = std::thread::scope(|threads| {
                let beside = threads.spawn(|| Beside::run(progress, workspace, options, &programs));
                self.host_tests(&programs)?;
                beside.join().unwrap_or_else(|_| bail!("a step beside the tests panicked"))
            })?;
            self.record(beside)?;
        }
        if self.options.extent == Extent::Everything {
            self.page_tests()?;
            self.browser_tests(browser, &programs)?;
        }
        Ok(())
    }

    /// Tools and page. Without the page nothing else is worth starting.
    fn prepare(&self) -> Result<Browser> {
        if self.options.extent != Extent::Everything {
            bootstrap::run(self.progress, self.workspace, Page::Unwanted)?;
            return Ok(Browser::Missing("only the whole run has a browser".into()));
        }
        dist::run(self.progress, self.workspace)?;
        browser::bootstrap(self.progress, self.workspace)
    }

    fn checks(&mut self) -> Result<()> {
        let workspace = self.workspace;
        self.check("fmt", "a second", 0, &mut workspace.cargo(&["fmt", "--all", "--check"]))?;
        let proved = rows::check(self.progress, workspace)?;
        self.note("rows", proved);
        let clippy = |features: &[&str]| {
            let mut clippy = workspace.cargo(&["clippy", "--locked"]);
            clippy.args(HOST).arg("--all-targets").args(features).args(["--", "-D", "warnings"]);
            clippy
        };
        let first = "about 3 min the first time";
        self.check("clippy", first, 330, &mut clippy(&[]))?;
        if self.options.extent == Extent::Quick {
            return Ok(());
        }
        let fail_points = ["--features", FAIL_POINTS];
        self.check("clippy-failpoints", "the service alone", 10, &mut clippy(&fail_points))?;
        if self.options.extent == Extent::Fast {
            if bootstrap::has_licence_check(workspace) {
                self.licences()?;
            }
            return Ok(());
        }
        let mut page = workspace.cargo(&["clippy", "--locked", "-p", "svc-web", "--target"]);
        page.args([pins::WASM_TARGET, "--", "-D", "warnings"]);
        page.env(dist::WASM_FLAGS, dist::ERASED);
        self.check("clippy-page", "about 90 s the first time", 230, &mut page)?;
        // Its tests run on the host, so that is where they are linted.
        let mut rules = workspace.cargo(&["clippy", "--locked", "-p", "svc-web", "--lib"]);
        rules.args(["--profile", "test", "--", "-D", "warnings"]);
        self.check("clippy-page-rules", "a few seconds", 20, &mut rules)?;
        bootstrap::macos_target(self.progress, workspace)?;
        let mut macos = workspace.cargo(&["clippy", "--locked", "--target", pins::MACOS_TARGET]);
        macos.args(MACOS.iter().flat_map(|package| ["-p", package])).args(["--", "-D", "warnings"]);
        self.check("clippy-macos", "about 60 s the first time", 120, &mut macos)?;
        self.page_pulls_no_server()?;
        let fits = dist::check_size(self.progress, workspace)?;
        self.note("page-size", fits);
        bootstrap::licence_check(self.progress, workspace)?;
        self.licences()
    }

    /// Checks licences, sources and bans of the dependencies.
    ///
    /// `advisories` is left out: its database comes from a host that is not always in reach, and a
    /// check that fails with the network says nothing about the change under test.
    fn licences(&mut self) -> Result<()> {
        let mut deny = self.workspace.cargo(&[
            "deny",
            "--workspace",
            "--locked",
            "check",
            "--deny",
            "unmatched-skip",
        ]);
        deny.args(["--hide-inclusion-graph", "licenses", "sources", "bans"]);
        self.check("cargo-deny", "licences, sources, duplicates", 0, &mut deny)
    }

    /// The wire types reach the page without the server's `OpenAPI` machinery.
    fn page_pulls_no_server(&mut self) -> Result<()> {
        let mut tree =
            self.workspace.cargo(&["tree", "--locked", "-p", "svc-web", "--prefix", "none"]);
        let out =
            tree.args(["--target", pins::WASM_TARGET]).output().context("cannot run cargo tree")?;
        let text = String::from_utf8_lossy(&out.stdout);
        let foreign = ["poem", "poem-openapi", "sqlx", "tokio", "svc-server", "svc-domain"];
        let pulled: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| foreign.contains(name))
            .collect();
        if !pulled.is_empty() {
            self.progress.say(format_args!("the page depends on {}", pulled.join(", ")));
        }
        self.note("page-dependencies", out.status.success() && pulled.is_empty());
        Ok(())
    }

    /// Builds the service twice, once with fail points, and the simulator.
    fn programs(&self) -> Result<Programs> {
        let debug = self.workspace.target.join("debug");
        let kept = self.workspace.target.join("xtask/failpoints");
        fs::create_dir_all(&kept).context("cannot create a folder for the fail points' build")?;
        let service_failpoints = kept.join("svc");
        // Same selection in both builds, so that nothing but the service itself is built twice;
        // `--examples` makes cargo choose the features of the tests.
        self.build("build-failpoints", &["--features", FAIL_POINTS])?;
        fs::copy(debug.join("svc"), &service_failpoints)
            .context("cannot keep the build with fail points")?;
        self.build("build", &[])?;
        // Shows that the same question to a release binary means something.
        if !smoke::has_fail_points(&service_failpoints)? {
            bail!("the build with fail points does not read `{}`", smoke::FAIL_POINTS);
        }
        Ok(Programs {
            service: debug.join("svc"),
            service_failpoints,
            simulator: debug.join("svc-agent-sim"),
        })
    }

    fn build(&self, name: &str, features: &[&str]) -> Result<()> {
        let log = self.workspace.log(name)?;
        let step = Step { name, expect: "about 3 min the first time", crates: 330, log: &log };
        let mut build = self.workspace.cargo(&["build", "--locked"]);
        build.args(HOST).args(["--bins", "--examples"]).args(features);
        if !self.progress.step(&step, &mut build)? {
            bail!("the programs under test do not build, see {}", log.display());
        }
        Ok(())
    }

    fn host_tests(&mut self, programs: &Programs) -> Result<()> {
        let mut tests = self.workspace.cargo(&["test", "--locked", "--no-fail-fast"]);
        tests.args(HOST).args(&self.options.filter);
        programs.hand_to(&mut tests);
        self.cargo_tests("tests", "every test outside the browser", &mut tests)
    }

    /// The tests that need no other program than their own.
    fn package_tests(&mut self) -> Result<()> {
        let mut tests = self.workspace.cargo(&["test", "--locked", "--no-fail-fast"]);
        tests.args(HOST).args(SLOW).args(&self.options.filter);
        self.cargo_tests("tests-quick", "the tests of the single packages", &mut tests)
    }

    /// Takes over what ran beside the tests.
    fn record(&mut self, beside: Beside) -> Result<()> {
        for (name, passed) in beside.outcomes {
            self.note(name, passed);
        }
        self.skip(beside.skips);
        Ok(())
    }

    /// The page's rules are plain Rust: they are tested on the host.
    fn page_tests(&mut self) -> Result<()> {
        let mut tests =
            self.workspace.cargo(&["test", "--locked", "--no-fail-fast", "-p", "svc-web"]);
        tests.arg("--lib").args(&self.options.filter);
        self.cargo_tests("tests-page", "the page's rules", &mut tests)
    }

    fn cargo_tests(&mut self, name: &str, expect: &str, command: &mut Command) -> Result<()> {
        let log = self.workspace.log(name)?;
        let step = Step { name, expect, crates: 330, log: &log };
        let reported = skips::empty_file(self.workspace)?;
        // What failed is said by the message; the frames below it would fill the report.
        command.env(skips::FILE, &reported).env("RUST_BACKTRACE", "0");
        if workspace::set("RUST_TEST_THREADS").is_none() {
            command.env("RUST_TEST_THREADS", threads().to_string());
        }
        let passed = self.progress.step(&step, command)?;
        let output = progress::read(&log);
        let mut tally = Tally::from_cargo(&output);
        if !passed {
            for line in tally::failure_reports(&output).into_iter().take(REPORT_LINES) {
                self.progress.say(format_args!("| {line}"));
            }
            for test in tally::failed_tests(&output) {
                self.progress.say(format_args!("failed: {test}"));
            }
        }
        let reported = skips::reported(&reported)?;
        tally.move_to_skipped(reported.len() as u64);
        self.count(name, passed, tally);
        self.skipped.extend(reported);
        self.skipped.extend(skips::ignored(&output));
        Ok(())
    }

    fn browser_tests(&mut self, browser: Browser, programs: &Programs) -> Result<()> {
        let files = browser::files(self.workspace)?;
        let chromium = match browser {
            Browser::Found(chromium) => chromium,
            Browser::Missing(why) => {
                let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_owned();
                let skip = |file| Skip::new(name(file).to_string_lossy(), why.as_str());
                self.skip(files.iter().map(skip));
                return Ok(());
            }
        };
        if files.is_empty() {
            return Ok(());
        }
        let log = self.workspace.log("tests-browser")?;
        let step =
            Step { name: "tests-browser", expect: "the page in Chromium", crates: 0, log: &log };
        let mut node = self.workspace.command("node");
        node.args(["--test", "--test-reporter=tap"]);
        if bootstrap::output(self.workspace, "node", &[AT_ONCE, "--version"]).is_some() {
            node.arg(AT_ONCE); // Node 20.10 and newer; one file at a time otherwise
        }
        if let Some(filter) = &self.options.filter {
            node.arg("--test-name-pattern").arg(filter);
        }
        node.args(&files).env("CHROMIUM", chromium);
        node.env("SVC_BROWSER_MODULES", self.workspace.modules("browser"));
        programs.hand_to(&mut node);
        let passed = self.progress.step(&step, &mut node)?;
        let output = progress::read(&log);
        if !passed {
            for line in tally::failed_in_tap(&output).into_iter().take(REPORT_LINES) {
                self.progress.say(format_args!("| {line}"));
            }
            for line in output.lines().filter(|line| line.trim_start().starts_with("not ok ")) {
                self.progress.say(format_args!("failed: {}", line.trim()));
            }
        }
        self.count("tests-browser", passed, Tally::from_tap(&output));
        self.skipped.extend(skips::in_tap(&output));
        Ok(())
    }

    fn check(
        &mut self,
        name: &str,
        expect: &str,
        crates: usize,
        command: &mut Command,
    ) -> Result<()> {
        let log = self.workspace.log(name)?;
        let passed = self.progress.step(&Step { name, expect, crates, log: &log }, command)?;
        self.note(name, passed);
        Ok(())
    }

    fn note(&mut self, name: &str, passed: bool) {
        self.count(name, passed, Tally::of(passed));
    }

    /// Adds the count of a runner. One that failed without a failed test is a failure.
    fn count(&mut self, name: &str, passed: bool, tally: Tally) {
        self.tally.add(tally);
        if !passed {
            self.failed.push(name.to_string());
            if tally.failed == 0 {
                self.tally.add(Tally::of(false));
            }
        }
    }

    /// Adds skips that no test runner counted.
    fn skip(&mut self, skips: impl IntoIterator<Item = Skip>) {
        for skip in skips {
            self.tally.skipped += 1;
            self.skipped.push(skip);
        }
    }

    fn close(mut self) -> Result<ExitCode> {
        let allowed = skips::Allowed::read(self.workspace)?;
        for skip in &self.skipped {
            self.progress.say(format_args!("skipped: {}: {}", skip.name, skip.reason));
            let is_whole = self.options.extent == Extent::Everything;
            if self.workspace.ci && is_whole && !allowed.accepts(skip) {
                self.failed.push(format!("{}, which CI may not skip", skip.name));
                self.tally.skipped = self.tally.skipped.saturating_sub(1);
                self.tally.add(Tally::of(false));
            }
        }
        if !self.failed.is_empty() {
            self.progress.say(format_args!("FAILED: {}", self.failed.join(", ")));
        }
        self.tally.save(self.workspace)?;
        self.progress.print(&self.tally.closing_line());
        Ok(if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// What runs beside the tests of the host, and came of it.
#[derive(Default)]
struct Beside {
    outcomes: Vec<(&'static str, bool)>,
    skips: Vec<Skip>,
}

impl Beside {
    fn run(
        progress: &Progress,
        workspace: &Workspace,
        options: &Options,
        programs: &Programs,
    ) -> Result<Self> {
        let mut beside = Self::default();
        beside.endurance(progress, workspace, programs)?;
        if options.extent == Extent::Everything {
            beside.fuzz(progress, workspace)?;
        }
        if options.release {
            // A failure is reported by the smoke test, which needs it.
            let _ = run::build(progress, workspace);
        }
        Ok(beside)
    }

    /// The short forms of soak and chaos, always with the same seed.
    fn endurance(
        &mut self,
        progress: &Progress,
        workspace: &Workspace,
        programs: &Programs,
    ) -> Result<()> {
        for (name, args) in SHORT_FORMS {
            let mut run = endurance::program(workspace);
            programs.hand_to(run.arg(name).args(args));
            let log = workspace.log(name)?;
            let expect = "the short form, under a minute and a half";
            let passed = progress.step(&Step { name, expect, crates: 0, log: &log }, &mut run)?;
            self.outcomes.push((name, passed));
            let said = progress::read(&log);
            if let Some(sums) = said.lines().find(|line| line.starts_with("seed ")) {
                progress.say(format_args!("{name}: {sums}"));
            }
            let not_tried = said.lines().filter_map(|line| line.strip_prefix("not tried here: "));
            self.skips.extend(not_tried.map(|what| Skip::new(name, what)));
        }
        Ok(())
    }

    /// Every kept input of the parsers of foreign input, and half a minute of search.
    fn fuzz(&mut self, progress: &Progress, workspace: &Workspace) -> Result<()> {
        match fuzz::obstacle() {
            Some(why) => self.skips.push(Skip::new("fuzz", why)),
            None => self.outcomes.push(("fuzz", fuzz::short(progress, workspace)?)),
        }
        Ok(())
    }
}

/// Twice as many tests at once as there are cores: most of them wait for a process.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from) * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options> {
        Options::parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn filter_and_extent_come_in_any_order() {
        let wanted = |extent| Options { filter: Some("spawn".into()), extent, release: false };
        assert_eq!(parse(&["spawn", "--fast"]).unwrap(), wanted(Extent::Fast));
        assert_eq!(parse(&["--quick", "spawn"]).unwrap(), wanted(Extent::Quick));
        assert_eq!(parse(&[]).unwrap(), Options::default());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let error = parse(&["--slow"]).unwrap_err().to_string();
        assert!(error.contains("--slow"), "{error}");
        assert!(parse(&["--fast", "--quick"]).is_err());
        assert!(parse(&["one", "two"]).is_err());
    }
}
