//! Where the log files of bridges are.

use std::path::PathBuf;
use svc_agent::log_set::{LogSet, LogSetKey};
use svc_config::Config;
use svc_domain::bridge::Bridge;

/// Where the logs of bridges are.
pub(crate) fn directory(config: &Config) -> PathBuf {
    config.state_dir.join("logs")
}

/// The log files of a stem that a row names; `None` for a stem that was never ours.
pub(crate) fn set(config: &Config, stem: &str) -> Option<LogSet> {
    stem.parse::<LogSetKey>().ok().map(|_| LogSet::at(&directory(config), stem))
}

/// The log files of a bridge.
pub(crate) fn set_of(config: &Config, bridge: &Bridge) -> Option<LogSet> {
    set(config, &bridge.launch.as_ref()?.log_stem)
}
