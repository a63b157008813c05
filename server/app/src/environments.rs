//! Use-case: remote environments without a live bridge (`http-api` §3.4).
//!
//! The account's service keeps an environment of each bridge. What is left over is found by looking
//! at what lives on this machine; where that cannot be told, nothing is removed.

mod remote;

use crate::bridges::unmanaged::Finder;
use crate::ops::audit::{Audit, Change, Scope, Surface};
use crate::read_model::records::Records;
use crate::registry::Registry;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use remote::{Account, Remote, Removal};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_agent::pointer::Found;
use svc_agent::role::is_agent;
use svc_domain::environments::{Alive, Here, Listed, is_left_over};
use svc_domain::identity::Verdict;
use svc_domain::redact::redact_text;
use svc_shared::error::ErrorCode;
use svc_shared::internal::environments::{Ghost, Ghosts, ReapRequest, Reaped};

/// Lists and removes what is left over.
pub struct Environments {
    finder: Arc<Finder>,
    registry: Arc<Registry>,
    records: Arc<Records>,
    audit: Arc<Audit>,
    tasks: Tasks,
    /// One at a time: each asks for every page of the list.
    turn: tokio::sync::Mutex<()>,
}

/// An environment that is left over. Its id is a credential.
struct Candidate {
    listed: Listed,
    directory: PathBuf,
    shown: Ghost,
}

struct Looked {
    remote: Remote,
    total: usize,
    live_dirs: usize,
    candidates: Vec<Candidate>,
}

impl Environments {
    pub(crate) fn new(
        finder: &Arc<Finder>,
        registry: &Arc<Registry>,
        records: &Arc<Records>,
        audit: &Arc<Audit>,
        tasks: &Tasks,
    ) -> Self {
        Self {
            finder: Arc::clone(finder),
            registry: Arc::clone(registry),
            records: Arc::clone(records),
            audit: Arc::clone(audit),
            tasks: tasks.clone(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// What is left over.
    ///
    /// # Errors
    /// There are no credentials, what lives cannot be told, or the account's service fails.
    pub async fn ghosts(self: &Arc<Self>) -> Result<Ghosts, AppError> {
        let _turn = self.turn.lock().await;
        let looked = self.look().await?;
        Ok(Ghosts {
            enabled: true,
            total: looked.total,
            live_dirs: looked.live_dirs,
            ghosts: looked.candidates.into_iter().map(|one| one.shown).collect(),
        })
    }

    /// Removes those of the named ones that are left over at this moment.
    ///
    /// # Errors
    /// The confirmation is missing, or as [`Environments::ghosts`]. What fails for a single one is
    /// in the answer.
    pub async fn reap(self: &Arc<Self>, request: ReapRequest) -> Result<Reaped, AppError> {
        let (how, confirmation) = match request.action.as_str() {
            "archive" => (Removal::Archive, "archive"),
            "delete" => (Removal::Delete, "DELETE"),
            _ => return Err(AppError::invalid("`action` must be archive or delete")),
        };
        if request.confirm != confirmation {
            return Err(AppError::new(
                ErrorCode::ConfirmRequired,
                Class::Invalid,
                format!("`confirm` must be `{confirmation}` for this; nothing was removed"),
            ));
        }
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.reap_now(request, how).await }).await
    }

    async fn reap_now(
        self: Arc<Self>,
        request: ReapRequest,
        how: Removal,
    ) -> Result<Reaped, AppError> {
        let _turn = self.turn.lock().await;
        let looked = self.look().await?;
        let mut known: HashMap<String, Candidate> = looked
            .candidates
            .into_iter()
            .map(|one| (one.shown.environment_ref.to_string(), one))
            .collect();
        let mut done = Reaped { action: request.action.clone(), ..Reaped::default() };
        for id in request.ids {
            let Some(one) = known.remove(&id) else {
                done.skipped.push(id);
                continue;
            };
            // A bridge may have been started since the list was read.
            let alive = match self.alive(vec![one.directory.clone()]).await {
                Ok(alive) => alive,
                // What was removed before it stays told.
                Err(error) => {
                    done.errors.insert(id, error.message);
                    continue;
                }
            };
            if !is_left_over(&one.listed.id, &one.directory, &alive) {
                done.skipped.push(id);
                continue;
            }
            let change = Change {
                surface: Surface::Environments,
                scope: Scope::User,
                target: id.clone(),
                action: if how == Removal::Archive { "archive" } else { "delete" },
                keys: Vec::new(),
            };
            let removal = looked.remote.remove(&one.listed.id, how);
            match self.audit.record(change, removal).await {
                Ok(()) => {
                    tracing::info!(
                        environment = id,
                        action = request.action,
                        "removed a left-over remote environment"
                    );
                    done.reaped.push(id);
                }
                Err(error) => {
                    tracing::warn!(environment = id, error = %error, "a left-over remote environment stays");
                    done.errors.insert(id, error.message);
                }
            }
        }
        Ok(done)
    }

    async fn look(self: &Arc<Self>) -> Result<Looked, AppError> {
        let (home, agent) = (self.finder.agent.home()?, Arc::clone(&self.finder.agent));
        let now = self.audit.clock.now();
        let account = blocking(move || {
            // A file that cannot be read names none.
            let named = agent.cli().config_value(&["oauthAccount", "organizationUuid"]);
            let named = named.ok().flatten();
            let organization = named.as_ref().and_then(Value::as_str).map(str::to_owned);
            Account::of_agent(&home, organization, now)
        });
        let account = account.await??;
        let root = self.finder.config.projects_root.clone();
        let root = blocking(move || std::fs::canonicalize(root)).await?;
        let root = root.map_err(|error| {
            unsure("`projects_root` cannot be read, so nobody can say what belongs to it")
                .because(error)
        })?;
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let here = Here { root, machine };
        // Before anything is asked: without it the answer is of no use.
        self.alive(Vec::new()).await?;
        let remote = Remote::new(account).await?;
        let listed = remote.list().await?;
        let total = listed.len();
        let placed: Vec<(Listed, PathBuf)> = listed
            .into_iter()
            .filter_map(|one| one.project_directory(&here).map(|directory| (one, directory)))
            .collect();
        let directories = placed.iter().map(|(_, directory)| directory.clone()).collect();
        // Again: a bridge that began meanwhile may be in the list.
        let alive = self.alive(directories).await?;
        let mut live = alive.directories.clone();
        live.sort_unstable();
        live.dedup();
        let mut candidates: Vec<Candidate> = placed
            .into_iter()
            .filter(|(one, directory)| is_left_over(&one.id, directory, &alive))
            .filter_map(|(listed, directory)| {
                let shown = Ghost {
                    environment_ref: self.records.view.refs.environment(&listed.id)?,
                    directory: redact_text(&directory.to_string_lossy()),
                    name: redact_text(&listed.name),
                };
                Some(Candidate { listed, directory, shown })
            })
            .collect();
        candidates.sort_by(|a, b| a.directory.cmp(&b.directory));
        let live_dirs = live.len();
        Ok(Looked { remote, total, live_dirs, candidates })
    }

    /// What lives on this machine, as far as it concerns these directories.
    async fn alive(self: &Arc<Self>, directories: Vec<PathBuf>) -> Result<Alive, AppError> {
        let rows = self.registry.live().await.map_err(|error| {
            unsure("the records of bridges cannot be read, so nobody can say which of them live")
                .because(error)
        })?;
        let held: Vec<PathBuf> = {
            let mut held = Vec::new();
            self.registry.copies.each(|row| {
                if row.is_live() || row.quarantine.is_some() {
                    held.push(row.cwd.clone());
                }
            });
            held
        };
        let is_damaged = self.registry.copies.rows().iter().any(|row| row.bridge().is_none());
        if is_damaged {
            return Err(unsure(
                "a record of a bridge is damaged; see `svc doctor` and mend it first",
            ));
        }
        let mut alive = Alive {
            directories: held,
            environments: rows.into_iter().filter_map(|row| row.anchor.environment_id).collect(),
        };
        let this = Arc::clone(self);
        blocking(move || {
            this.add_processes(&mut alive)?;
            this.add_pointers(&directories, &mut alive)?;
            Ok(alive)
        })
        .await?
    }

    /// The directories of all agents of this user, whoever started them.
    fn add_processes(&self, alive: &mut Alive) -> Result<(), AppError> {
        let program = self.finder.agent.program().ok();
        let configured = program.as_deref().unwrap_or(Path::new("claude"));
        let processes = self.finder.host.processes();
        if processes.is_empty() {
            return Err(unsure("the processes of this machine cannot be listed"));
        }
        for process in processes {
            if !is_agent(&process.argv, process.exe.as_deref(), configured) {
                continue;
            }
            match process.cwd {
                Some(directory) => alive.directories.push(directory),
                // It has ended since it was listed.
                None if matches!(self.finder.host.probe(&process.identity), Verdict::Gone(_)) => {}
                None => {
                    return Err(unsure(
                        "an agent runs whose directory cannot be read, so it may be the bridge of any of \
                         them; try again when it has ended",
                    ));
                }
            }
        }
        Ok(())
    }

    /// What the agent's own notes say about these directories and all projects.
    fn add_pointers(&self, directories: &[PathBuf], alive: &mut Alive) -> Result<(), AppError> {
        let projects = self.records.projects.all();
        let projects = projects.iter().map(|project| project.path.as_path());
        for directory in projects.chain(directories.iter().map(PathBuf::as_path)) {
            match self.finder.agent.pointer_found(directory) {
                Found::Nothing | Found::Malformed(_) => {}
                Found::Unreadable(error) => {
                    return Err(
                        unsure("a bridge pointer of the agent cannot be read").because(error)
                    );
                }
                Found::Pointer(pointer) => {
                    if self.finder.pointer_is_live(&pointer) {
                        alive.directories.push(directory.to_owned());
                        alive.environments.extend(pointer.environment_id);
                    }
                }
            }
        }
        Ok(())
    }
}

fn unsure(why: &str) -> AppError {
    AppError::busy(format!("nothing is removed now: {why}"))
}
