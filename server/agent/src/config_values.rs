//! Servers and approvals in the agent's state file, read and changed.

use crate::cli::AgentCli;
use crate::config_file::TrustError;
use crate::json_edit::with_merged;
use crate::json_part::{Wanted, part};
use crate::trust::AgentConfig;
use serde_json::Value;
use std::sync::Arc;

/// What is asked for of the file; the rest is mostly history.
const SHOWN: Wanted = Wanted::Members(&[
    ("oauthAccount", Wanted::Members(&[("organizationUuid", Wanted::Whole)])),
    ("mcpServers", Wanted::Whole),
    (
        "projects",
        Wanted::Each(&Wanted::Members(&[
            ("mcpServers", Wanted::Whole),
            ("enabledMcpjsonServers", Wanted::Whole),
            ("disabledMcpjsonServers", Wanted::Whole),
        ])),
    ),
]);

impl AgentCli {
    /// The value at a path of the agent config file. Blocks for reading the file.
    ///
    /// Only what is about servers is there, and the organization of the account.
    ///
    /// # Errors
    /// The file is unreadable or no JSON.
    pub fn config_value(&self, path: &[&str]) -> Result<Option<Value>, TrustError> {
        self.config()?.value(path)
    }

    /// Replaces values of the agent config file, each at its path.
    ///
    /// None removes what is there.
    ///
    /// `wanted` is given the values of now and returns those to write, in the same order. It is
    /// called once, while no other process of this service changes the file. Everything else in the
    /// file stays as it is, also what others write meanwhile.
    ///
    /// # Errors
    /// The file is unreadable, no JSON, or cannot be written. The inner error is that of `wanted`.
    pub async fn set_config_values<E: Send + 'static>(
        &self,
        paths: Vec<Vec<String>>,
        wanted: impl FnOnce(&[Option<Value>]) -> Result<Vec<Option<Value>>, E> + Send + 'static,
    ) -> Result<Result<bool, E>, TrustError> {
        let config = self.config()?;
        let (lock, ended) = (config.lock().await?, config.busy());
        let work = move || {
            let _lock = lock;
            config.set_values(&paths, wanted)
        };
        tokio::task::spawn_blocking(work).await.unwrap_or(Err(ended))
    }
}

impl AgentConfig {
    fn value(&self, path: &[&str]) -> Result<Option<Value>, TrustError> {
        let Some(text) = self.text()? else { return Ok(None) };
        let document = part(&text, SHOWN).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            self.content(format!("it is not valid JSON at line {line}, column {column}"))
        })?;
        let found = path.iter().try_fold(&document, |value, key| value.get(key));
        Ok(found.filter(|value| !value.is_null()).cloned())
    }

    fn set_values<E>(
        self: Arc<Self>,
        paths: &[Vec<String>],
        wanted: impl FnOnce(&[Option<Value>]) -> Result<Vec<Option<Value>>, E>,
    ) -> Result<Result<bool, E>, TrustError> {
        let paths: Vec<Vec<&str>> =
            paths.iter().map(|path| path.iter().map(String::as_str).collect()).collect();
        let now: Result<Vec<_>, _> = paths.iter().map(|path| self.value(path)).collect();
        let wanted = match wanted(&now?) {
            Ok(wanted) => wanted,
            Err(refused) => return Ok(Err(refused)),
        };
        let edit = |text: &str| {
            let mut edited = None;
            for (path, value) in paths.iter().zip(&wanted) {
                let text = edited.as_deref().unwrap_or(text);
                edited = with_merged(text, path, value.as_ref())?.or(edited);
            }
            Ok(edited)
        };
        self.change(&edit).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::AgentHome;
    use svc_process::locks::FileLocks;

    /// The end of a file with years of history is read like its beginning.
    #[test]
    fn a_value_behind_a_long_history_is_found_and_nothing_else_is_there() {
        let root = tempfile::tempdir().unwrap();
        let env = [("HOME".into(), root.path().into())].into();
        let home = AgentHome::of_child(&env).unwrap();
        let history = "x".repeat(20 * 1024 * 1024);
        let text = format!(
            r#"{{"history":["{history}"],"oauthAccount":{{"organizationUuid":"o","email":"e"}}}}"#
        );
        std::fs::write(home.config_file(), text).unwrap();
        let config = AgentConfig::new(home, FileLocks::new(root.path().into()));
        let value = |path: &[&str]| config.value(path).unwrap();
        assert_eq!(value(&["oauthAccount", "organizationUuid"]), Some("o".into()));
        assert_eq!([value(&["oauthAccount", "email"]), value(&["history"])], [None, None]);
    }
}
