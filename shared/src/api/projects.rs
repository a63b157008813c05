//! The project record.

use crate::Word;
use crate::ids::ProjectName;
use crate::status::TrustState;
use serde::{Deserialize, Serialize};

/// A directory directly under `projects_root`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Project {
    /// Directory name.
    pub name: ProjectName,
    /// Absolute path under `projects_root`.
    pub path: String,
    /// Part of a git repository.
    pub is_git_repo: bool,
    /// Has a `CLAUDE.md` at its top.
    pub has_claude_md: bool,
    /// Has a `.claude` directory: code of it may run at a start.
    pub has_claude_dir: bool,
    /// Whether the agent may work here.
    pub trust_state: Word<TrustState>,
    /// Whether the configuration allows bypassing permissions here.
    pub allow_bypass_permissions: bool,
    /// The project that is the same real directory; an alias cannot be started.
    pub alias_of: Option<ProjectName>,
}
