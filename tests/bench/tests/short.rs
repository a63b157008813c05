//! The measures work: right answers, no gap in a stream, every process ends.
//!
//! Times are not checked.

#![expect(clippy::expect_used, reason = "helpers of tests: a panic is how they fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn program(variable: &str, name: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(variable) {
        return named.into();
    }
    // Test executables lie in `deps`, programs one level above.
    let own = std::env::current_exe().expect("the path of this program");
    let beside = own.parent().and_then(Path::parent).map(|dir| dir.join(name));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| {
        panic!("`{name}` is not built; run `cargo build` first, or set {variable}")
    })
}

#[test]
fn every_measure_gets_right_answers_and_leaves_nothing_behind() {
    let run = Command::new(env!("CARGO_BIN_EXE_svc-bench"))
        .arg("--short")
        .env("SVC_BIN", program("SVC_BIN", "svc"))
        .env("SVC_SIM_BIN", program("SVC_SIM_BIN", "svc-agent-sim"))
        .output()
        .expect("the bench runs");
    let (said, words) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{said}{words}");
}
