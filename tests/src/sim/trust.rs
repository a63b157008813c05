//! Workspace trust by the agent's rule, and the few git facts a start reports.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::profile::Profile;

/// Whether `cwd` counts as trusted in the agent configuration.
///
/// Up to 2.1.211 the key of the repository's root, of `cwd` or of any of its ancestors is enough;
/// from 2.1.232 on a repository needs its own key (or that of the directory itself).
pub(crate) fn is_trusted(config: &Value, cwd: &Path, profile: Profile) -> bool {
    let accepted = |dir: &Path| {
        let key = dir.to_string_lossy();
        let project = config.get("projects").and_then(|projects| projects.get(key.as_ref()));
        project.and_then(|p| p.get("hasTrustDialogAccepted")) == Some(&Value::Bool(true))
    };
    match git_root(cwd) {
        Some(root) if profile.repository_needs_own_key() => accepted(&root) || accepted(cwd),
        Some(root) => accepted(&root) || cwd.ancestors().any(accepted),
        None => cwd.ancestors().any(accepted),
    }
}

/// The nearest ancestor (or `cwd` itself) with a `.git` directory or file.
pub(crate) fn git_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

/// The checked-out branch, `HEAD` when there is none.
pub(crate) fn branch(cwd: &Path) -> String {
    let head = git_root(cwd).and_then(|root| {
        let git = root.join(".git");
        // In a worktree this is a file that names the directory.
        let elsewhere = fs::read_to_string(&git).ok();
        let dir = elsewhere.as_deref().and_then(|text| text.trim().strip_prefix("gitdir: "));
        fs::read_to_string(dir.map_or(git, |dir| root.join(dir)).join("HEAD")).ok()
    });
    head.as_deref()
        .and_then(|head| head.trim().strip_prefix("ref: refs/heads/"))
        .unwrap_or("HEAD")
        .to_owned()
}

/// The first remote's address without credentials, if there is one.
pub(crate) fn remote_url(cwd: &Path) -> Option<String> {
    let config = fs::read_to_string(git_root(cwd)?.join(".git/config")).ok()?;
    let url = config.lines().find_map(|line| line.trim().strip_prefix("url = "))?;
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some(url.to_owned());
    };
    let rest = rest.split_once('@').map_or(rest, |(_, host)| host);
    Some(format!("{scheme}://{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(version: &str) -> Profile {
        Profile::nearest(version).expect("a known version")
    }

    #[test]
    fn a_repository_below_a_trusted_folder_is_trusted_by_older_agents_only() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let parent = tree.path().to_owned();
        let repository = parent.join("repository");
        let plain = parent.join("plain");
        fs::create_dir_all(repository.join(".git")).expect("a repository");
        fs::create_dir_all(&plain).expect("a plain directory");
        let config = |dir: &Path| serde_json::json!({ "projects": { dir.to_string_lossy(): { "hasTrustDialogAccepted": true } } });
        let by_parent = config(&parent);
        assert!(is_trusted(&by_parent, &repository, profile("2.1.197")));
        assert!(!is_trusted(&by_parent, &repository, profile("2.1.232")));
        assert!(is_trusted(&by_parent, &plain, profile("2.1.232")));
        assert!(is_trusted(&config(&repository), &repository, profile("2.1.280")));
        assert!(!is_trusted(&Value::Null, &plain, profile("2.1.197")));
        let odd = serde_json::json!({ "projects": 5 });
        assert!(!is_trusted(&odd, &plain, profile("2.1.197")));
    }
}
