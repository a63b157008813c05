//! The table of all configuration keys.
//!
//! The table is made from the definitions of [`crate::Config`]. Loading, environment names,
//! `config show`, warnings, suggestions, the JSON Schema and the manual read it.

use crate::config::ConfigValues;
use crate::keys::Section as _;
use crate::schema::Leaf;
use std::sync::LazyLock;

/// Every key, in the order of the documentation.
pub fn leaves() -> impl Iterator<Item = &'static Leaf> {
    static KEYS: LazyLock<Vec<&'static Leaf>> = LazyLock::new(|| {
        let mut keys = Vec::new();
        ConfigValues::list(&mut keys);
        keys
    });
    KEYS.iter().copied()
}

/// The key with exactly this dotted path.
///
/// Keys of projects are found by their pattern with `<name>`.
#[must_use]
pub fn leaf(key: &str) -> Option<&'static Leaf> {
    leaves().find(|leaf| leaf.key == key)
}

/// The keys that every project can have.
pub fn project_leaves() -> impl Iterator<Item = &'static Leaf> {
    leaves().filter(|leaf| leaf.is_per_project())
}

/// Whether some key lies below `path`.
#[must_use]
pub fn is_section(path: &str) -> bool {
    leaves().any(|leaf| leaf.key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Names directly below `section` (empty for the root), keys and sections alike.
#[must_use]
pub fn children(section: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for leaf in leaves() {
        let rest = if section.is_empty() {
            Some(leaf.key)
        } else {
            leaf.key.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'))
        };
        if let Some(name) = rest.and_then(|rest| rest.split('.').next())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Edit, Kind, Preset};
    use std::collections::BTreeSet;

    #[test]
    fn no_two_keys_share_a_variable() {
        let mut seen = BTreeSet::new();
        for leaf in leaves() {
            if let Some(variable) = leaf.variable() {
                assert!(seen.insert(variable), "{} repeats a variable", leaf.key);
            }
        }
    }

    #[test]
    fn no_key_is_also_a_section_and_none_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for leaf in leaves() {
            assert!(!is_section(leaf.key), "{} is a key and a section", leaf.key);
            assert!(seen.insert(leaf.key), "{} is listed twice", leaf.key);
            assert!(leaf.about.ends_with('.'), "{} needs a sentence", leaf.key);
        }
    }

    #[test]
    fn the_documented_number_of_keys_is_there() {
        let editable = |edit| leaves().filter(|leaf| leaf.edit == edit).count();
        // 101 keys of the baseline (its count of 102 holds the removed `database_url`), one per
        // project, and the additions: config_strict, claude.stop_grace_seconds, claude.scope,
        // claude.after_reboot, claude.heal, claude.terminal_input, projects.<name>.restart, 8 of restart,
        // auth.allowed_hosts, webhooks.secret, 4 of ceilings, notifications.quiet_hours,
        // instance_defaults.on_limit, claude.approval_hook, 3 of push, webhooks.outbox.
        assert_eq!(leaves().count(), 101 + 1 + 17 + 4 + 3 + 4);
        // 49 and 10 of the baseline; stop grace, after_reboot, heal, the restart section, the
        // ceilings, quiet hours, on_limit and the approval hook are basic additions.
        assert_eq!(editable(Edit::Basic), 49 + 11 + 4 + 3);
        assert_eq!(editable(Edit::Advanced), 10 + 4);
    }

    #[test]
    fn presets_match_their_kinds() {
        for leaf in leaves() {
            let fits = match (leaf.kind, leaf.preset) {
                (_, Preset::Null) => leaf.nullable,
                (Kind::Path, Preset::Required | Preset::Derived) => true,
                (Kind::Bool, Preset::Bool(_)) => true,
                (Kind::Int { min, max }, Preset::Int(value)) => (min..=max).contains(&value),
                (Kind::Float(range), Preset::Float(value)) => range.contains(value),
                (Kind::Seconds { whole: true, range }, Preset::Int(value)) => {
                    range.contains(value as f64)
                }
                (Kind::Seconds { whole: false, range }, Preset::Float(value)) => {
                    range.contains(value)
                }
                (Kind::Choice { words, .. }, Preset::Text(value)) => words.contains(&value),
                (Kind::Text(_) | Kind::Program, Preset::Text(_)) => true,
                (Kind::List(_), Preset::List(_)) => true,
                (Kind::TextMap, Preset::EmptyMap) => true,
                (Kind::Switches(names), Preset::Switches(states)) => states == names,
                _ => false,
            };
            assert!(fits, "{}: {:?} does not fit {:?}", leaf.key, leaf.preset, leaf.kind);
        }
    }
}
