//! `cargo xtask rows`: failure cases and hardening rows, and the tests for each.
//!
//! The table is `tests/rows.md`; its head explains the form. A test names its rows at the
//! beginning of its own name (`f4_…`, `h32_h35_…`, `H4 H5: …`).

mod named;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::named::{Kind, Number, Test};
use crate::progress::Progress;
use crate::workspace::Workspace;

/// The table, relative to the checkout.
const TABLE: &str = "tests/rows.md";
/// The folders with tests, relative to the checkout.
const SOURCES: [&str; 5] = ["shared", "server", "tests", "web", "xtask"];

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    number: Number,
    title: String,
    remark: Remark,
}

/// The last cell of a line: what the tests cannot say.
#[derive(Debug, PartialEq, Eq)]
enum Remark {
    /// An empty cell: tests prove the row.
    None,
    /// No test yet: the row waits for this feature.
    NotYet(String),
    /// Tests prove what exists: the rest waits for this feature.
    Rest(String),
    /// No test, and none is planned, for this reason.
    Excused(String),
}

impl Remark {
    fn read(cell: &str) -> Option<Self> {
        if cell.is_empty() {
            return Some(Self::None);
        }
        let (word, rest) = cell.split_once(':')?;
        let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty())?;
        match word {
            "not yet" => Some(Self::NotYet(rest)),
            "rest" => Some(Self::Rest(rest)),
            "excused" => Some(Self::Excused(rest)),
            _ => None,
        }
    }
}

/// Whether a row is proved, in the order of the closing line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Proved,
    NotYet,
    Excused,
    /// Neither a test nor a remark.
    Missing,
}

/// Shows the table with its tests.
///
/// Fails when table and tests contradict each other.
pub(crate) fn run(progress: &Progress, workspace: &Workspace) -> Result<ExitCode> {
    let comparison = compare(workspace)?;
    progress.print(&comparison.listing());
    for fault in &comparison.faults {
        progress.say(format_args!("{fault}"));
    }
    progress.print(&comparison.closing_line());
    Ok(if comparison.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same comparison as one check of the tests: prints only faults and sums.
pub(crate) fn check(progress: &Progress, workspace: &Workspace) -> Result<bool> {
    let comparison = compare(workspace)?;
    for fault in &comparison.faults {
        progress.say(format_args!("{fault}"));
    }
    progress.say(format_args!("rows: {}", comparison.closing_line().trim_end()));
    Ok(comparison.faults.is_empty())
}

fn compare(workspace: &Workspace) -> Result<Comparison> {
    let path = workspace.root.join(TABLE);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rows = read_table(&text)?;
    let tests = tests_of(&workspace.root)?;
    let mut comparison = Comparison::new(rows, &tests);
    comparison.faults.extend(comparison.missing_rows());
    Ok(comparison)
}

fn tests_of(root: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for folder in SOURCES {
        named::find(root, &root.join(folder), &mut tests)?;
    }
    Ok(tests)
}

/// The names of all tests of a checkout.
#[cfg(test)]
pub(crate) fn all_tests(root: &Path) -> Result<Vec<String>> {
    Ok(tests_of(root)?.into_iter().map(|test| test.name).collect())
}

/// Rows, their tests, and the contradictions between them.
struct Comparison {
    rows: Vec<(Row, Vec<Test>)>,
    faults: Vec<String>,
}

impl Comparison {
    fn new(rows: Vec<Row>, tests: &[Test]) -> Self {
        let mut by_row: BTreeMap<Number, Vec<Test>> = BTreeMap::new();
        for test in tests {
            for number in test.rows() {
                by_row.entry(number).or_default().push(test.clone());
            }
        }
        let mut faults = Vec::new();
        let rows: Vec<_> = rows
            .into_iter()
            .map(|row| {
                let proofs = by_row.remove(&row.number).unwrap_or_default();
                faults.extend(fault(&row, proofs.first()));
                (row, proofs)
            })
            .collect();
        for (number, proofs) in by_row {
            let name = proofs.first().map_or("", |test| &test.name);
            faults.push(format!("`{name}` names {number}, which is not a row of {TABLE}"));
        }
        Self { rows, faults }
    }

    /// Rows of the specification that the table lacks.
    fn missing_rows(&self) -> Vec<String> {
        let is_there = |number: Number| self.rows.iter().any(|(row, _)| row.number == number);
        let all = [Kind::Failure, Kind::Hardening]
            .into_iter()
            .flat_map(|kind| (1..=kind.count()).map(move |number| Number { kind, number }));
        all.filter(|number| !is_there(*number))
            .map(|number| format!("{TABLE} lacks the row {number}"))
            .collect()
    }

    fn listing(&self) -> String {
        let mut text = String::new();
        for (row, proofs) in &self.rows {
            let Row { number, title, remark } = row;
            let word = match verdict(row, proofs) {
                Verdict::Proved => "proved",
                Verdict::NotYet => "not yet",
                Verdict::Excused => "excused",
                Verdict::Missing => "MISSING",
            };
            text.push_str(&format!("{word:<8}{number:<5}{title}\n"));
            match remark {
                Remark::None => {}
                Remark::NotYet(feature) => {
                    text.push_str(&format!("             waits for: {feature}\n"));
                }
                Remark::Rest(feature) => {
                    text.push_str(&format!("             the rest waits for: {feature}\n"));
                }
                Remark::Excused(reason) => {
                    text.push_str(&format!("             no test: {reason}\n"));
                }
            }
            for Test { file, name } in proofs {
                text.push_str(&format!("             {file}: {name}\n"));
            }
        }
        text
    }

    fn closing_line(&self) -> String {
        let sums = |kind| {
            let count = |wanted| {
                let of_kind = self.rows.iter().filter(|(row, _)| row.number.kind == kind);
                of_kind.filter(|(row, proofs)| verdict(row, proofs) == wanted).count()
            };
            let missing = match count(Verdict::Missing) {
                0 => String::new(),
                some => format!(", {some} missing"),
            };
            format!(
                "{} proved, {} not yet, {} excused{missing}",
                count(Verdict::Proved),
                count(Verdict::NotYet),
                count(Verdict::Excused)
            )
        };
        format!(
            "failure cases: {}; hardening rows: {}\n",
            sums(Kind::Failure),
            sums(Kind::Hardening)
        )
    }
}

fn verdict(row: &Row, proofs: &[Test]) -> Verdict {
    match (&row.remark, proofs.is_empty()) {
        (_, false) => Verdict::Proved,
        (Remark::NotYet(_), true) => Verdict::NotYet,
        (Remark::Excused(_), true) => Verdict::Excused,
        (Remark::None | Remark::Rest(_), true) => Verdict::Missing,
    }
}

/// What contradicts between a row and its first test.
fn fault(row: &Row, proof: Option<&Test>) -> Option<String> {
    let number = row.number;
    match (proof, &row.remark) {
        (None, Remark::None | Remark::Rest(_)) => Some(format!(
            "{number} has no test: name one `{}_…`, or write `not yet: FEATURE` in {TABLE}",
            number.to_string().to_lowercase()
        )),
        (Some(test), Remark::NotYet(_) | Remark::Excused(_)) => Some(format!(
            "{number} is proved by `{}`: empty its last cell in {TABLE}, or write `rest: FEATURE`",
            test.name
        )),
        (None, Remark::NotYet(_) | Remark::Excused(_))
        | (Some(_), Remark::None | Remark::Rest(_)) => None,
    }
}

/// Every line of the table that begins with a row's name.
fn read_table(text: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines() {
        let Some(inside) = line.trim().strip_prefix('|') else { continue };
        let mut cells = inside.split('|').map(str::trim);
        let Some(number) = cells.next().and_then(Number::read) else { continue };
        let (Some(title), Some(remark)) = (cells.next(), cells.next()) else {
            bail!("{TABLE}: {number} needs three cells: row, what it asks, remark");
        };
        if title.is_empty() {
            bail!("{TABLE}: {number} does not say what it asks");
        }
        if rows.iter().any(|row| row.number == number) {
            bail!("{TABLE}: {number} stands there twice");
        }
        let Some(remark) = Remark::read(remark) else {
            bail!(
                "{TABLE}: the last cell of {number} is `{remark}`; write nothing, `not yet: \
                 FEATURE`, `rest: FEATURE` or `excused: REASON`"
            );
        };
        rows.push(Row { number, title: title.into(), remark });
    }
    if rows.is_empty() {
        bail!("{TABLE} has no rows: `| F1 | what it asks | remark |`");
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(table: &str, names: &[&str]) -> Comparison {
        let tests: Vec<Test> =
            names.iter().map(|name| Test { file: "a.rs".into(), name: (*name).into() }).collect();
        Comparison::new(read_table(table).unwrap(), &tests)
    }

    const TABLE_OF_TWO: &str = "| Row | a | b |\n|---|---|---|\n| F1 | one | |\n\
                                | H2 | two | not yet: clone |\n| H3 | three | rest: clone |\n";

    #[test]
    fn a_row_needs_a_test_or_a_remark_and_not_both() {
        assert_eq!(compared(TABLE_OF_TWO, &["f1_a", "H3: b"]).faults, [""; 0]);
        let missing = compared(TABLE_OF_TWO, &["f1_a"]).faults;
        assert!(missing.len() == 1 && missing[0].contains("H3 has no test"), "{missing:?}");
        let both = compared(TABLE_OF_TWO, &["f1_h2_a", "h3_b"]).faults;
        assert!(both.len() == 1 && both[0].contains("H2 is proved by `f1_h2_a`"), "{both:?}");
        let foreign = compared(TABLE_OF_TWO, &["f1_a", "h3_b", "h4_c"]).faults;
        assert!(foreign.len() == 1 && foreign[0].contains("names H4"), "{foreign:?}");
    }

    #[test]
    fn each_row_is_told_as_proved_not_yet_or_excused() {
        let shown = compared(TABLE_OF_TWO, &["f1_a", "h3_b"]);
        assert_eq!(
            shown.closing_line(),
            "failure cases: 1 proved, 0 not yet, 0 excused; hardening rows: 1 proved, 1 not yet, 0 \
             excused\n"
        );
        let listing = shown.listing();
        for line in ["proved  F1   one", "not yet H2   two", "the rest waits for: clone"] {
            assert!(listing.contains(line), "{line}: {listing}");
        }
    }

    #[test]
    fn every_row_of_the_specification_is_asked_for() {
        let missing = compared(TABLE_OF_TWO, &[]).missing_rows();
        assert_eq!(missing.len(), 90 + 146 - 3);
        assert!(missing.iter().any(|fault| fault.ends_with("lacks the row H146")), "{missing:?}");
    }

    #[test]
    fn a_damaged_table_is_told_with_its_row() {
        let error = |table: &str| read_table(table).unwrap_err().to_string();
        assert!(error("no table").contains("has no rows"));
        assert!(error("| F1 | one | |\n| F1 | two | |").contains("F1 stands there twice"));
        assert!(error("| F1 | one").contains("three cells"));
        assert!(error("| F1 | one | later |").contains("last cell of F1 is `later`"));
        assert!(error("| F1 | one | excused: |").contains("last cell of F1"));
    }
}
