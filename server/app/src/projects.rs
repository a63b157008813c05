//! Projects: which there are, what is allowed there, and what changed in them.

pub(crate) mod catalog;
pub(crate) mod changes;
pub(crate) mod changes_watch;
pub(crate) mod clones;
pub(crate) mod instructions;
pub(crate) mod trusting;
pub(crate) mod worktrees;
