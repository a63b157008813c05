//! The git worktrees of Interactive Sessions.

use crate::tasks::blocking;
use std::process::Stdio;
use std::time::Duration;
use svc_domain::bridge::Bridge;
use tokio::process::Command;
use tracing::debug;

/// Longest that git is waited for (`agent-cli` §13).
const LIMIT: Duration = Duration::from_secs(10);

/// Begin of the reason with which an agent locks a worktree (`agent-cli` §13).
const LOCK_OF_AGENT: &str = "claude session";

/// Takes away the lock that some agents leave on the worktree of a session.
///
/// A lock that a person put on it stays. A failure is only logged: most worktrees are not locked.
pub(crate) async fn unlock(bridge: &Bridge) {
    let Some(worktree) = &bridge.worktree else { return };
    let path = worktree.path_in(&bridge.cwd);
    let at = path.clone();
    let reason = blocking(move || svc_projects::worktrees::lock_reason(&at)).await.ok().flatten();
    if !reason.is_some_and(|reason| reason.starts_with(LOCK_OF_AGENT)) {
        return;
    }
    let mut git = Command::new("git");
    // The repository's own hooks and monitors are code of others.
    git.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C"])
        .arg(&bridge.cwd)
        .args(["worktree", "unlock"])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("GIT_") || name.starts_with("SVC_")) {
            git.env_remove(name);
        }
    }
    match tokio::time::timeout(LIMIT, git.status()).await {
        Ok(Ok(status)) if status.success() => {
            debug!(bridge.id = %bridge.id, "the worktree of session {} is unlocked", bridge.id.short());
        }
        Ok(Ok(_)) => {} // not locked, or gone
        Ok(Err(error)) => debug!(bridge.id = %bridge.id, error = %error, "git was not started"),
        Err(_) => debug!(bridge.id = %bridge.id, "git did not unlock a worktree in time"),
    }
}
