//! What every command is given, and the runtime it works on.

use crate::cli::failure::End;
use crate::cli::output::Output;
use crate::compose::Surroundings;
use std::path::PathBuf;
use std::sync::Arc;
use svc_config::{Environment, Loaded};

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Call {
    /// File named on the command line.
    pub(crate) config: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) output: Output,
    /// Umask the process was started with.
    pub(crate) umask: u32,
}

impl Call {
    /// This call with a configuration, as the parts of the service need it.
    pub(crate) fn surroundings(&self, loaded: &Loaded) -> Surroundings {
        Surroundings {
            config: Arc::clone(&loaded.config),
            origin: loaded.origin.clone(),
            config_file: loaded.path.clone(),
            variables: std::env::vars_os().collect(),
            umask: self.umask,
            demo: false,
        }
    }
}

/// Runs a command on a runtime of its own.
///
/// Blocking work that is still running at the end is abandoned, because the process ends.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, End>>) -> Result<T, End> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(End::of_machine)?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}
