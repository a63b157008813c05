//! Tests that could prove nothing on this machine, and which of them CI accepts.
//!
//! A Rust test reports its own skip through the package `svc-skip`: a line in a file that
//! `cargo xtask test` names. A browser test reports it in its TAP output.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;

/// The environment variable that names the file.
///
/// The package `svc-skip` has the same constant.
pub(crate) const FILE: &str = "SVC_TEST_SKIPS";
/// The skips that CI accepts, relative to the checkout.
const ALLOWED: &str = ".ci/skips";

/// A test that proved nothing, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Skip {
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Skip {
    pub(crate) fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }

    /// `NAME: REASON`. A name may hold `::`, so the separator is a colon with a space.
    fn read(line: &str) -> Option<Self> {
        let (name, reason) = line.trim().split_once(": ")?;
        (!name.is_empty() && !reason.is_empty()).then(|| Self::new(name, reason))
    }
}

/// Names an empty file for the skips of one run of tests.
pub(crate) fn empty_file(workspace: &Workspace) -> Result<PathBuf> {
    let file = workspace.target.join("xtask/skips");
    fs::create_dir_all(workspace.target.join("xtask"))
        .and_then(|()| fs::write(&file, ""))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// What the tests of one run wrote, each test once.
pub(crate) fn reported(file: &Path) -> Result<Vec<Skip>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut skips: Vec<Skip> = text.lines().filter_map(Skip::read).collect();
    skips.sort();
    skips.dedup_by(|later, first| later.name == first.name);
    Ok(skips)
}

/// Tests with the attribute `ignore`, from the output of `cargo test`.
pub(crate) fn ignored(output: &str) -> Vec<Skip> {
    let of_line = |line: &str| {
        let (name, reason) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
        let reason = reason.trim_start_matches(", ");
        Some(Skip::new(name, if reason.is_empty() { "it is ignored" } else { reason }))
    };
    output.lines().filter_map(of_line).collect()
}

/// Tests with the directive `SKIP` or `TODO`, from TAP.
pub(crate) fn in_tap(output: &str) -> Vec<Skip> {
    let of_line = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("ok ").or_else(|| line.strip_prefix("not ok "))?;
        let (name, reason) = ["# SKIP", "# TODO"].iter().find_map(|mark| line.split_once(mark))?;
        let (_, name) = name.split_once(" - ")?;
        let reason = reason.trim();
        Some(Skip::new(name.trim(), if reason.is_empty() { "it does not say" } else { reason }))
    };
    output.lines().filter_map(of_line).collect()
}

/// The names of the tests that CI may skip.
#[derive(Debug)]
pub(crate) struct Allowed(Vec<String>);

impl Allowed {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let path = workspace.root.join(ALLOWED);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim);
        let mut names = Vec::new();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some(Skip { name, .. }) = Skip::read(line) else {
                bail!("{ALLOWED}: `{line}` is not `NAME: REASON`");
            };
            names.push(name);
        }
        Ok(Self(names))
    }

    /// Whether CI may skip this test.
    ///
    /// `${…}` in a listed name stands for any text, as in the source of a browser test.
    pub(crate) fn accepts(&self, skip: &Skip) -> bool {
        self.0.iter().any(|name| {
            let parts = name.split_once("${");
            match parts.and_then(|(before, rest)| Some((before, rest.split_once('}')?.1))) {
                Some((before, after)) => {
                    skip.name.starts_with(before) && skip.name.ends_with(after)
                }
                None => *name == skip.name,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_reports_twice_is_one_skip() {
        let file = std::env::temp_dir().join(format!("xtask-skips-{}", std::process::id()));
        fs::write(&file, "b::two: no root\na::one: no disk: none\nb::two: no systemd\n").unwrap();
        let skips = reported(&file);
        fs::remove_file(&file).unwrap();
        let wanted = [Skip::new("a::one", "no disk: none"), Skip::new("b::two", "no root")];
        assert_eq!(skips.unwrap(), wanted);
    }

    #[test]
    fn skips_are_read_from_both_runners() {
        let output = "test a::b ... ok\ntest c ... ignored, later\ntest d ... ignored\n";
        let wanted = [Skip::new("c", "later"), Skip::new("d", "it is ignored")];
        assert_eq!(ignored(output), wanted);
        let tap = "ok 1 - a # comment\n    ok 2 - b: c # SKIP other fonts\nok 3 - d # SKIP\n";
        let wanted = [Skip::new("b: c", "other fonts"), Skip::new("d", "it does not say")];
        assert_eq!(in_tap(tap), wanted);
    }

    #[test]
    fn the_list_of_the_repository_names_tests_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let Allowed(allowed) =
            Allowed::parse(&fs::read_to_string(root.join(ALLOWED)).unwrap()).unwrap();
        let mut names = crate::rows::all_tests(&root).unwrap();
        names.sort();
        for name in &allowed {
            let own = name.rsplit("::").next().unwrap();
            assert!(names.iter().any(|known| known == own), "{ALLOWED}: there is no test {name}");
        }
    }

    #[test]
    fn only_listed_skips_are_accepted() {
        let allowed = Allowed::parse("# why\n\na::b: no agent\nthe ${kind} page: fonts\n").unwrap();
        let accepts = |name: &str| allowed.accepts(&Skip::new(name, "whatever"));
        assert!(accepts("a::b") && accepts("the first page"));
        assert!(!accepts("a::c") && !accepts("the first view"));
        let error = Allowed::parse("a::b").unwrap_err().to_string();
        assert!(error.contains("NAME: REASON"), "{error}");
    }
}
