//! One start of the simulator: its home, its knobs and what it was asked.

use super::home::AgentHome;
use super::knobs::Knobs;
use super::profile::Profile;
use std::path::PathBuf;

/// What one start knows about itself.
#[derive(Debug, Clone)]
pub(crate) struct Double {
    pub(crate) home: AgentHome,
    pub(crate) knobs: Knobs,
    pub(crate) profile: Profile,
    /// Working directory as the kernel names it, so symbolic links are resolved.
    pub(crate) cwd: PathBuf,
    pub(crate) args: Vec<String>,
}
