//! A configuration that was read again: what is taken over now, and what waits.

use crate::held::Config;
use crate::keys::Section as _;
use crate::loaded::Loaded;
use crate::schema::Apply;
use crate::table;
use serde_json::Value as Json;
use std::sync::Arc;
use svc_shared::ids::ProjectName;

/// What became of a configuration that was read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Keys whose new values are in force now.
    pub now: Vec<String>,
    /// Keys whose new values wait for the next start.
    pub at_restart: Vec<String>,
}

/// Whether a key, or the list or table that it is in, is among these.
///
/// A change of `claude.env.NAME` is one of `claude.env`.
#[must_use]
pub fn is_named_in(keys: &[String], key: &str) -> bool {
    let holds = |named: &String| {
        key.strip_prefix(named.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    keys.iter().any(holds)
}

impl Loaded {
    /// The same values in the configuration that a service holds.
    #[must_use]
    pub fn held_in(self, config: &Arc<Config>) -> Self {
        Self { config: Arc::clone(config), ..self }
    }

    /// What `newer` would change, and what of it needs no restart.
    #[must_use]
    pub fn compare(&self, newer: &Self) -> Applied {
        let mut applied = Applied::default();
        for leaf in table::leaves() {
            let live = match leaf.apply {
                Apply::Live | Apply::NextSpawn | Apply::NextMcpStart => self.config.has_room(),
                Apply::Restart => false,
            };
            let keys = if live { &mut applied.now } else { &mut applied.at_restart };
            if leaf.is_per_project() {
                let names = self.projects.keys().chain(newer.projects.keys());
                let mut names: Vec<&ProjectName> = names.collect();
                names.sort_unstable();
                names.dedup();
                let differs = |name: &&ProjectName| {
                    self.of_project(name, leaf.key) != newer.of_project(name, leaf.key)
                };
                let key = |name: &ProjectName| format!("projects.{name}.{}", leaf.name());
                keys.extend(names.into_iter().filter(differs).map(key));
            } else if self.value(leaf.key) != newer.value(leaf.key) {
                keys.push(leaf.key.to_owned());
            }
        }
        applied
    }

    /// Takes over what of `newer` needs no restart.
    ///
    /// Everybody who holds this configuration reads the new values from now on.
    pub fn take_live(&mut self, newer: &Self) -> Applied {
        let applied = self.compare(newer);
        if applied.now.is_empty() {
            return applied;
        }
        let merged = self.config.with_live_of(&newer.config);
        self.config.replace(merged);
        for leaf in table::leaves().filter(|leaf| leaf.apply != Apply::Restart) {
            match newer.settings.get(leaf.key) {
                Some(setting) => self.settings.insert(leaf.key, setting.clone()),
                None => self.settings.remove(leaf.key),
            };
        }
        self.projects = newer.projects.clone();
        applied
    }

    fn value(&self, key: &str) -> Option<Json> {
        self.settings.get(key).map(|setting| setting.value.to_json())
    }

    fn of_project(&self, name: &ProjectName, key: &str) -> Option<Json> {
        let settings = self.projects.get(name)?;
        settings.get(key).map(|setting| setting.value.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::MOST;
    use crate::load::load_text;
    use std::path::Path;

    fn loaded(dir: &Path, more: &str) -> Loaded {
        let dir = dir.display();
        let text = format!("projects_root: {dir}\nstate_dir: {dir}/state\n{more}");
        load_text(&text, Path::new("/")).unwrap()
    }

    #[test]
    fn a_key_below_a_named_one_is_named_too() {
        let keys = ["claude.env".to_owned(), "port".to_owned()];
        assert!(is_named_in(&keys, "claude.env.TOKEN") && is_named_in(&keys, "port"));
        assert!(!is_named_in(&keys, "claude.environment") && !is_named_in(&keys, "claude"));
    }

    #[test]
    fn live_keys_are_taken_over_and_the_others_wait() {
        let dir = tempfile::tempdir().unwrap();
        let mut running = loaded(dir.path(), "port: 7000\n");
        let held = Arc::clone(&running.config);
        let before = &held.restart;
        let newer = loaded(
            dir.path(),
            "port: 8000\nrestart: {max_crashes: 9}\nprojects: {api: {restart: always}}\n\
             instance_defaults: {max_bridges: 3}\nauth: {enabled: true}\n",
        );
        let applied = running.take_live(&newer);
        assert_eq!(
            applied.now,
            ["instance_defaults.max_bridges", "projects.api.restart", "restart.max_crashes"]
        );
        assert_eq!(applied.at_restart, ["port", "auth.enabled"]);
        assert_eq!((held.restart.max_crashes, held.port), (9, 7000));
        assert_eq!(held.instance_defaults.max_bridges, Some(3));
        assert!(!held.auth.enabled, "a protection changes at a restart, together with the rest");
        assert_eq!(held.restart_policy(&"api".parse().unwrap()).as_str(), "always");
        assert_eq!(before.max_crashes, 5, "whoever reads meanwhile has one state to the end");

        // What waits is still told; what was taken over is not.
        let again = running.take_live(&newer);
        assert_eq!((again.now.len(), again.at_restart.len()), (0, 2));
        let back = running.take_live(&loaded(dir.path(), "port: 7000\n"));
        assert_eq!((back.now.len(), back.at_restart.len()), (3, 0));
        assert_eq!(held.instance_defaults.max_bridges, None);
    }

    #[test]
    fn values_that_were_replaced_too_often_wait_for_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let mut running = loaded(dir.path(), "");
        let two =
            [7, 8].map(|many| loaded(dir.path(), &format!("restart: {{max_crashes: {many}}}\n")));
        for newer in two.iter().cycle().take(MOST) {
            assert_eq!(running.take_live(newer).now.len(), 1);
        }
        let last = running.take_live(&loaded(dir.path(), "restart: {max_crashes: 9}\n"));
        assert_eq!((last.now.len(), last.at_restart.len()), (0, 1));
        assert_eq!(running.config.restart.max_crashes, 8);
    }
}
