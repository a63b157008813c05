//! Use-case: the git worktrees of a project, and the removal of one.

use crate::locks::Locks;
use crate::projects::catalog::Catalog;
use crate::projects::changes::git_failed;
use crate::registry::Registry;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_domain::log_escape::quoted;
use svc_domain::redact::redact_text;
use svc_domain::worktree::{Keep, Loss, Standing, losses, may_remove};
use svc_ports::ProcessHost;
use svc_projects::worktrees::{self, WorktreeError};
use svc_projects::{Project, worktrees::Worktree as Found};
use svc_shared::error::ErrorCode;
use svc_shared::internal::changes::Worktrees as Listed;
use svc_shared::internal::changes::{RemoveWorktree, RemovedWorktree, Worktree};

/// Lists the worktrees of projects, and removes those that nobody needs.
pub struct Worktrees {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) host: Arc<dyn ProcessHost>,
    pub(crate) locks: Arc<Locks>,
    pub(crate) tasks: Tasks,
}

/// Who may work in a worktree.
struct Users {
    bridges: Vec<Bridge>,
    /// Working directories of the processes of this user.
    places: Vec<PathBuf>,
}

impl Worktrees {
    /// The worktrees of a project.
    ///
    /// # Errors
    /// There is no such project, or its directory cannot be read.
    pub async fn list(&self, project: &str) -> Result<Listed, AppError> {
        let project = self.catalog.named(project)?;
        let found = worktrees::list(&project.path).await.map_err(|error| {
            let error = worktree_error(project.name.as_str(), error);
            let name = quoted(project.name.as_str());
            AppError { message: format!("project {name}: {}", error.message), ..error }
        })?;
        if found.found.is_empty() {
            return Ok(Listed::default());
        }
        let users = self.users(&project).await?;
        let worktrees = found.found.iter().map(|found| users.record(found)).collect();
        Ok(Listed { worktrees, truncated: found.truncated })
    }

    /// Removes a worktree. What would be lost with it must be confirmed with its name.
    ///
    /// # Errors
    /// Something runs in it, work would be lost, or git failed.
    pub async fn remove(
        self: &Arc<Self>,
        project: &str,
        name: &str,
        request: RemoveWorktree,
    ) -> Result<RemovedWorktree, AppError> {
        let project = self.catalog.named(project)?;
        let (this, name) = (Arc::clone(self), name.to_owned());
        self.tasks.complete(async move { this.remove_now(&project, &name, &request).await }).await
    }

    async fn remove_now(
        &self,
        project: &Project,
        name: &str,
        request: &RemoveWorktree,
    ) -> Result<RemovedWorktree, AppError> {
        if request.confirm.as_deref().is_some_and(|confirm| confirm != name) {
            return Err(AppError::new(
                ErrorCode::ConfirmRequired,
                Class::Conflict,
                format!("`confirm` is not the name of the worktree; write {}", quoted(name)),
            ));
        }
        let root = project.git_root.clone().ok_or_else(|| unknown(name))?;
        // A launch in this project would use the worktree: it waits until this is done.
        let _lock = self.locks.project(&project.path).await?;
        let failed = |error| worktree_error(name, error);
        let found = worktrees::named(&project.path, name).await.map_err(failed)?;
        let users = self.users(project).await?;
        let standing = users.standing(&found);
        let is_confirmed = request.confirm.is_some();
        let lost = may_remove(&standing, is_confirmed).map_err(|keep| kept(name, &found, &keep))?;
        // A question may stand on a page for hours.
        let seen = request.loses.as_ref();
        if seen.is_some_and(|seen| texts(&lost).iter().any(|lost| !seen.contains(lost))) {
            return Err(kept(name, &found, &Keep::Loses(lost)));
        }
        let removed =
            worktrees::remove(&root, &project.path, &found, is_confirmed).await.map_err(failed)?;
        tracing::info!(
            project.name = %project.name,
            "removed worktree {} of project {}",
            quoted(name),
            quoted(project.name.as_str())
        );
        Ok(RemovedWorktree {
            name: name.to_owned(),
            removed: true,
            lost: texts(&lost),
            kept_branch: removed.kept_branch,
            files_left: removed.files_left.then(|| format!(".claude/worktrees/{name}")),
        })
    }

    async fn users(&self, project: &Project) -> Result<Users, AppError> {
        let rows = self.registry.store.bridges().await?;
        let own = |bridge: &Bridge| bridge.cwd == project.path && bridge.worktree.is_some();
        let bridges = rows
            .into_iter()
            .filter_map(|stored| stored.bridge().filter(|bridge| own(bridge)).cloned());
        let host = Arc::clone(&self.host);
        let places = blocking(move || {
            host.processes().into_iter().filter_map(|process| process.cwd).collect()
        });
        Ok(Users { bridges: bridges.collect(), places: places.await? })
    }
}

impl Users {
    fn of<'u>(&'u self, found: &'u Found) -> impl Iterator<Item = &'u Bridge> {
        let is_it = |bridge: &&Bridge| {
            bridge.worktree.as_ref().is_some_and(|name| name.as_str() == found.name)
        };
        self.bridges.iter().filter(is_it)
    }

    fn standing(&self, found: &Found) -> Standing {
        let works_there = |place: &PathBuf| is_inside(place, &found.path);
        Standing {
            in_use: self.of(found).any(Bridge::is_live) || self.places.iter().any(works_there),
            is_readable: found.trouble.is_none(),
            changed: found.changed,
            loose: found.loose,
            is_locked: found.is_locked,
            has_submodules: found.has_submodules,
        }
    }

    fn record(&self, found: &Found) -> Worktree {
        let standing = self.standing(found);
        let newest = self.of(found).max_by_key(|bridge| (bridge.is_live(), bridge.started_at));
        let lost = if standing.is_readable { losses(&standing) } else { Vec::new() };
        Worktree {
            name: found.name.clone(),
            instance_id: newest.map(|bridge| bridge.id.clone()),
            in_use: standing.in_use,
            branch: found.branch.as_deref().map(redact_text),
            base: found.base.clone(),
            ahead: found.ahead,
            changed: found.changed,
            locked: found.is_locked,
            size_bytes: found.size_bytes,
            loses: texts(&lost),
            problem: found.trouble.clone(),
        }
    }
}

/// Whether a process works in the worktree.
///
/// Its directory may have been deleted meanwhile.
fn is_inside(place: &Path, worktree: &Path) -> bool {
    place.starts_with(worktree)
        || place.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(Path::new)
            == Some(worktree)
}

fn texts(lost: &[Loss]) -> Vec<String> {
    lost.iter().map(ToString::to_string).collect()
}

fn kept(name: &str, found: &Found, keep: &Keep) -> AppError {
    let (code, text) = match keep {
        Keep::InUse => {
            let text = "a session or another process works in it; stop that first";
            (ErrorCode::StillLive, text.to_owned())
        }
        Keep::Unreadable => {
            let why = found.trouble.as_deref().unwrap_or("git says nothing about it");
            (ErrorCode::Busy, format!("{why}; look at it and remove it by hand"))
        }
        Keep::Loses(lost) => {
            let lost = texts(lost).join(", and ");
            let text = format!("it would lose {lost}; repeat with its name as `confirm` (--force)");
            (ErrorCode::ConfirmRequired, text)
        }
    };
    AppError::new(code, Class::Conflict, format!("worktree {} stays: {text}", quoted(name)))
}

fn unknown(name: &str) -> AppError {
    AppError::new(
        ErrorCode::NotFound,
        Class::NotFound,
        format!(
            "there is no worktree {} in `.claude/worktrees` of the project; `svc worktrees` lists \
             them",
            quoted(name)
        ),
    )
}

/// A worktree is not there or not to be touched.
pub(crate) fn worktree_error(name: &str, error: WorktreeError) -> AppError {
    match error {
        WorktreeError::Unknown => unknown(name),
        WorktreeError::Elsewhere(lead) => AppError::new(
            ErrorCode::PathEscape,
            Class::Conflict,
            format!("the worktrees are not touched: {lead}; look at the files of the project"),
        ),
        WorktreeError::Unreadable(_) => {
            AppError::busy("the worktrees of the project cannot be read; check the permissions")
                .because(error)
        }
        WorktreeError::Git(error) => git_failed(error),
    }
}
