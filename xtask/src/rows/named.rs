//! Finds the tests of the checkout and the rows that their names begin with.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The name of a row: `F4` or `H32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    pub(super) kind: Kind,
    pub(super) number: u16,
}

/// The two lists of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A failure case of the agent's life cycle.
    Failure,
    /// A hardening row.
    Hardening,
}

impl Kind {
    /// How many rows the specification has, numbered from 1.
    pub(super) fn count(self) -> u16 {
        match self {
            Self::Failure => 90,
            Self::Hardening => 146,
        }
    }
}

impl Number {
    /// From `F4` or `f4`: one letter and digits.
    pub(super) fn read(text: &str) -> Option<Self> {
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

/// A test and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) file: String,
    pub(super) name: String,
}

impl Test {
    /// The rows at the beginning of the name: `f4_f5_words` or `H4 H5: words`.
    pub(super) fn rows(&self) -> impl Iterator<Item = Number> {
        let separators = |c: char| !c.is_ascii_alphanumeric();
        self.name.split(separators).filter(|word| !word.is_empty()).map_while(Number::read)
    }
}

/// Adds every test below `folder`, in the order of the files' names.
pub(super) fn find(root: &Path, folder: &Path, tests: &mut Vec<Test>) -> Result<()> {
    let shown = || format!("cannot list {}", folder.display());
    let entries = fs::read_dir(folder).with_context(shown)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                find(root, &path, tests)?;
            }
            continue;
        }
        let names: fn(&str) -> Vec<String> = if name.ends_with(".rs") {
            in_rust
        } else if name.ends_with(".test.mjs") {
            in_browser_tests
        } else {
            continue;
        };
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        tests.extend(names(&text).into_iter().map(|name| Test { file: file.clone(), name }));
    }
    Ok(())
}

/// Names of the functions that have a test attribute and no `ignore`.
fn in_rust(source: &str) -> Vec<String> {
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

/// Names of the calls of `test` and `t.test`.
///
/// `test.skip` and `test.todo` are not counted.
fn in_browser_tests(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in source.lines().map(str::trim_start) {
        let line = line.strip_prefix("await ").unwrap_or(line);
        let line = line.strip_prefix("t.").unwrap_or(line);
        let Some(rest) = line.strip_prefix("test(") else { continue };
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"' | '`')) else {
            continue;
        };
        if let Some(name) = rest.split(quote).nth(1) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_its_rows() {
        let rows = |name: &str| {
            let test = Test { file: String::new(), name: name.into() };
            test.rows().map(|row| row.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(rows("f4_a_name"), ["F4"]);
        assert_eq!(rows("h32_h35_no_secret_of_h1"), ["H32", "H35"]);
        assert_eq!(rows("H4 H5: a foreign page of H9"), ["H4", "H5"]);
        assert_eq!(rows("H4, H5 – a foreign page"), ["H4", "H5"]);
        assert_eq!(rows("half_a_character"), [""; 0]);
        assert_eq!(rows("f_5"), [""; 0]);
    }

    #[test]
    fn only_functions_that_are_run_as_tests_count() {
        let source = "#[test]\nfn f1_a() {}\nfn f2_helper() {}\n#[tokio::test(flavor = \"x\")]\n\
                      async fn f3_b() {}\n#[test]\n#[ignore = \"later\"]\nfn f4_c() {}\n\
                      #[cfg(test)]\nmod tests {}\nfn f5_d() {}\n";
        assert_eq!(in_rust(source), ["f1_a", "f3_b"]);
    }

    #[test]
    fn browser_tests_are_found_by_their_first_argument() {
        let source = "test('H4 H5: a page', async () => {\n  test(`H1: of ${name}`, f);\n\
                      test.skip('H2: off', f);\n  await t.test(\"H3: inner\", f);\ntest(name, f);\n";
        assert_eq!(in_browser_tests(source), ["H4 H5: a page", "H1: of ${name}", "H3: inner"]);
    }
}
