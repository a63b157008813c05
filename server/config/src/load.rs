//! Loads a configuration from a file and an environment.
//!
//! One pass finds every problem. `file` and `variables` collect what is set, `defaults` adds the
//! rest and builds the types, `check` examines what single values cannot show.

mod check;
mod defaults;
mod file;
mod variables;

pub use check::{is_password_hash, judge_exposure};

use crate::config::Config;
use crate::environment::Environment;
use crate::find::{Found, Step};
use crate::report::{ConfigErrors, Location, Problem, Warning, WarningKind};
use crate::schema::Leaf;
use crate::value::{PathRoots, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_shared::ids::ProjectName;

/// Where the value of a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The default: nothing sets the key.
    Default,
    /// The file.
    File {
        /// Line of the key, from 1.
        line: usize,
    },
    /// The environment.
    Env {
        /// Name of the variable that decided.
        name: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { line } => write!(f, "file:{line}"),
            Self::Env { name } => write!(f, "env:{name}"),
        }
    }
}

/// The value of a key and its source.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) source: Source,
}

pub(crate) type Settings = BTreeMap<&'static str, Setting>;
pub(crate) type ProjectSettings = BTreeMap<ProjectName, Settings>;

/// A configuration that may be used.
#[derive(Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Arc<Config>,
    /// What the operator should know, in the order of the checks.
    pub warnings: Vec<Warning>,
    /// The file it came from; none when it was given as text.
    pub path: Option<PathBuf>,
    /// The means to read it again.
    pub origin: Origin,
    pub(crate) settings: Settings,
    pub(crate) projects: ProjectSettings,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings hold secrets as plain values, so they are left out.
        f.debug_struct("Loaded")
            .field("config", &self.config)
            .field("warnings", &self.warnings)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The file and the environment of a configuration, to read it again later.
#[derive(Debug, Clone, Default)]
pub struct Origin(Option<Box<(Found, Environment)>>);

impl Origin {
    /// Reads the configuration again; none for one that was given as text.
    ///
    /// Blocking as [`load`].
    #[must_use]
    pub fn read_again(&self) -> Option<Result<Loaded, ConfigErrors>> {
        let (found, environment) = self.0.as_deref()?;
        Some(load(found, environment))
    }

    /// The file; none for a configuration that was given as text.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref().map(|(found, _)| found.path.as_path())
    }
}

impl Loaded {
    /// Where the value of a key comes from; none for a key the schema does not have.
    ///
    /// A key of a project contains its name: `projects.api.restart`.
    #[must_use]
    pub fn source(&self, key: &str) -> Option<&Source> {
        let project = || {
            let (name, last) = key.strip_prefix("projects.")?.rsplit_once('.')?;
            let settings = self.projects.get(name)?;
            settings.iter().find(|(pattern, _)| pattern.rsplit('.').next() == Some(last))
        };
        let setting = self.settings.get(key).or_else(|| project().map(|(_, setting)| setting))?;
        Some(&setting.source)
    }
}

/// Reads the configuration that a search found.
///
/// Blocking: reads the file and the files that variables name, and examines the directories that
/// they name. Creates and writes nothing.
///
/// # Errors
/// All problems at once, each with its location and key, none with a secret.
pub fn load(found: &Found, environment: &Environment) -> Result<Loaded, ConfigErrors> {
    read_as(&file::read(&found.path)?, found, environment)
}

fn read_as(bytes: &[u8], found: &Found, environment: &Environment) -> Result<Loaded, ConfigErrors> {
    let base = found.path.parent().unwrap_or(Path::new("/")).to_path_buf();
    let mut draft = Draft::new(Some(found.path.clone()), base, environment);
    draft.step = Some(found.step);
    draft.origin = Origin(Some(Box::new((found.clone(), environment.clone()))));
    draft.finish(bytes, environment)
}

/// Reads a text as the content of a file that need not exist yet.
///
/// Blocking as [`load`].
///
/// # Errors
/// As [`load`].
pub fn load_candidate(
    text: &str,
    found: &Found,
    environment: &Environment,
) -> Result<Loaded, ConfigErrors> {
    read_as(text.as_bytes(), found, environment)
}

/// Reads a configuration from text and ignores the environment.
///
/// Relative paths are relative to `directory`. `state_dir` must be set, since its default comes
/// from the environment. Blocking as [`load`].
///
/// # Errors
/// As [`load`].
pub fn load_text(text: &str, directory: &Path) -> Result<Loaded, ConfigErrors> {
    let environment = Environment::empty();
    Draft::new(None, directory.to_path_buf(), &environment).finish(text.as_bytes(), &environment)
}

/// A configuration that is being loaded.
struct Draft {
    file: Option<PathBuf>,
    step: Option<Step>,
    origin: Origin,
    roots: PathRoots,
    settings: Settings,
    projects: ProjectSettings,
    /// Sections of which something is written.
    sections: BTreeSet<String>,
    /// Keys with a problem: checks that need them are skipped.
    failed: BTreeSet<&'static str>,
    /// The old spelling of `claude.launch_mode`, from the file or the environment.
    old_launch_mode: Option<Setting>,
    /// Locations of the removed key `database_url`.
    database_url: Vec<Location>,
    problems: Vec<Problem>,
    /// Number of problems that say the service would be open to everybody.
    exposures: usize,
    warnings: Vec<Warning>,
}

impl Draft {
    fn new(file: Option<PathBuf>, base: PathBuf, environment: &Environment) -> Self {
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

    fn finish(mut self, bytes: &[u8], environment: &Environment) -> Result<Loaded, ConfigErrors> {
        self.apply_file(bytes)?;
        self.apply_variables(environment);
        self.add_defaults(environment);
        let config = self.build();
        let config = config.map(|config| self.check(config, environment));
        self.apply_strictness();
        let Some(config) = config else {
            return Err(ConfigErrors::new(self.problems, self.warnings));
        };
        let is_sound = self.problems.len() == self.exposures;
        let loaded = Loaded {
            config: Arc::new(config),
            warnings: self.warnings,
            path: self.file,
            origin: self.origin,
            settings: self.settings,
            projects: self.projects,
        };
        if self.problems.is_empty() {
            return Ok(loaded);
        }
        let mut errors = ConfigErrors::new(self.problems, loaded.warnings.clone());
        errors.exposed = is_sound.then(|| Box::new(loaded));
        Err(errors)
    }

    /// With `config_strict`, an unknown key is a reason not to start.
    fn apply_strictness(&mut self) {
        let is_strict = self
            .settings
            .get("config_strict")
            .is_some_and(|setting| setting.value == Value::Bool(true));
        if !is_strict {
            return;
        }
        let (unknown, kept) = std::mem::take(&mut self.warnings)
            .into_iter()
            .partition(|warning| matches!(warning.kind, WarningKind::UnknownKey { .. }));
        self.warnings = kept;
        let unknown: Vec<Warning> = unknown;
        self.problems.extend(unknown.into_iter().map(|warning| Problem {
            location: warning.location,
            key: warning.keys.into_iter().next(),
            reason: format!("{} (config_strict is on)", warning.message),
        }));
    }

    /// The file as a whole.
    fn whole(&self) -> Location {
        self.file.clone().map_or(Location::Nowhere, Location::File)
    }

    /// A line of the file.
    fn line(&self, line: usize) -> Location {
        self.file.clone().map_or(Location::Nowhere, |path| Location::Line(path, line))
    }

    /// Where the value of a key was written.
    fn location_of(&self, key: &str) -> Location {
        match self.settings.get(key).map(|setting| &setting.source) {
            Some(Source::File { line }) => self.line(*line),
            Some(Source::Env { name }) => Location::Variable(name.clone()),
            Some(Source::Default) | None => self.whole(),
        }
    }

    fn problem(&mut self, location: Location, key: impl Into<String>, reason: impl Into<String>) {
        self.problems.push(Problem { location, key: Some(key.into()), reason: reason.into() });
    }

    /// A key whose value cannot be used.
    fn reject(&mut self, leaf: &'static Leaf, location: Location, key: String, reason: String) {
        self.failed.insert(leaf.key);
        self.problem(location, key, reason);
    }

    fn warn(
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
fn with_value(leaf: &Leaf, reason: &str, raw: &str) -> String {
    if leaf.secret || raw.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason} (found {})", crate::report::shown_value(raw))
    }
}
