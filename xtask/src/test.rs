//! `cargo xtask test`: every check and every test, in the order in which they are cheap.
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
use crate::place::Place;
use crate::progress::{self, Progress, Step};
use crate::skips::{self, Skip};
use crate::tally::{self, Tally};
use crate::{dist, endurance, fuzz, pins, rows, smoke};

/// The workspace as it is tested on the host; the page is compiled for it only where it can be.
const HOST: [&str; 3] = ["--workspace", "--exclude", "svc-web"];
const FAIL_POINTS: &str = "svc-server/failpoints";
/// One round of every kind of trouble, and a soak as short as one can be.
const SHORT_FORMS: [(&str, &[&str]); 2] = [
    ("chaos", &["--seed", "1", "--rounds", "10", "--steps", "5"]),
    ("soak", &["--seed", "1", "--seconds", "20", "--bridges", "12"]),
];
/// How many lines of failed tests are repeated; the log has all.
const REPORT_LINES: usize = 120;

/// What the caller wants tested.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    filter: Option<String>,
    fast: bool,
}

impl Wish {
    pub(crate) fn everything() -> Self {
        Self::default()
    }

    pub(crate) fn parse(args: &[OsString]) -> Result<Self> {
        let mut wish = Self::default();
        for arg in args {
            match arg.to_str() {
                Some("--fast") => wish.fast = true,
                Some(name) if !name.starts_with('-') && wish.filter.is_none() => {
                    wish.filter = Some(name.to_string());
                }
                _ => bail!(
                    "`{}` is not understood; the command is `cargo xtask test [FILTER] [--fast]`",
                    arg.to_string_lossy()
                ),
            }
        }
        Ok(wish)
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
    place: &'a Place,
    wish: &'a Wish,
    tally: Tally,
    /// Names of the steps that failed.
    failed: Vec<String>,
    /// What could not be tested here, and why.
    skipped: Vec<Skip>,
}

/// Runs everything wished for. The exit code tells whether all of it passed.
pub(crate) fn run(progress: &Progress, place: &Place, wish: &Wish) -> Result<ExitCode> {
    Tally::take(place);
    let mut run =
        Run { progress, place, wish, tally: Tally::default(), failed: vec![], skipped: vec![] };
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
        if self.wish.filter.is_none() {
            self.checks()?;
        }
        let programs = self.programs()?;
        self.host_tests(&programs)?;
        if self.wish.filter.is_none() {
            self.endurance(&programs)?;
        }
        if !self.wish.fast {
            self.fuzz()?;
            self.page_tests()?;
            self.browser_tests(browser, &programs)?;
        }
        Ok(())
    }

    /// Tools and page. Without the page nothing else is worth starting.
    fn prepare(&self) -> Result<Browser> {
        if self.wish.fast {
            bootstrap::run(self.progress, self.place, Page::Unwanted)?;
            return Ok(Browser::Missing("--fast".into()));
        }
        dist::run(self.progress, self.place)?;
        browser::bootstrap(self.progress, self.place)
    }

    fn checks(&mut self) -> Result<()> {
        let place = self.place;
        self.check("fmt", "a second", 0, &mut place.cargo(&["fmt", "--all", "--check"]))?;
        let proved = rows::check(self.progress, place)?;
        self.note("rows", proved);
        let clippy = |features: &[&str]| {
            let mut clippy = place.cargo(&["clippy", "--locked"]);
            clippy.args(HOST).arg("--all-targets").args(features).args(["--", "-D", "warnings"]);
            clippy
        };
        let first = "about 3 min the first time";
        self.check("clippy", first, 330, &mut clippy(&[]))?;
        let fail_points = ["--features", FAIL_POINTS];
        self.check("clippy-failpoints", "the service alone", 10, &mut clippy(&fail_points))?;
        if self.wish.fast {
            if bootstrap::has_licence_check(place) {
                self.licences()?;
            }
            return Ok(());
        }
        let mut page = place.cargo(&["clippy", "--locked", "-p", "svc-web", "--target"]);
        page.args([pins::WASM_TARGET, "--", "-D", "warnings"]);
        self.check("clippy-page", "about 90 s the first time", 230, &mut page)?;
        // Its tests run on the host, so that is where they are linted.
        let mut rules = place.cargo(&["clippy", "--locked", "-p", "svc-web", "--lib"]);
        rules.args(["--profile", "test", "--", "-D", "warnings"]);
        self.check("clippy-page-rules", "a few seconds", 20, &mut rules)?;
        self.page_pulls_no_server()?;
        let fits = dist::check_size(self.progress, place)?;
        self.note("page-size", fits);
        bootstrap::licence_check(self.progress, place)?;
        self.licences()
    }

    /// `advisories` is left out: its database comes from a host that is not always in reach,
    /// and a check that fails with the network says nothing about the change under test.
    fn licences(&mut self) -> Result<()> {
        let mut deny = self.place.cargo(&[
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
        let mut tree = self.place.cargo(&["tree", "--locked", "-p", "svc-web", "--prefix", "none"]);
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
        let debug = self.place.target.join("debug");
        let kept = self.place.target.join("xtask/failpoints");
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
        let log = self.place.log(name)?;
        let step = Step { name, expect: "about 3 min the first time", crates: 330, log: &log };
        let mut build = self.place.cargo(&["build", "--locked"]);
        build.args(HOST).args(["--bins", "--examples"]).args(features);
        if !self.progress.step(&step, &mut build)? {
            bail!("the programs under test do not build, see {}", log.display());
        }
        Ok(())
    }

    fn host_tests(&mut self, programs: &Programs) -> Result<()> {
        let mut tests = self.place.cargo(&["test", "--locked", "--no-fail-fast"]);
        tests.args(HOST).args(&self.wish.filter);
        programs.hand_to(&mut tests);
        self.cargo_tests("tests", "every test outside the browser", &mut tests)
    }

    /// The short forms of soak and chaos: always the same seed, and nothing depends on times.
    fn endurance(&mut self, programs: &Programs) -> Result<()> {
        for (name, args) in SHORT_FORMS {
            let mut run = endurance::program(self.place);
            programs.hand_to(run.arg(name).args(args));
            self.check(name, "the short form, under a minute and a half", 0, &mut run)?;
            let log = progress::read(&self.place.log(name)?);
            if let Some(sums) = log.lines().find(|line| line.starts_with("seed ")) {
                self.progress.say(format_args!("{name}: {sums}"));
            }
            let not_tried = log.lines().filter_map(|line| line.strip_prefix("not tried here: "));
            let skips: Vec<Skip> = not_tried.map(|what| Skip::new(name, what)).collect();
            self.skip(skips);
        }
        Ok(())
    }

    /// Every kept input of the parsers of foreign input, and half a minute of search.
    fn fuzz(&mut self) -> Result<()> {
        if self.wish.filter.is_some() {
            return Ok(());
        }
        match fuzz::obstacle() {
            Some(why) => self.skip([Skip::new("fuzz", why)]),
            None => {
                let is_clean = fuzz::short(self.progress, self.place)?;
                self.note("fuzz", is_clean);
            }
        }
        Ok(())
    }

    /// The page's rules are plain Rust: they are tested on the host.
    fn page_tests(&mut self) -> Result<()> {
        let mut tests = self.place.cargo(&["test", "--locked", "--no-fail-fast", "-p", "svc-web"]);
        tests.arg("--lib").args(&self.wish.filter);
        self.cargo_tests("tests-page", "the page's rules", &mut tests)
    }

    fn cargo_tests(&mut self, name: &str, expect: &str, command: &mut Command) -> Result<()> {
        let log = self.place.log(name)?;
        let step = Step { name, expect, crates: 330, log: &log };
        let reported = skips::empty_file(self.place)?;
        let passed = self.progress.step(&step, command.env(skips::FILE, &reported))?;
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
        let files = browser::files(self.place)?;
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
        let log = self.place.log("tests-browser")?;
        let step =
            Step { name: "tests-browser", expect: "the page in Chromium", crates: 0, log: &log };
        let mut node = self.place.command("node");
        node.args(["--test", "--test-reporter=tap"]);
        if let Some(filter) = &self.wish.filter {
            node.arg("--test-name-pattern").arg(filter);
        }
        node.args(&files).env("CHROMIUM", chromium);
        node.env("SVC_BROWSER_MODULES", self.place.modules("browser"));
        programs.hand_to(&mut node);
        let passed = self.progress.step(&step, &mut node)?;
        let output = progress::read(&log);
        for line in output.lines().filter(|line| line.trim_start().starts_with("not ok ")) {
            self.progress.say(format_args!("failed: {}", line.trim()));
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
        let log = self.place.log(name)?;
        let passed = self.progress.step(&Step { name, expect, crates, log: &log }, command)?;
        self.note(name, passed);
        Ok(())
    }

    fn note(&mut self, name: &str, passed: bool) {
        self.count(name, passed, Tally::of(passed));
    }

    /// A runner that failed without a failed test (it did not compile, it was killed) is one.
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
        let allowed = skips::Allowed::read(self.place)?;
        for skip in &self.skipped {
            self.progress.say(format_args!("skipped: {}: {}", skip.name, skip.reason));
            if self.place.ci && !self.wish.fast && !allowed.accepts(skip) {
                self.failed.push(format!("{}, which CI may not skip", skip.name));
                self.tally.skipped = self.tally.skipped.saturating_sub(1);
                self.tally.add(Tally::of(false));
            }
        }
        if !self.failed.is_empty() {
            self.progress.say(format_args!("FAILED: {}", self.failed.join(", ")));
        }
        self.tally.save(self.place)?;
        self.progress.print(&self.tally.closing_line());
        Ok(if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Wish> {
        Wish::parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn filter_and_fast_come_in_any_order() {
        let wish = Wish { filter: Some("spawn".into()), fast: true };
        assert_eq!(parse(&["spawn", "--fast"]).unwrap(), wish);
        assert_eq!(parse(&["--fast", "spawn"]).unwrap(), wish);
        assert_eq!(parse(&[]).unwrap(), Wish::everything());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let error = parse(&["--quick"]).unwrap_err().to_string();
        assert!(error.contains("--quick"), "{error}");
        assert!(parse(&["one", "two"]).is_err());
    }
}
