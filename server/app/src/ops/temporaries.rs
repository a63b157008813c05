//! Use-case: remove what a killed writer left beside a file.

use crate::agent::Agent;
use crate::log_files;
use crate::projects::catalog::Catalog;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_config::{Config, Origin};
use svc_process::files::remove_abandoned_temporaries;
use svc_process::table::ProcTable;
use tracing::{info, warn};

/// The directories where the service and its commands replace files.
pub(crate) struct Temporaries {
    config: Arc<Config>,
    agent: Arc<Agent>,
    catalog: Arc<Catalog>,
    /// The file of the configuration, wherever a link leads.
    config_file: Option<PathBuf>,
}

impl Temporaries {
    pub fn new(
        config: &Arc<Config>,
        agent: &Arc<Agent>,
        catalog: &Arc<Catalog>,
        origin: &Origin,
    ) -> Self {
        let file =
            origin.path().map(|file| file.canonicalize().unwrap_or_else(|_| file.to_owned()));
        Self {
            config: Arc::clone(config),
            agent: Arc::clone(agent),
            catalog: Arc::clone(catalog),
            config_file: file,
        }
    }

    /// Looks wherever the service and its commands replace files.
    /// What a live writer holds stays.
    pub async fn sweep(&self) {
        let places = self.places_of_temporaries();
        let swept = tokio::task::spawn_blocking(move || {
            let table = ProcTable::open().ok()?;
            // A place that is not there, or not ours to read, has nothing that we left.
            let removed = |place: &PathBuf| remove_abandoned_temporaries(place, &table).ok();
            Some(places.iter().filter_map(removed).sum::<usize>())
        });
        match swept.await {
            Ok(None | Some(0)) => {}
            Ok(Some(removed)) => info!("removed {removed} temporary files of killed writers"),
            Err(error) => warn!(error = %error, "the look for temporary files was interrupted"),
        }
    }

    /// The directories in which temporary files can be left.
    /// These are the state directory and its subdirectories, those of the projects' pointers, that
    /// of the agent's configuration, and those beside our own configuration and program, wherever
    /// a link leads.
    fn places_of_temporaries(&self) -> Vec<PathBuf> {
        let state = &self.config.state_dir;
        let mut places = vec![
            state.clone(),
            log_files::directory(&self.config),
            state.join("run"),
            state.join("tls"),
            state.join("hosted"),
            crate::ops::deps::directory(&self.config),
        ];
        let beside = [self.config_file.clone(), svc_process::own_program::path().ok()];
        places.extend(beside.iter().flatten().filter_map(|file| file.parent().map(Path::to_owned)));
        if let Ok(home) = self.agent.home() {
            let projects = self.catalog.all();
            let paths = projects.iter().filter_map(|project| project.path.to_str());
            places.extend(paths.map(|path| home.project_dir(path)));
            let file = home.config_file();
            let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
            places.extend(file.parent().map(Path::to_owned));
        }
        places
    }
}
