//! Loads a configuration from a file and an environment.
//!
//! One pass finds every problem. `file` and `variables` collect what is set, `defaults` adds the
//! rest and builds the types, `check` examines what single values cannot show.

mod check;
mod defaults;
mod draft;
mod file;
mod hash_quality;
mod variables;

pub use check::{is_password_hash, judge_exposure};
pub(crate) use variables::items_of;

use crate::environment::Environment;
use crate::find::Found;
use crate::held::Config;
use crate::loaded::{Known, Loaded, Origin};
use crate::report::{ConfigErrors, Problem, Warning, WarningKind};
use crate::secret::Secret;
use crate::value::Value;
use draft::Draft;
use std::path::Path;
use std::sync::Arc;

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
    let text = Secret::new(String::from_utf8_lossy(bytes).into_owned());
    draft.origin = Origin(Some(Box::new(Known {
        found: found.clone(),
        environment: environment.clone(),
        text,
    })));
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

impl Origin {
    /// Reads the configuration again; none for one that was given as text.
    ///
    /// Blocking as [`load`].
    #[must_use]
    pub fn read_again(&self) -> Option<Result<Loaded, ConfigErrors>> {
        let Known { found, environment, .. } = self.0.as_deref()?;
        Some(load(found, environment))
    }

    /// Reads the text of that time again, to compare it with the file of now.
    ///
    /// Blocking as [`load`].
    #[must_use]
    pub fn as_it_was(&self) -> Option<Result<Loaded, ConfigErrors>> {
        let Known { found, environment, text } = self.0.as_deref()?;
        Some(load_candidate(text.expose(), found, environment))
    }
}

impl Draft {
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
            config: Arc::new(Config::new(config)),
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
}
