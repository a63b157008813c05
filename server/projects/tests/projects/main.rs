//! The crate against real directories, real links and real git repositories.

#![expect(clippy::unwrap_used, reason = "a helper that cannot set up fails its test")]

mod changes;
mod git_facts;
mod scanning;
mod support;
mod watching;
mod worktrees;
