//! Use-cases: the agent's own configuration in its scopes (`http-api` §3.7).
//!
//! Off unless `config_write.enabled`: what is written here decides what code runs. The entry in the
//! audit log comes before the write; a file that changed since it was read is never overwritten.

pub(crate) mod backups;
mod copies;
mod hooks;
mod overview;
mod parts;
mod plugins;
mod recap;
mod servers;
mod skills;
mod subagents;
mod target;

pub use copies::CopiesOf;
pub use recap::recap_for;
pub use servers::ServerChange;
pub use skills::SkillWrite;
pub use target::ConfigTarget;

use crate::agent::Agent;
use crate::jobs::ask::AgentRuns;
use crate::ops::audit::{Audit, Change, Surface};
use crate::projects::catalog::Catalog;
use crate::projects::instructions::refused;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use backups::Backups;
use serde_json::Value;
use std::sync::Arc;
use svc_agent::json_document::JsonDocument;
use svc_agent::scope_file::{Found, NewMode, ScopeFile, ScopeFileError};
use svc_config::Config;
use svc_domain::agent_config::{BadConfig, ConfigScope};
use svc_process::process_umask;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::{ConfigSaved, ConfigWriteStatus};

/// Largest settings file, bytes.
const MOST_BYTES: usize = 1024 * 1024;
/// SHA-256 of nothing: the hash of a file that does not exist.
const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Reads and changes the agent's own configuration.
pub struct AgentConfigEditor {
    config: Arc<Config>,
    catalog: Arc<Catalog>,
    agent: Arc<Agent>,
    audit: Arc<Audit>,
    backups: Backups,
    runs: Arc<AgentRuns>,
    tasks: Tasks,
    /// One write at a time: each compares with what it has read.
    writing: tokio::sync::Mutex<()>,
}

/// A change of one file that is about to be made.
struct FileWrite {
    file: ScopeFile,
    surface: Surface,
    /// Names of what differs, for the audit log.
    keys: Vec<String>,
    before: Option<Found>,
    text: String,
    /// A copy is put back.
    is_restore: bool,
}

impl AgentConfigEditor {
    /// An editor over the parts of this service.
    pub(crate) fn new(
        config: &Arc<Config>,
        catalog: &Arc<Catalog>,
        agent: &Arc<Agent>,
        audit: &Arc<Audit>,
        runs: &Arc<AgentRuns>,
        tasks: &Tasks,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            catalog: Arc::clone(catalog),
            agent: Arc::clone(agent),
            audit: Arc::clone(audit),
            backups: Backups::new(&config.state_dir),
            runs: Arc::clone(runs),
            tasks: tasks.clone(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// What may be changed here.
    #[must_use]
    pub fn status(&self) -> ConfigWriteStatus {
        let section = &self.config.config_write;
        ConfigWriteStatus {
            enabled: section.enabled,
            allow_user_scope: section.enabled && section.allow_user_scope,
        }
    }

    /// Writes a file after its entry in the audit log. Returns its new hash.
    async fn write_file(
        &self,
        target: &ConfigTarget,
        write: FileWrite,
    ) -> Result<ConfigSaved, AppError> {
        let FileWrite { file, surface, keys, before, text, is_restore } = write;
        let hash = hash_of(&text);
        if before.as_ref().map_or("", |found| &found.text) == text {
            return Ok(target.saved(Some(hash)));
        }
        let change = Change {
            surface,
            scope: target.audit_scope(),
            target: file.path().to_string_lossy().into_owned(),
            action: match &before {
                _ if is_restore => "restore",
                Some(_) => "update",
                None => "create",
            },
            keys: keys.into_iter().map(Into::into).collect(),
        };
        let ignored = target.ignored(&file);
        let now = self.audit.clock.now();
        let (backups, mode) = (self.backups.clone(), target.new_mode());
        let work = async move {
            blocking(move || {
                if let Some(found) = &before {
                    backups.keep(&file.path(), &found.text, now)?;
                }
                if let (None, Some(ignored)) = (&before, ignored) {
                    ignore(&ignored)?;
                }
                file.write(before.as_ref(), &text, mode).map_err(refused)
            })
            .await?
        };
        self.audit.record(change, work).await?;
        Ok(target.saved(Some(hash)))
    }
}

/// A file of git's, and the line that it must have.
struct Ignored {
    file: ScopeFile,
    line: String,
}

/// Keeps a file of one user out of git.
fn ignore(ignored: &Ignored) -> Result<(), AppError> {
    let Ignored { file, line } = ignored;
    let before = file.read().map_err(refused)?;
    let text = before.as_ref().map_or("", |found| &found.text);
    if text.lines().any(|has| has.trim().trim_start_matches('/') == line) {
        return Ok(());
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let mode = NewMode::Umask(process_umask::inherited());
    file.write(before.as_ref(), &format!("{text}{gap}{line}\n"), mode).map_err(refused)
}

fn hash_of(text: &str) -> String {
    crate::auth::sha256_hex(text.as_bytes())
}

fn hash_of_found(found: Option<&Found>) -> String {
    found.map_or_else(|| OF_NOTHING.to_owned(), |found| hash_of(&found.text))
}

/// Refuses a change that is based on another state of the file.
fn check_hash(file: &ScopeFile, found: Option<&Found>, sent: Option<&str>) -> Result<(), AppError> {
    let is_empty = found.is_none_or(|found| found.text.is_empty());
    let is_same = sent.map_or(is_empty, |sent| sent == hash_of_found(found));
    if is_same {
        return Ok(());
    }
    Err(refused(ScopeFileError::Changed(file.inside.display().to_string())))
}

fn parsed(file: &ScopeFile, found: Option<&Found>) -> Result<JsonDocument, AppError> {
    JsonDocument::parse(found.map_or("", |found| &found.text)).map_err(|problem| {
        let name = file.inside.display();
        AppError::invalid(format!(
            "{name} is left unchanged because {problem}; repair it on the machine"
        ))
    })
}

fn changed_text(
    file: &ScopeFile,
    document: &JsonDocument,
    wanted: &Value,
) -> Result<String, AppError> {
    document.changed_to(wanted).map_err(|problem| {
        let name = file.inside.display();
        AppError::invalid(format!("{name} cannot be changed because {problem}"))
    })
}

fn bad(error: BadConfig) -> AppError {
    AppError::invalid(error.0)
}

fn not_there() -> AppError {
    AppError::new(ErrorCode::NotFound, Class::NotFound, "Not Found")
}

/// Names of the members that differ, sorted.
fn differing(before: &Value, after: &Value) -> Vec<String> {
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let mut names: Vec<String> = keys(before).into_iter().chain(keys(after)).collect();
    names.retain(|name| before.get(name) != after.get(name));
    names.sort_unstable();
    names.dedup();
    names
}

/// Reads files in the order of a list, on a blocking thread.
async fn read_all(files: Vec<ScopeFile>) -> Result<Vec<Option<Found>>, AppError> {
    blocking(move || files.iter().map(ScopeFile::read).collect::<Result<_, _>>())
        .await?
        .map_err(refused)
}

async fn read_one(file: &ScopeFile) -> Result<Option<Found>, AppError> {
    let file = file.clone();
    blocking(move || file.read()).await?.map_err(refused)
}

/// The scopes of a word on the wire.
fn scope_named(word: &str) -> Option<ConfigScope> {
    ConfigScope::ALL.into_iter().find(|scope| scope.as_str() == word)
}
