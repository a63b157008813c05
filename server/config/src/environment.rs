//! The environment as a value: read once at the start and passed on.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// A snapshot of environment variables.
///
/// Its debug form shows names only, because values hold secrets.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// No variables: for a service that must ignore its environment.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A variable as it is.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that names a path; blank means unset.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.value(name).filter(|value| !value.to_string_lossy().trim().is_empty()).map(Path::new)
    }

    /// The home directory, where the environment names one.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.path(if cfg!(windows) { "USERPROFILE" } else { "HOME" })
            .filter(|home| home.is_absolute())
    }

    /// `path` with a leading `~` replaced by the home directory.
    ///
    /// Unchanged when the environment names no home directory.
    #[must_use]
    pub fn expand_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.home()) {
            (Ok(rest), Some(home)) => home.join(rest),
            (Ok(_) | Err(_), _) => path.to_path_buf(),
        }
    }

    /// Variables whose name starts with `SVC_`, by name.
    ///
    /// Names that are not UTF-8 are skipped: they cannot belong to a key.
    pub(crate) fn service_variables(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        self.0
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value.as_os_str())))
            .filter(|(name, _)| name.starts_with("SVC_"))
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Whether a variable must not reach any child process (`configuration` §2.1).
///
/// True for names that say they hold a secret, and for the two lists of URLs, which hold
/// credentials although their names do not say so.
#[must_use]
pub fn is_scrubbed(name: &OsStr) -> bool {
    const TELLING: [&str; 5] = ["SECRET", "PASSWORD", "PASSWD", "TOKEN", "HASH"];
    const URL_LISTS: [&str; 2] = ["SVC_NOTIFICATIONS_URLS", "SVC_WEBHOOKS_URLS"];
    let name = name.to_string_lossy();
    name.starts_with("SVC_")
        && (TELLING.iter().any(|part| name.contains(part))
            || URL_LISTS.contains(&name.strip_suffix("_FILE").unwrap_or(&name)))
}

/// State directory when no setting names one (`configuration` §5).
///
/// None without a home directory. Checks whether `~/.svc` exists, creates nothing.
#[must_use]
pub fn default_state_dir(environment: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(environment.path("LOCALAPPDATA")?.join("svc"));
    }
    let home = environment.home();
    if cfg!(target_os = "macos") {
        return Some(home?.join("Library/Application Support/svc"));
    }
    if let Some(old) = home.map(|home| home.join(".svc")).filter(|old| old.is_dir()) {
        return Some(old);
    }
    // The base directory rules say that a relative value is ignored.
    match environment.path("XDG_STATE_HOME").filter(|path| path.is_absolute()) {
        Some(state) => Some(state.join("svc")),
        None => Some(home?.join(".local/state/svc")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_service_reach_no_child() {
        for name in [
            "SVC_SESSION_SECRET",
            "SVC_SESSION_SECRET_FILE",
            "SVC_AUTH_PASSWORD_HASH",
            "SVC_AUTH_API_TOKEN_HASH_FILE",
            "SVC_WEBHOOKS_URLS",
            "SVC_NOTIFICATIONS_URLS_FILE",
        ] {
            assert!(is_scrubbed(OsStr::new(name)), "{name}");
        }
        for name in ["SVC_PORT", "SVC_LAUNCH_ID", "GITHUB_TOKEN", "PATH", "svc_secret"] {
            assert!(!is_scrubbed(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn the_debug_form_shows_no_values() {
        let environment: Environment = [("SVC_SESSION_SECRET", "hunter2")].into_iter().collect();
        let shown = format!("{environment:?}");
        assert!(shown.contains("SVC_SESSION_SECRET") && !shown.contains("hunter2"), "{shown}");
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_state_directory_follows_the_environment_and_is_not_created() {
        let home = tempfile::tempdir().unwrap();
        let with = |extra: &[(&str, &str)]| -> Environment {
            let home = ("HOME", home.path().to_str().unwrap());
            extra.iter().copied().chain([home]).collect()
        };
        let default = home.path().join(".local/state/svc");
        assert_eq!(default_state_dir(&with(&[])), Some(default.clone()));
        assert_eq!(default_state_dir(&with(&[("XDG_STATE_HOME", "rel")])), Some(default.clone()));
        let xdg = with(&[("XDG_STATE_HOME", "/xdg")]);
        assert_eq!(default_state_dir(&xdg), Some("/xdg/svc".into()));
        assert!(!default.exists());
        std::fs::create_dir(home.path().join(".svc")).unwrap();
        assert_eq!(default_state_dir(&xdg), Some(home.path().join(".svc")));
        assert_eq!(default_state_dir(&Environment::empty()), None);
    }
}
