//! Project directories: discovery, watching, git facts.
//!
//! A project is a directory directly below `projects_root`. Everything here is read from the file
//! system; no git process is started. Which project is trusted is the agent's matter.

mod discovery;
mod examine;
mod git;
mod project;
mod walk;

pub use discovery::{Discovery, DiscoveryOptions, scan};
pub use git::{Commits, commits};
pub use project::{Project, Projects, Refused, Unavailable};
