//! Project directories: discovery, watching, git facts.
//!
//! The projects are the directories directly below `projects_root`. [`scan`] reads them once, for a
//! command. [`Discovery`] keeps them up to date, for the service. Other crates decide whether the agent
//! may work in a project (trust) and what happens there.

mod catalog;
pub mod changes;
mod discovery;
mod examine;
mod git;
pub mod git_call;
mod path_workers;
mod project;
pub mod provision;
mod stamp;
mod watches;
pub mod worktrees;

pub use catalog::scan;
pub use discovery::Discovery;
pub use examine::Rules;
pub use project::{Project, Projects, SkipReason, Skipped};
