//! The configuration as an operator sees it.
//!
//! Tests give files and variables, and check values, warnings and problems.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how they fail"
)]

mod corpus;
mod edits;
mod json_schema;
mod posture;
mod secrecy;
mod shown;
mod unread;
mod variables;
mod warnings;

use std::fs;
use std::path::PathBuf;
use svc_config::{ConfigErrors, Environment, Loaded, find, load};
use tempfile::TempDir;

/// A private directory with `projects/` in it and room for `svc.yml`.
pub(crate) struct Fixture {
    dir: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("projects")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        make_private(&path);
        path
    }

    /// `HOME` inside the house, and the given variables.
    pub(crate) fn environment(&self, variables: &[(&str, &str)]) -> Environment {
        let home = ("HOME".to_owned(), self.path("home").into_os_string());
        variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned().into()))
            .chain([home])
            .collect()
    }

    /// Loads `content` as the configuration, with these variables.
    pub(crate) fn load_bytes(
        &self,
        content: impl AsRef<[u8]>,
        variables: &[(&str, &str)],
    ) -> Result<Loaded, ConfigErrors> {
        let file = self.write("svc.yml", content);
        let environment = self.environment(variables);
        load(&find(Some(&file), &environment, self.dir.path()).unwrap(), &environment)
    }

    /// As [`Fixture::load_bytes`], with a sound `projects_root` before `content`.
    pub(crate) fn load(
        &self,
        content: &str,
        variables: &[(&str, &str)],
    ) -> Result<Loaded, ConfigErrors> {
        self.load_bytes(format!("projects_root: projects\n{content}"), variables)
    }
}

/// The house's own `projects_root` line precedes the content of every table row.
pub(crate) const FIRST_LINE: usize = 2;

#[track_caller]
pub(crate) fn good(content: &str) -> Loaded {
    Fixture::new().load(content, &[]).unwrap_or_else(|errors| panic!("{content:?}: {errors}"))
}

/// The only problem, without the directory it was loaded from.
#[track_caller]
pub(crate) fn only_problem(fixture: &Fixture, errors: &ConfigErrors) -> String {
    let lines = errors.lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    relative(fixture, &lines[0])
}

pub(crate) fn relative(fixture: &Fixture, line: &str) -> String {
    let dir = fixture.dir.path().to_string_lossy().into_owned();
    line.replace(&format!("{dir}/"), "").replace(&dir, ".")
}

/// Every warning, without the directory.
pub(crate) fn warnings(fixture: &Fixture, loaded: &Loaded) -> Vec<String> {
    loaded.warnings.iter().map(|warning| relative(fixture, &warning.to_string())).collect()
}

fn make_private(path: &std::path::Path) {
    set_mode(path, 0o600);
}

#[cfg(unix)]
pub(crate) fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
pub(crate) fn set_mode(_path: &std::path::Path, _mode: u32) {}
