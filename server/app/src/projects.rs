//! Projects: which there are, and what a person allows the agent there.

pub(crate) mod catalog;
pub(crate) mod trusting;
