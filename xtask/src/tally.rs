//! Counts the tests in the output of the test runners, and writes the closing line.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::workspace::Workspace;

/// How many tests passed, failed, or could not be run here.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// One check that is not a test of its own.
    pub(crate) fn of(passed: bool) -> Self {
        Self { passed: passed.into(), failed: (!passed).into(), skipped: 0 }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Counts tests as skipped that their runner counted as passed.
    pub(crate) fn move_to_skipped(&mut self, count: u64) {
        self.passed = self.passed.saturating_sub(count);
        self.skipped += count;
    }

    /// The last line of a run, alone on its line.
    pub(crate) fn closing_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped\n", self.passed, self.failed, self.skipped)
    }

    /// From the output of `cargo test`: one `test result:` line per test program.
    pub(crate) fn from_cargo(output: &str) -> Self {
        let mut tally = Self::default();
        for line in output.lines().filter(|line| line.starts_with("test result: ")) {
            tally.passed += number_before(line, " passed");
            tally.failed += number_before(line, " failed");
            tally.skipped += number_before(line, " ignored");
        }
        tally
    }

    /// From TAP, as `node --test` ends it: `# pass 3`.
    pub(crate) fn from_tap(output: &str) -> Self {
        let count = |word: &str| -> u64 {
            let counts = output.lines().filter_map(|line| line.strip_prefix("# "));
            counts.filter_map(|line| line.strip_prefix(word)?.trim().parse::<u64>().ok()).sum()
        };
        Self {
            passed: count("pass "),
            failed: count("fail ") + count("cancelled "),
            skipped: count("skipped ") + count("todo "),
        }
    }

    /// Keeps the count for `smoke`, which adds its own checks to the tests before it.
    pub(crate) fn save(&self, workspace: &Workspace) -> Result<()> {
        let file = file(workspace);
        fs::write(&file, format!("{} {} {}\n", self.passed, self.failed, self.skipped))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Takes the count that [`Tally::save`] kept. A second call finds none.
    pub(crate) fn take(workspace: &Workspace) -> Self {
        let file = file(workspace);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file); // absent is what is wanted
        let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self { passed: next(), failed: next(), skipped: next() }
    }
}

fn file(workspace: &Workspace) -> PathBuf {
    workspace.target.join("xtask/tests.count")
}

/// `…; 12 failed; …`, ` failed` → 12.
fn number_before(line: &str, word: &str) -> u64 {
    line.split(word)
        .next()
        .filter(|before| before.len() < line.len())
        .and_then(|before| before.rsplit(|c: char| !c.is_ascii_digit()).next())
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

/// Names of the tests that failed, as `cargo test` lists them while it runs.
pub(crate) fn failed_tests(output: &str) -> Vec<&str> {
    output
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .collect()
}

/// The reports of failed tests, without the output of the others.
pub(crate) fn failure_reports(output: &str) -> Vec<&str> {
    let mut within = false;
    output
        .lines()
        .filter(|line| {
            if *line == "failures:" {
                within = true;
            } else if line.starts_with("test result: ") {
                within = false;
            }
            within
        })
        .collect()
}

/// The reports of failed tests in TAP: each one's line, and what is below it.
pub(crate) fn failed_in_tap(output: &str) -> Vec<&str> {
    let mut within = false;
    output
        .lines()
        .filter(|line| {
            let line = line.trim_start();
            if line.starts_with("not ok ") {
                within = true;
            } else if line.starts_with("ok ") || line.starts_with("# ") {
                within = false;
            }
            within
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARGO: &str = "\
running 2 tests
test a ... ok
test b::c ... FAILED

failures:

---- b::c stdout ----
left: 1

failures:
    b::c

test result: FAILED. 1 passed; 1 failed; 3 ignored; 0 measured; 7 filtered out; finished in 0.1s
     Running unittests src/main.rs
test result: ok. 120 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s
";

    #[test]
    fn every_test_program_counts() {
        let tally = Tally::from_cargo(CARGO);
        assert_eq!(tally, Tally { passed: 121, failed: 1, skipped: 3 });
        assert_eq!(tally.closing_line(), "121 passed, 1 failed, 3 skipped\n");
    }

    #[test]
    fn a_run_that_printed_no_result_counts_nothing() {
        assert_eq!(Tally::from_cargo("error: could not compile `svc`"), Tally::default());
        assert_eq!(Tally::from_tap("SyntaxError"), Tally::default());
    }

    #[test]
    fn browser_tests_count_cancelled_as_failed() {
        let tap = "ok 1 - a # SKIP\n# tests 6\n# pass 3\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0\n";
        assert_eq!(Tally::from_tap(tap), Tally { passed: 3, failed: 2, skipped: 1 });
    }

    #[test]
    fn a_failed_browser_test_is_reported_with_its_cause() {
        let tap =
            "ok 1 - a\nnot ok 2 - b\n  ---\n  error: 'no row'\n  ...\n# Subtest: c\nok 3 - c\n";
        assert_eq!(failed_in_tap(tap), ["not ok 2 - b", "  ---", "  error: 'no row'", "  ..."]);
    }

    #[test]
    fn failed_tests_are_named_and_their_reports_found() {
        assert_eq!(failed_tests(CARGO), ["b::c"]);
        let reports = failure_reports(CARGO);
        assert!(reports.contains(&"left: 1"), "{reports:?}");
        assert!(!reports.iter().any(|line| line.contains("test a")), "{reports:?}");
    }
}
