//! The configuration file: shown to an editor, and written (`configuration` §7).
//!
//! `reload` applies what needs no restart.

mod reload;
mod write;

pub(crate) use reload::request as reload_request;
pub use reload::{Reloaded, ask_reload};
pub use write::{ConfigFile, ConfigSurface, FileChange, Written};

use crate::AppError;
use crate::agent::Agent;
use crate::hosted::program_of;
use crate::ops::audit::Audit;
use crate::tasks::{Tasks, blocking};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_config::schema::{Edit, Leaf};
use svc_config::{
    Applied, Config, Loaded, Origin, Row, Source, View, Wanted, describe, file_reason,
    load_candidate, show, table,
};
use svc_process::programs;
use svc_shared::error::ErrorCode;
use svc_shared::internal::settings::{ConfigReport, ConfigSpec, DepStatus, FileOnlyKey};
use tokio::sync::{Mutex, watch};

/// Which keys an editor is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigList {
    /// The first list.
    Basic,
    /// The second list, which needs a fresh proof of the password.
    Advanced,
}

impl ConfigList {
    fn has(self, leaf: &Leaf) -> bool {
        match self {
            Self::Basic => leaf.edit == Edit::Basic,
            Self::Advanced => leaf.edit == Edit::Advanced,
        }
    }

    fn surface(self) -> ConfigSurface {
        match self {
            Self::Basic => ConfigSurface::Config,
            Self::Advanced => ConfigSurface::Advanced,
        }
    }
}

/// The configuration of a running service, for an editor.
pub struct ConfigEditor {
    config: Arc<Config>,
    origin: Origin,
    agent: Arc<Agent>,
    audit: Arc<Audit>,
    tasks: Tasks,
    /// What is known once the file was read again.
    running: Mutex<Option<Known>>,
    /// Where the audit log ended at the start, bytes.
    told_at_start: u64,
    /// Told when values were replaced.
    replaced: watch::Sender<()>,
}

/// What a service knows of its file.
#[derive(Clone)]
struct Known {
    /// The values of now with their sources.
    values: Loaded,
    /// The file as it was read last, with what waits for a restart.
    seen: Loaded,
    /// Where the audit log ended then, bytes.
    told: u64,
}

impl ConfigEditor {
    /// Tells when values were replaced that need no restart.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.replaced.subscribe()
    }

    /// An editor of the file that `origin` tells.
    pub(crate) fn new(
        config: &Arc<Config>,
        origin: &Origin,
        agent: &Arc<Agent>,
        audit: &Arc<Audit>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        Arc::new(Self {
            config: Arc::clone(config),
            origin: origin.clone(),
            agent: Arc::clone(agent),
            audit: Arc::clone(audit),
            tasks: tasks.clone(),
            running: Mutex::default(),
            told_at_start: audit.log.end(),
            replaced: watch::Sender::new(()),
        })
    }

    /// Whether the dashboard may change settings.
    #[must_use]
    pub fn can_save(&self) -> bool {
        self.config.config_write.enabled
    }

    /// The names of `keys` that are not in the list.
    #[must_use]
    pub fn outside<'k>(list: ConfigList, keys: impl Iterator<Item = &'k String>) -> Vec<&'k str> {
        keys.map(String::as_str)
            .filter(|key| !table::leaf(key).is_some_and(|leaf| list.has(leaf)))
            .collect()
    }

    /// The keys of a list as the file has them now.
    ///
    /// # Errors
    /// The reading was cut off.
    pub async fn report(&self, list: ConfigList) -> Result<ConfigReport, AppError> {
        let (origin, can_save) = (self.origin.clone(), self.can_save());
        let running = self.running.lock().await.as_ref().map(|known| known.values.clone());
        let (config, agent) = (Arc::clone(&self.config), Arc::clone(&self.agent));
        blocking(move || {
            let mut report = report(&origin, running, list, can_save);
            if let Some(spec) = report.specs.get_mut(HOSTED) {
                spec.dep_status = Some(daemon(&config, &agent));
            }
            report
        })
        .await
    }

    /// Writes values of a list to the file, and applies what needs no restart.
    ///
    /// What is written and not applied is in the log, and waits for a restart.
    ///
    /// # Errors
    /// A value does not fit, the file changed since `hash` was read, or it cannot be written. The
    /// file is as it was.
    pub async fn save(
        self: &Arc<Self>,
        list: ConfigList,
        edits: &BTreeMap<String, Value>,
        hash: &str,
    ) -> Result<(Written, Applied), AppError> {
        let mut wanted = Vec::new();
        for (key, value) in edits {
            wanted.extend(Wanted::from_json(key, value).map_err(AppError::invalid)?);
        }
        if let Some(refused) = wanted.iter().find_map(refusal) {
            return Err(AppError::invalid(refused));
        }
        let starts_using =
            |one: &Wanted| one.key() == HOSTED && one.value().as_bool() == Some(true);
        if !self.config.hosted.enabled && wanted.iter().any(starts_using) {
            let (config, agent) = (Arc::clone(&self.config), Arc::clone(&self.agent));
            let daemon = blocking(move || daemon(&config, &agent)).await?;
            if !daemon.available {
                return Err(AppError::invalid(format!("{HOSTED}: {}", daemon.hint)));
            }
        }
        let Some((found, environment)) = self.origin.parts() else {
            return Err(AppError::new(
                ErrorCode::ReadOnly,
                crate::Class::Conflict,
                "there is no configuration file to write; start svc with one",
            ));
        };
        let file = ConfigFile::new(found.clone(), environment.clone());
        let who = (self.audit.actor(), self.audit.clock.now());
        let (hash, surface) = (hash.to_owned(), list.surface());
        let this = Arc::clone(self);
        let work = async move {
            let written = file.write(FileChange::Set(wanted), Some(&hash), surface, &who).await?;
            let applied = this.reload(&written.changed).await.unwrap_or_else(|refused| {
                tracing::error!("the saved configuration waits for a restart: {}", refused.message);
                Applied { now: Vec::new(), at_restart: written.changed.clone() }
            });
            Ok((written, applied))
        };
        // A save that has begun ends, whether or not somebody still waits for the answer.
        self.tasks.complete(work).await
    }
}

/// The key that needs another program.
const HOSTED: &str = "hosted.enabled";

/// Whether the daemon of Direct Sessions is on this machine, or runs already.
fn daemon(config: &Config, agent: &Agent) -> DepStatus {
    let available = program_of(config, &agent.environment()).is_ok()
        || programs::listener_of(&config.hosted_socket()).is_some();
    let hint = match available {
        true => String::new(),
        false => "`svc-hosted` was not found; put that of the same release beside svc, or name \
                  it in `hosted.binary` in the file"
            .to_owned(),
    };
    DepStatus { available, hint }
}

/// Why the dashboard may not set this value; none when it may.
fn refusal(wanted: &Wanted) -> Option<String> {
    let (key, value) = (wanted.key(), wanted.value());
    if value.as_str() == Some("bypassPermissions") {
        return Some(format!(
            "{key}: bypassPermissions is not accepted here; write it to the file by hand"
        ));
    }
    None
}

fn report(
    origin: &Origin,
    running: Option<Loaded>,
    list: ConfigList,
    can_save: bool,
) -> ConfigReport {
    let running = running.or_else(|| origin.as_it_was().and_then(Result::ok));
    let read = origin.parts().and_then(|(found, environment)| {
        let text = write::read_text(&found.path).ok()?;
        let loaded = load_candidate(&text, found, environment).ok()?;
        Some((write::hash_of(&text), loaded))
    });
    let (hash, now) = match read {
        Some((hash, loaded)) => (Some(hash), Some(loaded)),
        None => (None, running.clone()),
    };
    let running = running.as_ref().map(values).unwrap_or_default();
    let mut specs = BTreeMap::new();
    let mut fields = BTreeMap::new();
    for row in now.as_ref().map(|loaded| show(loaded, View::Configured)).unwrap_or_default() {
        let Some(leaf) = table::leaf(&row.key).filter(|leaf| list.has(leaf)) else { continue };
        // An old name is shown only while somebody uses it.
        if leaf.key == "usage.show_cost" && row.source == Source::Default {
            continue;
        }
        let mut spec: ConfigSpec = describe(leaf, &row.source);
        spec.pending = running.get(leaf.key).is_some_and(|value| *value != row.value);
        specs.insert(row.key.clone(), spec);
        fields.insert(row.key, row.value);
    }
    ConfigReport {
        editable: specs.keys().cloned().collect(),
        fields,
        specs,
        hash,
        file: origin.path().map(|path| path.to_string_lossy().into_owned()),
        can_save,
        file_only: table::leaves()
            .filter_map(|leaf| {
                Some(FileOnlyKey {
                    key: leaf.key.to_owned(),
                    description: leaf.about.to_owned(),
                    reason: file_reason(leaf)?.to_owned(),
                })
            })
            .collect(),
    }
}

fn values(loaded: &Loaded) -> BTreeMap<String, Value> {
    show(loaded, View::Configured).into_iter().map(|Row { key, value, .. }| (key, value)).collect()
}
