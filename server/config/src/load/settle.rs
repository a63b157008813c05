//! Old spellings, defaults, and the typed configuration.

use super::{Draft, Setting, Source};
use crate::config::Config;
use crate::environment::{Environment, default_state_dir};
use crate::keys::{Section as _, Values};
use crate::report::{Concern, Place, Problem};
use crate::schema::{self, Preset};
use crate::value::Value;

impl Draft {
    /// Gives every key a value: what is set, else what an old key says, else the default.
    pub(super) fn settle(&mut self, environment: &Environment) {
        self.apply_old_launch_mode();
        self.apply_show_cost();
        for leaf in schema::leaves().filter(|leaf| !leaf.is_per_project()) {
            if self.settings.contains_key(leaf.key) {
                continue;
            }
            let value = match leaf.preset {
                Preset::Derived => self.derive_state_dir(environment),
                _ => Value::preset(leaf.preset),
            };
            let value = value.unwrap_or_else(|| {
                // Reported once; the placeholder lets the other checks go on.
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
            self.warn(Concern::Deprecated, self.line(line), "claude.resume_mode", message);
        }
    }

    /// `usage.show_cost: false` is the old way to say `usage.mode: off`.
    fn apply_show_cost(&mut self) {
        const OLD: &str = "usage.show_cost";
        let Some(Setting { value, source }) = self.settings.get(OLD).cloned() else { return };
        let place = self.place_of(OLD);
        let message = "is an old key; use usage.mode: off in place of false, and remove it";
        self.warn(Concern::Deprecated, place.clone(), OLD, message);
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
                self.warn(Concern::Deprecated, place, OLD, message);
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
        for place in std::mem::take(&mut self.database_url) {
            let message = format!("no longer has any effect; data is kept in {database}");
            self.warn(Concern::Deprecated, place, "database_url", message);
        }
    }

    /// The typed configuration; none only when a field's type cannot hold a value of its kind.
    pub(super) fn build(&mut self) -> Option<Config> {
        let values =
            Values { settings: &self.settings, projects: &self.projects, written: &self.sections };
        let config = Config::read(&values);
        if config.is_none() {
            self.problems.push(Problem {
                place: Place::Nowhere,
                key: None,
                reason: "cannot be represented by this version; this is a defect of the program, \
                         please report it"
                    .to_owned(),
            });
        }
        config
    }
}
