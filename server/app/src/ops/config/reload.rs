//! Applies the configuration file while the service runs.
//!
//! What needs no restart is in force at once.

use super::{ConfigEditor, Known};
use crate::AppError;
use crate::nudge;
use crate::ops::audit::{self, Actor, Change, Scope, Surface};
use crate::tasks::blocking;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_config::{Applied, Loaded};
use tracing::{error, info};

/// What a command that wrote the file sends to the socket for nudges.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadRequest {
    /// Keys that the audit log has already.
    reload: Vec<String>,
}

/// The answer of a service to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reloaded {
    /// The file was read.
    Read {
        /// Keys whose new values are in force.
        now: Vec<String>,
        /// Keys whose new values wait for the next start.
        at_restart: Vec<String>,
    },
    /// Nothing changed, for this reason.
    Refused(String),
}

/// Reading and judging a file takes milliseconds.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest answer: the names of all keys.
const LONGEST_ANSWER: usize = 32 * 1024;

impl ConfigEditor {
    /// Reads the file again and applies what needs no restart.
    ///
    /// `recorded` are keys whose change the audit log has already.
    ///
    /// # Errors
    /// The file cannot be used: every value stays as it is.
    pub async fn reload(&self, recorded: &[String]) -> Result<Applied, AppError> {
        let mut running = self.running.lock().await;
        // Whoever writes the file through svc has told the log first: both are read between two
        // writes. Where the lock cannot be had, the file counts all the same.
        let lock = super::write::lock(&self.config.state_dir, &self.origin).await;
        let (origin, log) = (self.origin.clone(), self.audit.log.clone());
        let from = running.as_ref().map_or(self.told_at_start, |known| known.told);
        let read = blocking(move || {
            let read = (origin.as_it_was()?.ok()?, origin.read_again()?);
            Some((read, log.configured_since(from)))
        });
        let read = read.await?;
        drop(lock);
        let Some(((at_start, newer), (told_keys, told))) = read else {
            return Err(AppError::invalid("this service was started without a file to read"));
        };
        let newer = newer.map_err(|errors| super::write::invalid(&errors))?;
        // A copy: whoever gives this up half-way leaves what was known.
        let mut known = running.clone().unwrap_or_else(|| Known {
            seen: at_start.clone(),
            values: at_start.held_in(&self.config),
            told: from,
        });
        let is_recorded =
            |key: &str| recorded.iter().any(|one| one == key) || told_keys.contains(key);
        let applied = self.take(&mut known, newer, is_recorded).await;
        if applied.is_ok() {
            known.told = told;
        }
        *running = Some(known);
        if let Ok(applied) = &applied {
            tell(applied);
            self.replaced.send_replace(());
        }
        applied
    }

    /// Records what somebody changed by hand, and applies what needs no restart.
    async fn take(
        &self,
        known: &mut Known,
        newer: Loaded,
        is_recorded: impl Fn(&str) -> bool,
    ) -> Result<Applied, AppError> {
        let by_hand = known.seen.compare(&newer);
        let unrecorded = |keys: &[String]| -> Vec<Cow<'static, str>> {
            let keys = keys.iter().filter(|key| !is_recorded(key));
            keys.map(|key| Cow::Owned(key.clone())).collect()
        };
        let change = |action, keys| Change {
            surface: Surface::Config,
            scope: Scope::Global,
            target: self.file_name(),
            action,
            keys,
        };
        // Nobody else changes the file without an entry of their own.
        let later = unrecorded(&by_hand.at_restart);
        if !later.is_empty() {
            let nothing = async { Ok(()) };
            audit::acting_as(Actor::ByHand, self.audit.record(change("update", later), nothing))
                .await?;
        }
        let now = unrecorded(&known.values.compare(&newer).now);
        let values = &mut known.values;
        let applied = match now.is_empty() {
            true => values.take_live(&newer),
            false => {
                let taken = async { Ok(values.take_live(&newer)) };
                audit::acting_as(Actor::ByHand, self.audit.record(change("apply", now), taken))
                    .await?
            }
        };
        known.seen = newer;
        Ok(applied)
    }

    fn file_name(&self) -> String {
        self.origin.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Reloads because of a signal, and says in the log what came of it.
    pub async fn reload_by_signal(&self) {
        match self.reload(&[]).await {
            Ok(applied) if applied == Applied::default() => {
                info!("the configuration was read again, as asked by a signal: nothing changed");
            }
            Ok(_) => {}
            Err(refused) => error!(
                "the configuration was read again, as asked by a signal, and cannot be used; all \
                 values stay as they are: {}",
                refused.message
            ),
        }
    }

    /// Reloads because a command wrote the file, and answers the command.
    pub(crate) fn serve_reload(self: &Arc<Self>, request: ReloadRequest, command: Option<PathBuf>) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let answer = match this.reload(&request.reload).await {
                Ok(Applied { now, at_restart }) => Reloaded::Read { now, at_restart },
                Err(error) => Reloaded::Refused(error.message),
            };
            let Some(command) = command else { return };
            nudge::answer(command, &answer, "the configuration to be read").await;
        });
    }
}

fn tell(applied: &Applied) {
    let Applied { now, at_restart } = applied;
    if !now.is_empty() {
        info!("the configuration applies now: {}", now.join(", "));
    }
    if !at_restart.is_empty() {
        info!("the configuration applies after a restart: {}", at_restart.join(", "));
    }
}

/// A request in a message of a command.
pub(crate) fn request(message: &[u8]) -> Option<ReloadRequest> {
    serde_json::from_slice(message).ok()
}

/// Asks a running service to read its configuration again.
///
/// `recorded` are keys whose change the audit log has. Blocks.
#[must_use]
pub fn ask_reload(state_dir: &Path, recorded: &[String]) -> Option<Reloaded> {
    let ask = || -> io::Result<Reloaded> {
        let service = crate::nudge::socket(state_dir);
        let own = service.with_file_name(format!("reload-{}.sock", std::process::id()));
        let own = OwnSocket(own);
        match std::fs::remove_file(&own.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let socket = UnixDatagram::bind(&own.0)?;
        socket.set_read_timeout(Some(ANSWER))?;
        let message = serde_json::to_vec(&ReloadRequest { reload: recorded.to_vec() })?;
        socket.send_to(&message, &service)?;
        let mut buffer = vec![0; LONGEST_ANSWER];
        let length = socket.recv(&mut buffer)?;
        Ok(serde_json::from_slice(buffer.get(..length).unwrap_or_default())?)
    };
    ask().ok() // none runs, or one of another version
}

/// The socket that an answer comes to; removed with the value.
struct OwnSocket(PathBuf);

impl Drop for OwnSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // never bound: fine
    }
}
