//! The agent's own files, by project, in the home that the agent's children see.

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

    /// Whether the agent may work in a directory. Both paths are real paths.
    /// The agent config file is read only after a change, so this is cheap for thousands of
    /// projects. Blocks briefly.
    #[must_use]
    pub fn trust(&self, path: &Path, git_root: Option<&Path>) -> Trust {
        match self.config().and_then(|config| config.known()) {
            Ok(known) if known.is_trusted(path, git_root) => Trust::Granted,
            Ok(_) => Trust::Missing,
            Err(error) => Trust::Unreadable(error.to_string()),
        }
    }

    /// Grants trust to a directory; returns whether anything was written.
    /// Nothing is written when it is trusted already.
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

    /// Answers the agent's questions about Remote Control in advance, once per process.
    /// A failure is only logged, because the start itself will fail with a better message.
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

    /// The path of a project's pointer. `project` is its real path.
    #[must_use]
    pub fn pointer_file(&self, project: &Path) -> Option<PathBuf> {
        Some(self.home().ok()?.pointer_file(project.to_str()?))
    }

    /// The permission mode that a settings file sets for a start without a flag.
    /// `None` when none sets one. Blocks.
    #[must_use]
    pub fn default_mode(&self, project: &Path) -> Option<DefaultMode> {
        Scopes::read(&self.home().ok()?, project).default_mode()
    }

    /// Whether a start without `--permission-mode` may bypass permissions.
    /// True if a settings file says so, or if one that could say so is not understood. Blocks.
    #[must_use]
    pub fn may_bypass(&self, project: &Path) -> bool {
        self.home().is_ok_and(|home| Scopes::read(&home, project).may_bypass())
    }

    /// The hooks and servers that are active in a project. Blocks.
    #[must_use]
    pub fn project_settings(&self, project: &Path) -> ProjectSettings {
        let Ok(home) = self.home() else { return ProjectSettings::default() };
        let known = self.config().and_then(|config| config.known()).unwrap_or_default();
        Scopes::read(&home, project).project_settings(&known, project)
    }
}
