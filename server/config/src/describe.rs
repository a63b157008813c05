//! Keys for an editor: names, bounds, and why a key is not in one.

use crate::schema::{Apply, Kind, Leaf};
use crate::setting::Source;
use crate::value::Value;
use serde_json::Value as Json;
use svc_shared::internal::settings::{ConfigSpec, MapKey};

/// Sections for people, in the order of an editor.
const SECTIONS: [(&str, &str); 19] = [
    ("general", "General"),
    ("claude", "Agent"),
    ("instance_defaults", "Launch defaults"),
    ("restart", "Restart policy"),
    ("ceilings", "Limits"),
    ("hosted", "Direct Sessions"),
    ("logs", "Logs"),
    ("usage", "Usage and cost"),
    ("metrics", "Metrics"),
    ("observability", "Monitoring"),
    ("notifications", "Notifications"),
    ("push", "Notifications of devices"),
    ("api", "API"),
    ("reaper", "Environments"),
    ("clone", "Creating and cloning"),
    ("webhooks", "Webhooks"),
    ("auth", "Sign-in"),
    ("tls", "Encryption"),
    ("projects", "Projects"),
];

/// Names for people, where the last name of a key says too little.
const NAMES: [(&str, &str); 58] = [
    ("api.openapi_enabled", "API description"),
    ("ceilings.action", "Above a limit"),
    ("ceilings.memory_mb", "Memory"),
    ("claude.after_reboot", "After a reboot"),
    ("claude.agents_json_poll_interval_seconds", "Cross-check of sessions"),
    ("claude.approval_hook", "Approvals here"),
    ("claude.auto_enable_remote_control", "Allow remote control"),
    ("claude.heal", "Lost remote link"),
    ("claude.launch_mode", "Kind of new sessions"),
    ("claude.min_version", "Lowest agent version"),
    ("claude.pty_screen_enabled", "Live terminal view"),
    ("claude.resume_recap", "Recap after a resume"),
    ("claude.resume_recap_max_chars", "Length of the recap"),
    ("claude.startup_grace_seconds", "Time to register"),
    ("claude.stop_grace_seconds", "Time to stop"),
    ("clone.allowed_private_cidrs", "Allowed private ranges"),
    ("clone.enabled", "Create and clone"),
    ("clone.max_mb", "Largest clone"),
    ("clone.timeout_seconds", "Longest clone"),
    ("hosted.enabled", "Direct Sessions"),
    ("hosted.keep_children", "Keep sessions"),
    ("logs.bridge_log_max_size_mb", "Largest live log"),
    ("logs.keep_rotated", "Rotated logs kept"),
    ("logs.redact_session_url", "Redacted copy"),
    ("logs.retention_max_age_days", "Delete logs after"),
    ("logs.retention_max_files", "Logs kept"),
    ("logs.retention_max_total_mb", "Size of all logs"),
    ("logs.strip_ansi_in_stream", "Lines without colour"),
    ("metrics.enabled", "Resource use"),
    ("metrics.normalize_cpu", "Processor use per core"),
    ("metrics.poll_seconds", "Refresh every"),
    ("metrics.sample_interval_seconds", "Length of a sample"),
    ("metrics.show_disk", "Disk use"),
    ("notifications.browser_enabled", "In the browser"),
    ("notifications.enabled", "To addresses"),
    ("notifications.notify_on_crash", "A bridge crashed"),
    ("notifications.notify_on_permission", "A permission is asked for"),
    ("notifications.notify_on_ready", "A bridge is ready"),
    ("notifications.notify_on_reconnect_failed", "A reconnect failed"),
    ("notifications.notify_on_session_end", "A session ended"),
    ("notifications.notify_on_stop", "A bridge stopped"),
    ("notifications.quiet_hours", "Quiet hours"),
    ("notifications.urls", "Addresses"),
    ("push.allow_action", "Answer from a notification"),
    ("push.enabled", "To devices"),
    ("push.include_content", "Say what is asked"),
    ("observability.prometheus_enabled", "Prometheus metrics"),
    ("reaper.ui_enabled", "Environment reaper"),
    ("restart.initial_delay_seconds", "First delay"),
    ("restart.max_crashes", "Crashes until it is given up"),
    ("restart.max_delay_seconds", "Longest delay"),
    ("restart.multiplier", "Growth of the delay"),
    ("restart.window_seconds", "Crashes count for"),
    ("usage.fx_rate", "Exchange rate"),
    ("usage.mode", "Usage badge"),
    ("usage.token_total_includes_cache", "Count cache tokens"),
    ("webhooks.enabled", "Webhooks"),
    ("webhooks.outbox", "Try again until taken"),
];

/// Why no editor changes the keys with this beginning.
const FILE_REASONS: [(&str, &str); 24] = [
    ("schema_version", "says which version of svc the file was written for"),
    ("projects_root", "decides which directories agents may work in"),
    ("host", "decides who can reach svc; a mistake here locks you out"),
    ("port", "decides who can reach svc; a mistake here locks you out"),
    ("state_dir", "moves the database and the secrets"),
    ("root_path", "decides under which address svc answers; a mistake here locks you out"),
    ("log_level", "decides what is kept about your work"),
    ("instance_name", "is part of how this installation is set up"),
    ("config_strict", "decides whether svc starts at all"),
    ("claude.binary", "names the program that every session runs"),
    ("claude.path_append", "decides which programs a session finds"),
    ("claude.node_from_nvm", "decides which programs a session finds"),
    ("claude.env", "holds secrets of your sessions"),
    ("claude.terminal_input", "lets a browser type into a session"),
    ("claude.scope", "decides how sessions are started on this machine"),
    ("projects", "decides which projects may run without permission checks"),
    ("auth", "decides who may sign in"),
    ("tls", "protects the connection"),
    ("ui", "switches this page off"),
    ("db", "protects the database during an upgrade"),
    ("config_write", "decides whether this page may change anything"),
    ("login_shepherd", "lets a browser sign the agent in"),
    ("mcp", "lets an agent change what svc does"),
    ("hosted.binary", "names the program that owns Direct Sessions"),
];

/// Why no editor changes the rest of the file-only keys: they are secrets.
const SECRET_REASON: &str = "is a secret, or an address that holds one";

/// Why no editor changes this key; none for a key that an editor changes.
#[must_use]
pub fn file_reason(leaf: &Leaf) -> Option<&'static str> {
    if leaf.edit != crate::schema::Edit::File {
        return None;
    }
    let begins = |key: &str| {
        leaf.key.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let listed = FILE_REASONS.iter().find(|(key, _)| begins(key)).map(|(_, reason)| *reason);
    listed.or(leaf.secret.then_some(SECRET_REASON))
}

/// Section of a key, and its name for people.
#[must_use]
pub fn section_of(leaf: &Leaf) -> (&'static str, &'static str) {
    let first = match leaf.key.split_once('.') {
        Some((first, _)) => first,
        None => "general",
    };
    let found = SECTIONS.iter().find(|(name, _)| *name == first);
    found.copied().unwrap_or(("general", "General"))
}

/// A key as an editor shows it.
#[must_use]
pub fn describe(leaf: &'static Leaf, source: &Source) -> ConfigSpec {
    let (section, section_label) = section_of(leaf);
    let (kind, choices) = match leaf.kind {
        Kind::Bool => ("bool", &[][..]),
        Kind::Int { .. } => ("int", &[][..]),
        Kind::Float(_) => ("float", &[][..]),
        Kind::Seconds { whole, .. } => (if whole { "int" } else { "float" }, &[][..]),
        Kind::Choice { words, .. } => ("enum", words),
        Kind::List(_) => ("list", &[][..]),
        Kind::TextMap | Kind::Switches(_) => ("map", &[][..]),
        Kind::Text(_) | Kind::Path | Kind::Program | Kind::SocketPath => ("str", &[][..]),
    };
    let (min, max, min_exclusive) = bounds(leaf.kind);
    let map_keys = match leaf.kind {
        Kind::Switches(known) => known
            .iter()
            .map(|(key, default)| MapKey { key: (*key).to_owned(), default: *default })
            .collect(),
        _ => Vec::new(),
    };
    let env_name = match source {
        Source::Env { name } => Some(name.clone()),
        Source::Default | Source::File { .. } => None,
    };
    let (name, unit) = name_and_unit(leaf);
    ConfigSpec {
        key: leaf.key.to_owned(),
        section: section.to_owned(),
        section_label: section_label.to_owned(),
        label: name,
        kind: kind.to_owned(),
        choices: choices
            .iter()
            // Only a person with the file may run sessions without permission checks.
            .filter(|word| **word != "bypassPermissions")
            .map(|word| (*word).to_owned())
            .collect(),
        description: leaf.about.to_owned(),
        unit: unit.map(str::to_owned),
        default: Value::preset(leaf.preset).map_or(Json::Null, |value| value.to_json()),
        nullable: leaf.nullable,
        min,
        max,
        min_exclusive,
        map_keys,
        deprecated: leaf.key == "usage.show_cost",
        dep_status: None,
        source: match source {
            Source::Default => "default",
            Source::File { .. } => "file",
            Source::Env { .. } => "env",
        }
        .to_owned(),
        env_name,
        applies: match leaf.apply {
            Apply::Restart => "restart",
            Apply::NextSpawn => "next_session",
            Apply::Live | Apply::NextMcpStart => "live",
        }
        .to_owned(),
        pending: false,
    }
}

fn bounds(kind: Kind) -> (Option<f64>, Option<f64>, bool) {
    #[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
    let whole = |value: i64| value as f64;
    match kind {
        Kind::Int { min, max } => {
            let max = (max != i64::from(u32::MAX)).then(|| whole(max));
            (Some(whole(min)), max, false)
        }
        Kind::Float(range) | Kind::Seconds { range, .. } => {
            let max = (range.max < 1.0e9).then_some(range.max);
            (Some(range.min), max, range.is_open)
        }
        _ => (None, None, false),
    }
}

/// The name of a key for people, and the unit that ends it.
fn name_and_unit(leaf: &Leaf) -> (String, Option<&'static str>) {
    const UNITS: [(&str, &str); 3] = [("_seconds", "seconds"), ("_mb", "MiB"), ("_days", "days")];
    let name = leaf.name();
    let unit = UNITS.iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
    let (name, unit) = unit.map_or((name, None), |(name, unit)| (name, Some(unit)));
    if let Some((_, label)) = NAMES.iter().find(|(key, _)| *key == leaf.key) {
        return ((*label).to_owned(), unit);
    }
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    let label = match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    };
    (label, unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Edit;
    use crate::table::leaves;

    /// The first list as `configuration` §4 has it (column Ed, letter B).
    #[test]
    fn every_key_is_in_exactly_one_list_or_has_a_reason_to_be_in_none() {
        for leaf in leaves() {
            let is_listed = matches!(leaf.edit, Edit::Basic | Edit::Advanced);
            assert_ne!(is_listed, file_reason(leaf).is_some(), "{}", leaf.key);
            assert!(!(is_listed && leaf.secret), "{} is a secret in a list", leaf.key);
            assert!(!(is_listed && leaf.is_per_project()), "{}", leaf.key);
        }
        for (key, _) in FILE_REASONS {
            let is_used = leaves().any(|leaf| {
                leaf.edit == Edit::File
                    && leaf
                        .key
                        .strip_prefix(key)
                        .is_some_and(|r| r.is_empty() || r.starts_with('.'))
            });
            assert!(is_used, "the reason for {key} is for no key");
        }
        // What decides who gets in, or which programs run, is never in a list.
        for section in ["auth.", "tls.", "config_write.", "login_shepherd.", "ui.", "mcp."] {
            let open =
                leaves().find(|leaf| leaf.key.starts_with(section) && leaf.edit != Edit::File);
            assert!(open.is_none(), "{open:?}");
        }
        let advanced: Vec<&str> =
            leaves().filter(|leaf| leaf.edit == Edit::Advanced).map(|leaf| leaf.key).collect();
        assert!(
            advanced
                .iter()
                .all(|key| ["clone.", "push.", "webhooks."].iter().any(|of| key.starts_with(of))),
            "{advanced:?}"
        );
    }

    #[test]
    fn every_name_is_that_of_a_key() {
        for (key, _) in NAMES {
            assert!(crate::table::leaf(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_key_of_a_list_has_a_section_of_its_own_and_a_name() {
        for leaf in leaves().filter(|leaf| leaf.edit != Edit::File) {
            let (section, label) = section_of(leaf);
            let first = leaf.key.split_once('.').map_or("general", |(first, _)| first);
            assert_eq!(section, first, "{}", leaf.key);
            assert!(!label.is_empty());
            let spec = describe(leaf, &Source::Default);
            assert!(
                !spec.label.is_empty() && !spec.choices.iter().any(|w| w == "bypassPermissions")
            );
        }
        let leaf = crate::table::leaf("claude.startup_grace_seconds").unwrap();
        let spec = describe(leaf, &Source::Default);
        assert_eq!(
            (spec.label.as_str(), spec.unit.as_deref()),
            ("Time to register", Some("seconds"))
        );
        assert_eq!((spec.min, spec.max, spec.min_exclusive), (Some(0.0), None, true));
    }
}
