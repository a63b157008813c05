//! Finds the keeper of a session, and what it left behind.

use crate::log_files;
use crate::tasks::blocking;
use std::path::PathBuf;
use std::sync::Arc;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::identity::Verdict;
use svc_keeper::client::{ConnectError, Connection, Options, connect};
use svc_keeper::message::Role;
use svc_keeper::sidecar::{FinalScreen, Sidecar, screen_file};
use svc_ports::ProcessHost;

/// Where the terminal of a session is.
pub(super) enum Terminal {
    /// Its keeper runs.
    Kept(Box<Sidecar>),
    /// Its keeper has ended, with the last screen if it left one.
    Ended(Option<Box<FinalScreen>>),
    /// There is no trace of a keeper.
    Unknown,
}

/// Finds and connects to keepers.
pub(super) struct Links {
    pub config: Arc<Config>,
    pub host: Arc<dyn ProcessHost>,
}

impl Links {
    /// Looks for the terminal of the present generation.
    pub async fn find(&self, bridge: &Bridge) -> Terminal {
        let Some(path) = self.sidecar(bridge) else { return Terminal::Unknown };
        let (host, id) = (Arc::clone(&self.host), bridge.id.clone());
        let found = blocking(move || {
            let Ok(sidecar) = Sidecar::read(&path) else {
                return match FinalScreen::read(&screen_file(&path)) {
                    Ok(screen) => Terminal::Ended(Some(Box::new(screen))),
                    Err(_) => Terminal::Unknown,
                };
            };
            let lives = sidecar.keeper().is_some_and(|it| host.probe(&it) == Verdict::Same);
            if lives && sidecar.instance_id == id {
                return Terminal::Kept(Box::new(sidecar));
            }
            let screen = FinalScreen::read(&screen_file(&path)).ok();
            Terminal::Ended(screen.map(Box::new))
        });
        found.await.unwrap_or(Terminal::Unknown)
    }

    /// Connects to a keeper that was just found.
    ///
    /// # Errors
    /// It cannot be reached, or speaks another version.
    pub async fn connect(&self, sidecar: &Sidecar, role: Role) -> Result<Connection, ConnectError> {
        connect(sidecar, &Options::new(role)).await
    }

    fn sidecar(&self, bridge: &Bridge) -> Option<PathBuf> {
        let stem = &bridge.launch.as_ref()?.log_stem;
        // A stem that was never ours names no file.
        log_files::set(&self.config, stem)?;
        Some(log_files::directory(&self.config).join(format!("{stem}.keeper.json")))
    }
}
