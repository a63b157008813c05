//! How a test says that this machine cannot prove what it asks.
//!
//! The test runner of Rust knows no skip at run time: a test that returns early counts as passed.
//! [`skip!`] returns early too, and adds a line to the file named by [`FILE`]. `cargo xtask test`
//! sets that variable, reads the file and counts these tests as skipped.

use std::fs::File;
use std::io::Write as _;

/// The environment variable that names the file for the skips of a run.
pub const FILE: &str = "SVC_TEST_SKIPS";

/// Reason of tests that start a service which ends itself at a named point.
pub const NO_FAIL_POINTS: &str = "SVC_FAILPOINTS_BIN names no build with fail points";

/// Ends the test that calls it as skipped, with a reason in the form of `format!`.
///
/// ```no_run
/// fn a_test() {
///     if !std::path::Path::new("/dev/fuse").exists() {
///         svc_skip::skip!("this machine has no FUSE");
///     }
/// }
/// ```
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {{
        fn here() {}
        $crate::record(::std::any::type_name_of_val(&here), &::std::format!($($reason)+));
        return;
    }};
}

/// Writes the line of one skip to standard error and to the file.
///
/// Called by [`skip!`].
///
/// # Panics
/// When the named file cannot be written: a skip that nobody counts would look like a proof.
#[expect(clippy::print_stderr, clippy::expect_used, reason = "only tests call it")]
pub fn record(here: &str, reason: &str) {
    let line = line(here, reason);
    eprint!("skipped: {line}");
    let Some(path) = std::env::var_os(FILE).filter(|path| !path.is_empty()) else { return };
    // One write in append mode: tests of several programs do not mix their lines.
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("the file of skipped tests can be written");
}

/// `crate::module::test: reason`, on one line.
fn line(here: &str, reason: &str) -> String {
    let test = here.strip_suffix("::here").unwrap_or(here).replace("::{{closure}}", "");
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{test}: {reason}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_test_and_its_reason() {
        let here = "blackbox::systemd::f81_a_unit::{{closure}}::here";
        assert_eq!(line(here, "no\n systemd"), "blackbox::systemd::f81_a_unit: no systemd\n");
    }
}
