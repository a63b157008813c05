//! Where installed programs are.

use std::path::PathBuf;
use svc_config::Config;

/// The directory of installed programs, below the state directory.
pub(super) const DIRECTORY: &str = "deps/bin";

/// The directory of installed programs.
pub(crate) fn directory(config: &Config) -> PathBuf {
    config.state_dir.join(DIRECTORY)
}
