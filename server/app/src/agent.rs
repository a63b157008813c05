//! The agent as the use-cases need it.
//! Program, environment, trust, pointer, settings.

use crate::tasks::blocking;
use crate::{AppError, Class};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_agent::binary::{BinaryError, resolve};
use svc_agent::cli::{AgentCli, Version};
use svc_agent::environment::Variables;
use svc_agent::home::AgentHome;
use svc_agent::pointer::{self, Backup, Found, Pointer, StripError, Stripped};
use svc_agent::role::running_version;
use svc_agent::settings::{DefaultMode, ProjectSettings};
use svc_agent::trust::TrustError;
use svc_domain::admission::Trust;
use svc_ports::process::ProcessFacts;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;

/// The agent program, its files, and what is cached of both.
#[derive(Debug)]
pub struct Agent {
    cli: AgentCli,
    /// When this boot began; `None` when the system does not say.
    boot_time: Option<Timestamp>,
}

impl Agent {
    /// The agent behind a CLI.
    #[must_use]
    pub fn new(cli: AgentCli, boot_time: Option<Timestamp>) -> Self {
        Self { cli, boot_time }
    }

    /// The cached probes.
    #[must_use]
    pub fn cli(&self) -> &AgentCli {
        &self.cli
    }

    /// Absolute path of the program that would run now. Blocks for a few looks.
    pub(crate) fn program(&self) -> Result<PathBuf, BinaryError> {
        let setup = self.cli.setup();
        let path = setup.env.get(std::ffi::OsStr::new("PATH")).cloned().unwrap_or_default();
        let home = self.cli.home().ok();
        resolve(&setup.binary, home.as_ref().and_then(AgentHome::user_home), &path)
    }

    /// Environment of a bridge, but for its launch id.
    pub(crate) fn environment(&self) -> Variables {
        self.cli.setup().env.clone()
    }

    /// Asks for version and login in the background, each at most once per half minute.
    pub(crate) fn refresh(&self) {
        let _ = self.cli.version();
        let _ = self.cli.login();
    }

    /// Whether the agent may work in a directory. Blocks for one look.
    pub(crate) fn trust(&self, path: &Path, git_root: Option<&Path>) -> Trust {
        self.cli.trust(path, git_root)
    }

    /// Grants trust if it is missing.
    pub(crate) async fn grant_trust(
        &self,
        path: &Path,
        git_root: Option<&Path>,
    ) -> Result<(), TrustError> {
        self.cli.grant_trust(path, git_root).await.map(drop)
    }

    /// The directory of the agent's own files.
    ///
    /// # Errors
    /// There is none for this user.
    pub(crate) fn home(&self) -> Result<AgentHome, AppError> {
        self.cli.home().map_err(missing)
    }

    /// Absolute path of the program that would run now, or why nothing can be started.
    pub(crate) async fn program_now(self: &Arc<Self>) -> Result<PathBuf, AppError> {
        let this = Arc::clone(self);
        blocking(move || this.program()).await?.map_err(missing)
    }

    /// File with trust and flags.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        self.cli.home().ok().map(|home| home.config_file().to_owned())
    }

    /// Directory of the registry of live sessions.
    pub(crate) fn sessions_dir(&self) -> Option<PathBuf> {
        self.cli.home().ok().map(|home| home.sessions_dir())
    }

    /// The pointer of a directory, if there is a usable one. Blocks for one small file.
    pub(crate) fn pointer(&self, real_path: &Path) -> Option<Pointer> {
        self.cli.pointer(real_path)
    }

    /// What stands in a pointer's place. Blocks for one small file.
    pub(crate) fn pointer_found(&self, real_path: &Path) -> Found {
        self.cli.pointer_file(real_path).map_or(Found::Nothing, |file| pointer::read(&file))
    }

    /// Takes the session out of a pointer that nobody needs any more.
    pub(crate) fn collect_pointer(
        &self,
        path: &Path,
        judged: &Pointer,
        backup: Backup,
    ) -> Result<Stripped, StripError> {
        self.cli.strip_pointer(path, judged, backup)
    }

    /// Removes what is no pointer from a pointer's place, once it is old.
    pub(crate) fn remove_old_malformed(
        &self,
        path: &Path,
        now: Timestamp,
    ) -> Result<Stripped, StripError> {
        let file = self.cli.pointer_file(path);
        file.map_or(Ok(Stripped::Nothing), |file| pointer::remove_malformed(&file, now))
    }

    /// Takes the session out of a pointer that the caller has judged not to be live.
    pub(crate) fn strip_pointer(&self, path: &Path, judged: &Pointer) -> Result<(), StripError> {
        self.cli.strip_pointer(path, judged, Backup::Once).map(drop)
    }

    /// Permission mode that the agent's settings give when no flag is passed.
    pub(crate) fn default_mode(&self, project: &Path) -> Option<DefaultMode> {
        self.cli.default_mode(project)
    }

    /// Whether a start without a mode could bypass permissions.
    /// Unclear settings count as yes.
    pub(crate) fn may_bypass(&self, project: &Path) -> bool {
        self.cli.may_bypass(project)
    }

    /// What a project brings along.
    pub(crate) fn project_settings(&self, project: &Path) -> ProjectSettings {
        self.cli.project_settings(project)
    }

    pub(crate) fn boot_time(&self) -> Option<Timestamp> {
        self.boot_time
    }

    /// Whether only asking the agent tells which release this process runs.
    /// Blocks for a look at the program.
    pub(crate) fn needs_probe(&self, facts: &ProcessFacts) -> bool {
        let exe = facts.exe.as_deref();
        running_version(exe, std::iter::empty(), &facts.argv).is_none()
            && exe.is_some()
            && self.program().ok().and_then(|path| std::fs::canonicalize(path).ok()).as_deref()
                == exe
    }

    /// Release that a live bridge runs.
    /// From its program file, else from the probe when it runs the very file that was probed.
    pub(crate) fn running_version(&self, facts: &ProcessFacts) -> Option<String> {
        let exe = facts.exe.as_deref();
        if let Some(version) = running_version(exe, std::iter::empty(), &facts.argv) {
            return Some(version.as_str().to_owned());
        }
        match self.cli.version() {
            Version::Known { program, version } => {
                let probed = std::fs::canonicalize(program).ok();
                (probed.is_some() && probed.as_deref() == exe).then(|| version.as_str().to_owned())
            }
            Version::Unasked | Version::Failed { .. } => None,
        }
    }
}

fn missing(error: impl std::fmt::Display) -> AppError {
    AppError::new(ErrorCode::AgentMissing, Class::Unavailable, error.to_string())
}
