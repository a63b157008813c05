//! Projects: which there are, and what a person allows the agent to do in their directories.

pub(crate) mod catalog;
pub(crate) mod trusting;
