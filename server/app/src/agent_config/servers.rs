//! Servers of the model context protocol, and which of a project's may run.
//!
//! Those of a project are in its own file. Those of the user and of a user in a project are in the
//! agent's state file, which the agent writes as well: there the servers alone are compared.

use super::parts::shown;
use super::{
    AgentConfigEditor, ConfigTarget, FileWrite, MOST_BYTES, OF_NOTHING, bad, changed_text,
    check_hash, differing, hash_of, parsed, read_all, read_one,
};
use crate::ops::audit::{Change, Surface};
use crate::tasks::blocking;
use crate::{AppError, Class};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use svc_agent::json_document::JsonDocument;
use svc_agent::scope_file::ScopeFile;
use svc_agent::trust::TrustError;
use svc_domain::agent_config::ConfigScope;
use svc_domain::agent_config::names::is_server;
use svc_domain::agent_config::servers;
use svc_domain::log_escape::quoted;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::{ConfigPart, ConfigSaved, ServerApprovals, ServerChanged};

/// Member of each file that holds the servers.
pub(super) const KEY: &str = "mcpServers";
/// The word of the surface.
pub(super) const WORD: &str = "mcp";
/// Names that may run, and names that may not.
const DECIDED: [&str; 2] = ["enabledMcpjsonServers", "disabledMcpjsonServers"];
/// Most names in a list of decisions.
const MOST_NAMES: usize = 500;

/// What is done to one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerChange {
    /// It is new.
    Add,
    /// It is replaced.
    Edit,
    /// It goes.
    Remove,
}

impl ServerChange {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Edit => "edit",
            Self::Remove => "remove",
        }
    }

    /// The change of this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        [Self::Add, Self::Edit, Self::Remove].into_iter().find(|op| op.as_str() == word)
    }
}

impl AgentConfigEditor {
    /// The servers of a scope, without their secrets.
    ///
    /// # Errors
    /// The file is not one that can be edited here.
    pub async fn servers(&self, target: &ConfigTarget) -> Result<ConfigPart, AppError> {
        match path_in_state(target)? {
            None => {
                let file = file_of(target);
                let found = read_one(&file).await?;
                let document = parsed(&file, found.as_ref())?;
                let part = servers::shown(document.value().get(KEY));
                Ok(shown(target, found.as_ref(), "servers", part))
            }
            Some(path) => {
                let stored = self.stored(path).await?;
                let part = servers::shown(stored.as_ref());
                let part = shown(target, None, "servers", part);
                let hash = Some(hash_of_servers(stored.as_ref()));
                Ok(ConfigPart { hash, exists: stored.is_some(), ..part })
            }
        }
    }

    /// Replaces all servers of a scope.
    ///
    /// # Errors
    /// A server does not fit, the file changed since `hash` was read, or it cannot be written.
    pub async fn save_servers(
        self: &Arc<Self>,
        target: ConfigTarget,
        sent: Value,
        hash: Option<String>,
    ) -> Result<ConfigSaved, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let change =
                move |stored: Option<&Value>| servers::wanted(&sent, stored).map_err(bad).map(Some);
            this.change_servers(&target, "update", Basis::Hash(hash), change).await
        };
        self.tasks.complete(work).await
    }

    /// Adds, replaces or removes one server of a scope.
    ///
    /// # Errors
    /// It exists or does not, does not fit, or the file cannot be written.
    pub async fn change_server(
        self: &Arc<Self>,
        target: ConfigTarget,
        op: ServerChange,
        name: String,
        entry: Option<Value>,
    ) -> Result<ServerChanged, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let done = ServerChanged {
                scope: target.scope.as_str().to_owned(),
                project: target.project_name(),
                name: name.clone(),
                op: op.as_str().to_owned(),
                ok: true,
            };
            let change = move |stored: Option<&Value>| with_one(op, &name, entry.as_ref(), stored);
            let action = match op {
                ServerChange::Add => "create",
                ServerChange::Edit => "update",
                ServerChange::Remove => "delete",
            };
            this.change_servers(&target, action, Basis::AsItIs, change).await?;
            Ok(done)
        };
        self.tasks.complete(work).await
    }

    async fn change_servers(
        &self,
        target: &ConfigTarget,
        action: &'static str,
        basis: Basis,
        change: impl FnOnce(Option<&Value>) -> Result<Option<Value>, AppError> + Send + 'static,
    ) -> Result<ConfigSaved, AppError> {
        let Some(path) = path_in_state(target)? else {
            let file = file_of(target);
            let before = read_one(&file).await?;
            // A large file takes its time, which others must not wait for.
            let judge = move || -> Result<FileWrite, AppError> {
                let document = parsed(&file, before.as_ref())?;
                let stored = document.value().get(KEY);
                let wanted = change(stored)?;
                if let Basis::Hash(hash) = basis {
                    check_hash(&file, before.as_ref(), hash.as_deref())?;
                }
                let nothing = Value::Null;
                let after = wanted.as_ref().unwrap_or(&nothing);
                let keys = differing(stored.unwrap_or(&nothing), after);
                let mut next = document.value().clone();
                if let (Some(wanted), Some(members)) = (wanted, next.as_object_mut()) {
                    members.insert(KEY.to_owned(), wanted);
                }
                let text = changed_text(&file, &document, &next)?;
                let (surface, is_restore) = (Surface::Mcp, false);
                Ok(FileWrite { file, surface, keys, before, text, is_restore })
            };
            let write = blocking(judge).await??;
            return self.write_file(target, write).await;
        };
        // Judged before the entry is written, and once more under the lock of the file.
        let stored = self.stored(path.clone()).await?;
        let judged = change(stored.as_ref())?;
        if let Basis::Hash(hash) = basis {
            check_servers(stored.as_ref(), hash.as_deref())?;
        }
        let nothing = Value::Null;
        let (before, after) = (stored.as_ref().unwrap_or(&nothing), judged.as_ref());
        let keys = differing(before, after.unwrap_or(&nothing));
        let entry = Change {
            surface: Surface::Mcp,
            scope: target.audit_scope(),
            target: target.home.config_file().to_string_lossy().into_owned(),
            action,
            keys: keys.iter().cloned().map(Into::into).collect(),
        };
        let work = async {
            let cli = self.agent.cli();
            // Only these servers: the agent may have added others meanwhile.
            let paths = keys
                .iter()
                .map(|name| path.iter().cloned().chain([name.clone()]).collect::<Vec<String>>());
            let wanted = keys
                .iter()
                .map(|name| judged.as_ref().and_then(|servers| servers.get(name)).cloned())
                .collect::<Vec<_>>();
            let before = keys
                .iter()
                .map(|name| stored.as_ref().and_then(|servers| servers.get(name)).cloned())
                .collect::<Vec<_>>();
            let set = cli.set_config_values(paths.collect(), move |now| {
                if now == before { Ok(wanted) } else { Err(changed_meanwhile()) }
            });
            set.await.map_err(state_failed)?.map(drop)
        };
        if keys.is_empty() {
            return Ok(target.saved(Some(hash_of_servers(stored.as_ref()))));
        }
        self.audit.record(entry, work).await?;
        let now = self.stored(path).await?;
        Ok(target.saved(Some(hash_of_servers(now.as_ref()))))
    }

    async fn stored(&self, path: Vec<String>) -> Result<Option<Value>, AppError> {
        let agent = Arc::clone(&self.agent);
        let read = blocking(move || {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            agent.cli().config_value(&path)
        });
        read.await?.map_err(state_failed)
    }

    /// What was decided about the servers that a project brings.
    ///
    /// # Errors
    /// There is no such project, or a file cannot be read.
    pub async fn approvals(&self, target: &ConfigTarget) -> Result<ServerApprovals, AppError> {
        let key = target.project_key()?;
        let of = |list: &str| vec!["projects".to_owned(), key.clone(), list.to_owned()];
        let enabled = names(self.stored(of(DECIDED[0])).await?.as_ref());
        let disabled = names(self.stored(of(DECIDED[1])).await?.as_ref());
        let locked = self.locked(target).await?.into_iter().collect();
        let project = target.project_name().unwrap_or_default();
        Ok(ServerApprovals { project, enabled, disabled, locked })
    }

    /// Names that a settings file decides about.
    async fn locked(&self, target: &ConfigTarget) -> Result<BTreeSet<String>, AppError> {
        let scoped = |scope| ConfigTarget { scope, ..target.clone() };
        let user = ConfigTarget { project: None, ..scoped(ConfigScope::User) };
        let files = vec![
            scoped(ConfigScope::Local).settings(),
            scoped(ConfigScope::Project).settings(),
            user.settings(),
        ];
        let mut locked = BTreeSet::new();
        for found in read_all(files).await? {
            // A file that the agent cannot read decides nothing.
            let text = found.map(|found| found.text).unwrap_or_default();
            let Ok(document) = JsonDocument::parse(&text) else { continue };
            locked.extend(DECIDED.iter().flat_map(|key| names(document.value().get(key))));
        }
        Ok(locked)
    }

    /// Decides which of the servers that a project brings may run.
    ///
    /// # Errors
    /// A name does not fit, stands in both lists or is decided elsewhere, or the file cannot be
    /// written.
    pub async fn save_approvals(
        self: &Arc<Self>,
        target: ConfigTarget,
        enabled: Vec<String>,
        disabled: Vec<String>,
    ) -> Result<ServerApprovals, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let locked = this.locked(&target).await?;
            let now = this.approvals(&target).await?;
            let known: BTreeSet<&String> = now.enabled.iter().chain(&now.disabled).collect();
            for name in enabled.iter().chain(&disabled).filter(|name| !known.contains(name)) {
                if !is_server(name) {
                    return Err(AppError::invalid(format!(
                        "{} cannot be the name of a server",
                        quoted(name)
                    )));
                }
                if locked.contains(name) {
                    return Err(AppError::invalid(format!(
                        "a settings file decides about {}; change it there",
                        quoted(name)
                    )));
                }
            }
            if let Some(name) = enabled.iter().find(|name| disabled.contains(name)) {
                return Err(AppError::invalid(format!(
                    "{} stands in `enabled` and in `disabled`",
                    quoted(name)
                )));
            }
            if enabled.len() + disabled.len() > MOST_NAMES {
                return Err(AppError::invalid(format!("there are more than {MOST_NAMES} names")));
            }
            let mut keys: Vec<String> = Vec::new();
            keys.extend(enabled.iter().filter(|name| !now.enabled.contains(name)).cloned());
            keys.extend(disabled.iter().filter(|name| !now.disabled.contains(name)).cloned());
            let (all, sent): (Vec<String>, Vec<&String>) = (
                now.enabled.iter().chain(&now.disabled).cloned().collect(),
                enabled.iter().chain(&disabled).collect(),
            );
            keys.extend(all.into_iter().filter(|name| !sent.contains(&name)));
            this.decide(&target, "update", keys, [enabled, disabled]).await?;
            this.approvals(&target).await
        };
        self.tasks.complete(work).await
    }

    /// Forgets what was decided about the servers of a project: the agent asks again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn reset_approvals(
        self: &Arc<Self>,
        target: ConfigTarget,
    ) -> Result<ServerApprovals, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            this.decide(&target, "delete", Vec::new(), [Vec::new(), Vec::new()]).await?;
            this.approvals(&target).await
        };
        self.tasks.complete(work).await
    }

    async fn decide(
        &self,
        target: &ConfigTarget,
        action: &'static str,
        keys: Vec<String>,
        lists: [Vec<String>; 2],
    ) -> Result<(), AppError> {
        let key = target.project_key()?;
        let change = Change {
            surface: Surface::McpApprovals,
            scope: target.audit_scope(),
            target: key.clone(),
            action,
            keys: keys.into_iter().map(Into::into).collect(),
        };
        let paths = DECIDED.map(|list| vec!["projects".to_owned(), key.clone(), list.to_owned()]);
        let work = async {
            let cli = self.agent.cli();
            let set = cli.set_config_values(paths.to_vec(), move |now| {
                // An empty list is not added where there is none.
                let wanted = now.iter().zip(lists).map(|(now, list)| {
                    (now.is_some() || !list.is_empty()).then(|| Value::from(list))
                });
                Ok::<_, AppError>(wanted.collect())
            });
            set.await.map_err(state_failed)?.map(drop)
        };
        self.audit.record(change, work).await
    }
}

/// What a change of servers is based on.
enum Basis {
    /// The state of the file that the caller has read.
    Hash(Option<String>),
    /// Whatever is there: the change names one server.
    AsItIs,
}

fn with_one(
    op: ServerChange,
    name: &str,
    entry: Option<&Value>,
    stored: Option<&Value>,
) -> Result<Option<Value>, AppError> {
    let mut next: Map<String, Value> =
        stored.and_then(Value::as_object).cloned().unwrap_or_default();
    let before = next.get(name).cloned();
    let called = quoted(name);
    match (op, &before) {
        (ServerChange::Add, Some(_)) => {
            let text = format!("the server {called} exists; edit it or choose another name");
            return Err(AppError::new(ErrorCode::Exists, Class::Conflict, text));
        }
        (ServerChange::Edit | ServerChange::Remove, None) => {
            let text = format!("there is no server {called} in this scope");
            return Err(AppError::new(ErrorCode::NotFound, Class::NotFound, text));
        }
        (ServerChange::Remove, Some(_)) => {
            next.remove(name);
        }
        (ServerChange::Add, None) | (ServerChange::Edit, Some(_)) => {
            let Some(entry) = entry else {
                return Err(AppError::invalid("`entry` is missing; give the server"));
            };
            let entry = servers::wanted_one(name, entry, before.as_ref()).map_err(bad)?;
            next.insert(name.to_owned(), entry);
        }
    }
    Ok(Some(Value::Object(next)))
}

/// Where the servers of a scope are in the agent's state file.
///
/// None for those of a project.
fn path_in_state(target: &ConfigTarget) -> Result<Option<Vec<String>>, AppError> {
    Ok(match target.scope {
        ConfigScope::Project => None,
        ConfigScope::User => Some(vec![KEY.to_owned()]),
        ConfigScope::Local => {
            Some(vec!["projects".to_owned(), target.project_key()?, KEY.to_owned()])
        }
    })
}

pub(super) fn file_of(target: &ConfigTarget) -> ScopeFile {
    target.file(".mcp.json", ".mcp.json", MOST_BYTES)
}

/// The hash of the servers of a state file.
///
/// It is their own: the agent writes the rest of that file all the time.
fn hash_of_servers(stored: Option<&Value>) -> String {
    stored.map_or_else(|| OF_NOTHING.to_owned(), |servers| hash_of(&servers.to_string()))
}

/// Refuses to replace servers that the caller has not seen.
fn check_servers(stored: Option<&Value>, sent: Option<&str>) -> Result<(), AppError> {
    let is_empty = stored.and_then(Value::as_object).is_none_or(Map::is_empty);
    match sent {
        None if is_empty => Ok(()),
        Some(sent) if sent == hash_of_servers(stored) => Ok(()),
        Some(_) | None => Err(changed_meanwhile()),
    }
}

fn names(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn changed_meanwhile() -> AppError {
    let text = "the servers were changed meanwhile; read them again and repeat your change";
    AppError::new(ErrorCode::Stale, Class::Conflict, text)
}

fn state_failed(error: TrustError) -> AppError {
    if error.is_content() {
        AppError::new(ErrorCode::InvalidValue, Class::Invalid, error.to_string()).because(error)
    } else {
        AppError::busy(error.to_string()).because(error)
    }
}
