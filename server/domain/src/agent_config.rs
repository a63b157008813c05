//! Rules of the agent's own configuration files, for an editor of them.
//!
//! Values only: who reads and writes the files is in `svc-agent` and `svc-app`. Formats are those
//! of agent 2.1.197 (`agent-cli` §6.8).

pub mod names;
pub mod parts;
pub mod plugins;
pub mod secrets;
pub mod servers;
pub mod skills;
pub mod subagents;

/// How far a file reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigScope {
    /// All projects of this user.
    User,
    /// Everybody who works in a project.
    Project,
    /// This user in one project.
    Local,
}

impl ConfigScope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Project, Self::Local, Self::User];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }

    /// What a person types to confirm a write: never taken from the request alone.
    #[must_use]
    pub fn confirmation(self, project: &str) -> String {
        match self {
            Self::User => "USER SCOPE".to_owned(),
            Self::Project => project.to_owned(),
            Self::Local => format!("{project} (local)"),
        }
    }
}

/// What must be repaired before something is written.
///
/// Names the member, never its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadConfig(pub String);

pub(crate) fn bad(text: impl Into<String>) -> BadConfig {
    BadConfig(text.into())
}
