//! Old keys, defaults, and the typed configuration.

use super::draft::Draft;
use crate::config::ConfigValues;
use crate::environment::{Environment, default_state_dir};
use crate::keys::{Section as _, Values};
use crate::report::{Location, Problem, WarningKind};
use crate::schema::Preset;
use crate::setting::{Setting, Source};
use crate::table;
use crate::value::Value;

impl Draft {
    /// Gives every key a value that has none yet.
    ///
    /// Old keys come before defaults.
    pub(super) fn add_defaults(&mut self, environment: &Environment) {
        self.apply_old_launch_mode();
        self.apply_show_cost();
        for leaf in table::leaves().filter(|leaf| !leaf.is_per_project()) {
            if self.settings.contains_key(leaf.key) {
                continue;
            }
            let value = match leaf.preset {
                Preset::Derived => self.derive_state_dir(environment),
                _ => Value::preset(leaf.preset),
            };
            let value = value.unwrap_or_else(|| {
                // Reported once. With the placeholder the other checks can run.
                if self.failed.insert(leaf.key) {
                    let reason = "is required; set it to the directory that holds your projects";
                    self.problem(self.whole(), leaf.key, reason);
                }
                Value::Text(self.roots.base.to_string_lossy().into_owned())
            });
            self.settings.insert(leaf.key, Setting { value, source: Source::Default });
        }
        self.warn_database_url();
    }

    fn apply_old_launch_mode(&mut self) {
        let Some(old) = self.old_launch_mode.take() else { return };
        if !self.settings.contains_key("claude.launch_mode") {
            self.settings.insert("claude.launch_mode", old);
            return;
        }
        if let Source::File { line } = old.source {
            let message = "is ignored, because claude.launch_mode is set; remove it";
            self.warn(WarningKind::Deprecated, self.line(line), "claude.resume_mode", message);
        }
    }

    /// Applies `usage.show_cost: false`, the old spelling of `usage.mode: off`.
    fn apply_show_cost(&mut self) {
        const OLD: &str = "usage.show_cost";
        let Some(Setting { value, source }) = self.settings.get(OLD).cloned() else { return };
        let location = self.location_of(OLD);
        let message = "is an old key; use usage.mode: off in place of false, and remove it";
        self.warn(WarningKind::Deprecated, location.clone(), OLD, message);
        if value != Value::Bool(false) {
            return;
        }
        let off = Value::Text("off".to_owned());
        match self.settings.get("usage.mode") {
            None => {
                self.settings.insert("usage.mode", Setting { value: off, source });
            }
            Some(mode) if mode.value != off => {
                let message = "is ignored, because usage.mode says otherwise; remove it";
                self.warn(WarningKind::Deprecated, location, OLD, message);
            }
            Some(_) => {}
        }
    }

    fn derive_state_dir(&mut self, environment: &Environment) -> Option<Value> {
        let derived =
            default_state_dir(environment).map(|path| path.into_os_string().into_string());
        let reason = match derived {
            Some(Ok(path)) => return Some(Value::Text(path)),
            Some(Err(_)) => "would lie in a home directory whose name is not UTF-8; set it",
            None => "has no default, because the environment names no home directory; set it",
        };
        self.failed.insert("state_dir");
        self.problem(self.whole(), "state_dir", reason);
        None
    }

    fn warn_database_url(&mut self) {
        let database = match self.settings.get("state_dir") {
            Some(Setting { value: Value::Text(path), .. }) => {
                crate::report::printable(&format!("{path}/svc.db"))
            }
            _ => "svc.db in state_dir".to_owned(),
        };
        for location in std::mem::take(&mut self.database_url) {
            let message = format!("no longer has any effect; data is kept in {database}");
            self.warn(WarningKind::Deprecated, location, "database_url", message);
        }
    }

    /// The typed configuration.
    ///
    /// None only when the type of a field cannot hold a value of its kind.
    pub(super) fn build(&mut self) -> Option<ConfigValues> {
        let values =
            Values { settings: &self.settings, projects: &self.projects, written: &self.sections };
        let config = ConfigValues::read(&values);
        if config.is_none() {
            self.problems.push(Problem {
                location: Location::Nowhere,
                key: None,
                reason: "cannot be represented by this version; this is a defect of the program, \
                         please report it"
                    .to_owned(),
            });
        }
        config
    }
}
