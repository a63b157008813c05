//! The agent's own files as the rest of the service asks about them: by project, through the home
//! that the agent's children see.

use crate::cli::AgentCli;
use crate::environment::Variables;
use crate::pointer::{self, Backup, Found, Pointer, StripError, Stripped};
use crate::settings::{DefaultMode, ProjectSettings, Scopes};
use crate::trust::TrustError;
use std::path::{Path, PathBuf};
use svc_domain::admission::Trust;

impl AgentCli {
    /// The environment of children, without launch id.
    #[must_use]
    pub fn environment(&self) -> Variables {
        self.setup().env.clone()
    }

    /// Whether the agent may work in a directory. Both paths are real paths. Reads the agent config
    /// file after a change only, else looks at it once: cheap for thousands of projects. Blocks for
    /// the look.
    #[must_use]
    pub fn trust(&self, path: &Path, git_root: Option<&Path>) -> Trust {
        match self.config().and_then(|config| config.known()) {
            Ok(known) if known.is_trusted(path, git_root) => Trust::Granted,
            Ok(_) => Trust::Missing,
            Err(error) => Trust::Unreadable(error.to_string()),
        }
    }

    /// Grants trust to a directory; nothing is written when it is trusted. Returns whether it was
    /// written.
    ///
    /// # Errors
    /// See [`TrustError`]. The file is as it was.
    pub async fn grant_trust(
        &self,
        path: &Path,
        git_root: Option<&Path>,
    ) -> Result<bool, TrustError> {
        self.config()?.grant(path, git_root).await
    }

    /// Answers the agent's questions about Remote Control ahead of it, once per process. A failure
    /// is logged: the start itself will say more.
    pub async fn enable_remote_control(&self) {
        if self.is_enabled() {
            return;
        }
        let enabled = match self.config() {
            Ok(config) => config.enable_remote_control().await,
            Err(error) => Err(error),
        };
        match enabled {
            Ok(_) => self.set_enabled(),
            Err(error) => tracing::warn!(
                error = %error,
                "could not answer the agent's question about Remote Control ahead of it"
            ),
        }
    }

    /// The bridge pointer of a project (real path), if there is a readable one. Blocks.
    #[must_use]
    pub fn pointer(&self, project: &Path) -> Option<Pointer> {
        match pointer::read(&self.pointer_file(project)?) {
            Found::Pointer(pointer) => Some(pointer),
            Found::Nothing | Found::Malformed(_) => None,
            Found::Unreadable(error) => {
                tracing::warn!(
                    path = %project.display(), error = %error,
                    "the agent's bridge pointer of a project cannot be read"
                );
                None
            }
        }
    }

    /// Takes the session out of a pointer that the caller found not live. Blocks.
    ///
    /// # Errors
    /// See [`StripError`].
    pub fn strip_pointer(
        &self,
        project: &Path,
        judged: &Pointer,
        backup: Backup,
    ) -> Result<Stripped, StripError> {
        match self.pointer_file(project) {
            Some(file) => pointer::strip(&file, judged, backup),
            None => Ok(Stripped::Nothing),
        }
    }

    /// Where the pointer of a project (real path) lies.
    #[must_use]
    pub fn pointer_file(&self, project: &Path) -> Option<PathBuf> {
        Some(self.home().ok()?.pointer_file(project.to_str()?))
    }

    /// The permission mode that a start without `--permission-mode` gets from a settings file;
    /// `None` when none sets one. Blocks.
    #[must_use]
    pub fn default_mode(&self, project: &Path) -> Option<DefaultMode> {
        Scopes::read(&self.home().ok()?, project).default_mode()
    }

    /// Whether a start without `--permission-mode` may bypass permissions: a settings file says so,
    /// or one that could is not understood. Blocks.
    #[must_use]
    pub fn may_bypass(&self, project: &Path) -> bool {
        self.home().is_ok_and(|home| Scopes::read(&home, project).may_bypass())
    }

    /// Hooks and servers at work in a project. Blocks.
    #[must_use]
    pub fn project_settings(&self, project: &Path) -> ProjectSettings {
        let Ok(home) = self.home() else { return ProjectSettings::default() };
        let known = self.config().and_then(|config| config.known()).unwrap_or_default();
        Scopes::read(&home, project).project_settings(&known, project)
    }
}
