//! What `cargo xtask package` made is unpacked, installed and used (H141).
//!
//! `cargo xtask package --check` runs these tests: it says where the packages lie and what to
//! check them with. They need root, because they enter roots of their own.

mod bridge;
mod debian;
mod empty_root;
mod image;
mod listed;
mod programs;
mod room;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where the packages lie.
fn packages() -> PathBuf {
    named("SVC_PACKAGES")
}

/// The simulator of the agent as a static program, which runs in any root.
fn simulator() -> PathBuf {
    named("SVC_STATIC_SIM")
}

/// What `.ci/packages` put there.
fn tools() -> PathBuf {
    named("SVC_PACKAGE_TOOLS")
}

fn named(variable: &str) -> PathBuf {
    let found = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    found.unwrap_or_else(|| panic!("{variable} names nothing; run `cargo xtask package --check`"))
}

/// The one package whose name ends like this.
fn package(suffix: &str) -> PathBuf {
    let listed = fs::read_dir(packages()).expect("a folder of packages");
    let mut paths = listed.map(|entry| entry.expect("an entry").path());
    let found = paths.find(|path| name_of(path).ends_with(suffix));
    found.unwrap_or_else(|| panic!("{} has no *{suffix}", packages().display()))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A program that has to end well; what it printed.
#[track_caller]
fn run(program: &str, args: &[&str]) -> String {
    good(Command::new(program).args(args))
}

#[track_caller]
fn good(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", said(&done));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// All that a program printed.
fn said(done: &Output) -> String {
    let (out, error) = (&done.stdout, &done.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(error))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}
