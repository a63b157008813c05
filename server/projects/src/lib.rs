//! Project directories: discovery, watching, git facts.
//!
//! The projects are the directories directly under `projects_root`. [`scan`] reads them once, for a
//! command; [`Discovery`] keeps them up to date for the service. Whether the agent may work in a
//! project (trust) and what happens there is for others.

mod catalog;
mod crew;
mod discovery;
mod examine;
mod git;
mod project;
mod stamp;
mod watches;

pub use catalog::scan;
pub use discovery::Discovery;
pub use examine::Rules;
pub use project::{Project, Projects, Skipped, Why};
