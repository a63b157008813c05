//! `cargo xtask rows`: the failure cases and hardening rows, against the tests that name them.
//!
//! The table is `tests/rows.md`. A test names its rows at the beginning of its own name
//! (`f4_…`, `h32_h35_…`); a row without a test needs a reason in the table.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::place::Place;
use crate::progress::Progress;

/// Where the table is, seen from the checkout.
const TABLE: &str = "tests/rows.md";
/// Where tests are, seen from the checkout.
const SOURCES: [&str; 5] = ["shared", "server", "tests", "web", "xtask"];

/// The name of a row: `F4` or `H32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    kind: Kind,
    number: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Failure,
    Hardening,
}

impl Number {
    /// From `F4`, `f4`: one letter and digits.
    fn read(text: &str) -> Option<Self> {
        let kind = match text.chars().next()? {
            'F' | 'f' => Kind::Failure,
            'H' | 'h' => Kind::Hardening,
            _ => return None,
        };
        let digits = text.get(1..)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self { kind, number: digits.parse().ok().filter(|_| plain)? })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            Kind::Failure => 'F',
            Kind::Hardening => 'H',
        };
        f.pad(&format!("{letter}{}", self.number))
    }
}

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    number: Number,
    title: String,
    /// Why no test proves it; empty when one does.
    reason: String,
}

/// A test and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    file: String,
    name: String,
}

/// Shows the table with its tests. Fails when a row is neither proved nor excused, or both.
pub(crate) fn run(progress: &Progress, place: &Place) -> Result<ExitCode> {
    let comparison = compare(place)?;
    progress.print(&comparison.listing());
    for fault in &comparison.faults {
        progress.say(format_args!("{fault}"));
    }
    progress.print(&comparison.closing_line());
    Ok(if comparison.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same as a check among others: only what is wrong is said.
pub(crate) fn check(progress: &Progress, place: &Place) -> Result<bool> {
    let comparison = compare(place)?;
    for fault in &comparison.faults {
        progress.say(format_args!("{fault}"));
    }
    progress.say(format_args!("rows: {}", comparison.closing_line().trim_end()));
    Ok(comparison.faults.is_empty())
}

fn compare(place: &Place) -> Result<Comparison> {
    let path = place.root.join(TABLE);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rows = read_table(&text)?;
    let mut tests = Vec::new();
    for folder in SOURCES {
        find_tests(&place.root, &place.root.join(folder), &mut tests)?;
    }
    Ok(Comparison::new(rows, &tests))
}

/// Rows, their tests, and what does not fit.
struct Comparison {
    rows: Vec<(Row, Vec<Test>)>,
    /// Rows that tests name and the table does not: those of later stages.
    further: Vec<Number>,
    faults: Vec<String>,
}

impl Comparison {
    fn new(rows: Vec<Row>, tests: &[Test]) -> Self {
        let mut by_row: BTreeMap<Number, Vec<Test>> = BTreeMap::new();
        for test in tests {
            for number in rows_named_by(&test.name) {
                by_row.entry(number).or_default().push(test.clone());
            }
        }
        let mut faults = Vec::new();
        let rows = rows.into_iter().map(|row| {
            let proofs = by_row.remove(&row.number).unwrap_or_default();
            match (proofs.first(), row.reason.is_empty()) {
                (None, true) => faults.push(format!(
                    "{} has no test and no reason: name a test `{}_…` or say why in {TABLE}",
                    row.number,
                    row.number.to_string().to_lowercase()
                )),
                (Some(test), false) => faults.push(format!(
                    "{} has a reason although `{}` proves it: delete the reason in {TABLE}",
                    row.number, test.name
                )),
                (None, false) | (Some(_), true) => {}
            }
            (row, proofs)
        });
        let rows = rows.collect();
        Self { rows, further: by_row.into_keys().collect(), faults }
    }

    fn listing(&self) -> String {
        let mut text = String::new();
        for (row, proofs) in &self.rows {
            let Row { number, title, reason } = row;
            let mark = if proofs.is_empty() { '-' } else { '+' };
            text.push_str(&format!("{mark} {number:<5}{title}\n"));
            if !reason.is_empty() {
                text.push_str(&format!("         no test: {reason}\n"));
            }
            for Test { file, name } in proofs {
                text.push_str(&format!("         {file}: {name}\n"));
            }
        }
        text
    }

    fn closing_line(&self) -> String {
        let count = |kind| {
            let of_kind = self.rows.iter().filter(|(row, _)| row.number.kind == kind);
            let (proved, all) = of_kind.fold((0, 0), |(proved, all), (_, proofs)| {
                (proved + usize::from(!proofs.is_empty()), all + 1)
            });
            format!("{proved} of {all}")
        };
        let further = self.further.iter().map(Number::to_string).collect::<Vec<_>>().join(", ");
        format!(
            "failure cases with tests: {}; hardening rows with tests: {}; beyond the table: {}\n",
            count(Kind::Failure),
            count(Kind::Hardening),
            if further.is_empty() { "none" } else { &further }
        )
    }
}

/// Every line of the table that begins with a row's name.
fn read_table(text: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines() {
        let Some(inside) = line.trim().strip_prefix('|') else { continue };
        let mut cells = inside.split('|').map(str::trim);
        let Some(number) = cells.next().and_then(Number::read) else { continue };
        let (Some(title), Some(reason)) = (cells.next(), cells.next()) else {
            bail!("{TABLE}: {number} needs three cells: row, what it asks, why there is no test");
        };
        if title.is_empty() {
            bail!("{TABLE}: {number} does not say what it asks");
        }
        if rows.iter().any(|row| row.number == number) {
            bail!("{TABLE}: {number} stands there twice");
        }
        rows.push(Row { number, title: title.into(), reason: reason.into() });
    }
    if rows.is_empty() {
        bail!("{TABLE} has no rows: `| F1 | what it asks | why there is no test |`");
    }
    Ok(rows)
}

/// The rows at the beginning of a test's name.
fn rows_named_by(name: &str) -> Vec<Number> {
    name.split('_').map_while(Number::read).collect()
}

fn find_tests(root: &Path, folder: &Path, tests: &mut Vec<Test>) -> Result<()> {
    let shown = || format!("cannot list {}", folder.display());
    let entries = fs::read_dir(folder).with_context(shown)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                find_tests(root, &path, tests)?;
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let found = tests_of(&text).into_iter();
            tests.extend(found.map(|name| Test { file: file.clone(), name }));
        }
    }
    Ok(())
}

/// Names of the functions that a test attribute stands before and that are not switched off.
fn tests_of(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut is_test, mut is_off) = (false, false);
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            let word = line.trim_start_matches("#[").split(['(', ']']).next().unwrap_or_default();
            is_test |= word == "test" || word.ends_with("::test");
            is_off |= word == "ignore" || word.starts_with("ignore ");
        } else if let Some(name) = function(line) {
            if is_test && !is_off {
                names.push(name.to_owned());
            }
            (is_test, is_off) = (false, false);
        }
    }
    names
}

/// The name behind `fn`, where a function begins.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line.strip_prefix("fn ")?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str) -> Test {
        Test { file: "a.rs".into(), name: name.into() }
    }

    fn faults(table: &str, names: &[&str]) -> Vec<String> {
        let tests: Vec<Test> = names.iter().map(|name| test(name)).collect();
        Comparison::new(read_table(table).unwrap(), &tests).faults
    }

    #[test]
    fn a_name_begins_with_its_rows() {
        let rows = |name| rows_named_by(name).iter().map(Number::to_string).collect::<Vec<_>>();
        assert_eq!(rows("f4_a_name"), ["F4"]);
        assert_eq!(rows("h32_h35_no_secret_of_h1"), ["H32", "H35"]);
        assert_eq!(rows("half_a_character"), [""; 0]);
        assert_eq!(rows("f_5"), [""; 0]);
    }

    #[test]
    fn a_row_needs_a_test_or_a_reason_and_not_both() {
        let table = "| Row | a | b |\n|---|---|---|\n| F1 | one | |\n| H2 | two | later |\n";
        assert_eq!(faults(table, &["f1_a"]), [""; 0]);
        let missing = faults(table, &[]);
        assert!(missing.len() == 1 && missing[0].contains("F1 has no test"), "{missing:?}");
        let both = faults(table, &["f1_h2_a"]);
        assert!(both.len() == 1 && both[0].contains("H2 has a reason"), "{both:?}");
    }

    #[test]
    fn a_damaged_table_is_told_with_its_row() {
        assert!(read_table("no table").is_err());
        let twice = read_table("| F1 | one | |\n| F1 | two | |").unwrap_err().to_string();
        assert!(twice.contains("F1 stands there twice"), "{twice}");
        assert!(read_table("| F1 | one").unwrap_err().to_string().contains("three cells"));
    }

    #[test]
    fn only_functions_that_are_run_as_tests_count() {
        let source = "#[test]\nfn f1_a() {}\nfn f2_helper() {}\n#[tokio::test(flavor = \"x\")]\n\
                      async fn f3_b() {}\n#[test]\n#[ignore = \"later\"]\nfn f4_c() {}\n\
                      #[cfg(test)]\nmod tests {}\nfn f5_d() {}\n";
        assert_eq!(tests_of(source), ["f1_a", "f3_b"]);
    }
}
