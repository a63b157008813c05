//! A configuration that is being loaded.
//! What is set so far, and what is wrong with it.

use crate::environment::Environment;
use crate::find::Step;
use crate::loaded::Origin;
use crate::report::{Location, Problem, Warning, WarningKind};
use crate::schema::Leaf;
use crate::setting::{ProjectSettings, Setting, Settings, Source};
use crate::value::PathRoots;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A configuration that is being loaded.
pub(super) struct Draft {
    pub(super) file: Option<PathBuf>,
    pub(super) step: Option<Step>,
    pub(super) origin: Origin,
    pub(super) roots: PathRoots,
    pub(super) settings: Settings,
    pub(super) projects: ProjectSettings,
    /// Sections of which something is written.
    pub(super) sections: BTreeSet<String>,
    /// Keys with a problem: checks that need them are skipped.
    pub(super) failed: BTreeSet<&'static str>,
    /// The old spelling of `claude.launch_mode`, from the file or the environment.
    pub(super) old_launch_mode: Option<Setting>,
    /// Locations of the removed key `database_url`.
    pub(super) database_url: Vec<Location>,
    pub(super) problems: Vec<Problem>,
    /// Number of problems that say the service would be open to everybody.
    pub(super) exposures: usize,
    pub(super) warnings: Vec<Warning>,
}

impl Draft {
    pub(super) fn new(file: Option<PathBuf>, base: PathBuf, environment: &Environment) -> Self {
        Self {
            file,
            step: None,
            origin: Origin::default(),
            roots: PathRoots { home: environment.home().map(Path::to_path_buf), base },
            settings: Settings::new(),
            projects: ProjectSettings::new(),
            sections: BTreeSet::new(),
            failed: BTreeSet::new(),
            old_launch_mode: None,
            database_url: Vec::new(),
            problems: Vec::new(),
            exposures: 0,
            warnings: Vec::new(),
        }
    }

    /// The file as a whole.
    pub(super) fn whole(&self) -> Location {
        self.file.clone().map_or(Location::Nowhere, Location::File)
    }

    /// A line of the file.
    pub(super) fn line(&self, line: usize) -> Location {
        self.file.clone().map_or(Location::Nowhere, |path| Location::Line(path, line))
    }

    /// Where the value of a key was written.
    pub(super) fn location_of(&self, key: &str) -> Location {
        match self.settings.get(key).map(|setting| &setting.source) {
            Some(Source::File { line }) => self.line(*line),
            Some(Source::Env { name }) => Location::Variable(name.clone()),
            Some(Source::Default) | None => self.whole(),
        }
    }

    pub(super) fn problem(
        &mut self,
        location: Location,
        key: impl Into<String>,
        reason: impl Into<String>,
    ) {
        self.problems.push(Problem { location, key: Some(key.into()), reason: reason.into() });
    }

    /// A key whose value cannot be used.
    pub(super) fn reject(
        &mut self,
        leaf: &'static Leaf,
        location: Location,
        key: String,
        reason: String,
    ) {
        self.failed.insert(leaf.key);
        self.problem(location, key, reason);
    }

    pub(super) fn warn(
        &mut self,
        kind: WarningKind,
        location: Location,
        key: impl Into<String>,
        message: impl Into<String>,
    ) {
        let keys = vec![key.into()];
        self.warnings.push(Warning { kind, location, keys, message: message.into() });
    }
}

/// `reason`, followed by the rejected text unless the key is a secret.
pub(super) fn with_value(leaf: &Leaf, reason: &str, raw: &str) -> String {
    if leaf.secret || raw.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason} (found {})", crate::report::shown_value(raw))
    }
}
