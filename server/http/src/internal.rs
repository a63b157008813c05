//! Handlers of the unversioned routes (`http-api` §3), one file per subject.
//!
//! Each is three steps: parse, call one use-case, map the result.

pub(crate) mod access;
pub(crate) mod agent_sign_in;
pub(crate) mod approvals;
pub(crate) mod changes;
pub(crate) mod clones;
pub(crate) mod config;
pub(crate) mod config_write;
pub(crate) mod environments;
pub(crate) mod history;
pub(crate) mod instances;
pub(crate) mod instructions;
pub(crate) mod keepers;
pub(crate) mod launches;
pub(crate) mod metrics;
pub(crate) mod notifications;
pub(crate) mod ops;
pub(crate) mod probe;
pub(crate) mod projects;
pub(crate) mod push;
pub(crate) mod qr;
pub(crate) mod rate;
pub(crate) mod restart;
pub(crate) mod restore;
pub(crate) mod stranded;
pub(crate) mod strays;
pub(crate) mod support;
pub(crate) mod transcripts;
pub(crate) mod ui_prefs;
pub(crate) mod webhooks;
pub(crate) mod worktrees;
