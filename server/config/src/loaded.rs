//! A configuration that may be used.
//! With its warnings and the source of each value.

use crate::environment::Environment;
use crate::find::Found;
use crate::held::Config;
use crate::report::Warning;
use crate::secret::Secret;
use crate::setting::{ProjectSettings, Settings, Source};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
pub struct Origin(pub(crate) Option<Box<Known>>);

/// What a configuration was read from.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) found: Found,
    pub(crate) environment: Environment,
    /// The text of the file at that time, which may hold secrets.
    pub(crate) text: Secret,
}

impl Origin {
    /// The file; none for a configuration that was given as text.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref().map(|known| known.found.path.as_path())
    }

    /// The file with its search list, and the environment.
    #[must_use]
    pub fn parts(&self) -> Option<(&Found, &Environment)> {
        self.0.as_deref().map(|known| (&known.found, &known.environment))
    }
}

impl Loaded {
    /// Whether the file itself holds a secret.
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        crate::table::leaves().filter(|leaf| leaf.secret).any(|leaf| {
            self.settings.get(leaf.key).is_some_and(|setting| {
                matches!(setting.source, Source::File { .. }) && !setting.value.is_nothing()
            })
        })
    }

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
