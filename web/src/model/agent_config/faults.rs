//! What must be repaired before a save, by the place that it belongs to.

use super::place::{item, member, text};
use super::{Subject, Surface};
use crate::text::agent_config::fault as words;
use serde_json::Value;
use std::collections::BTreeMap;

/// Largest text that is saved, bytes.
pub const MOST_BYTES: usize = 64 * 1024;
/// Lists of permission rules.
pub const RULES: [&str; 3] = ["allow", "deny", "ask"];
/// Marks a command that belongs to a plugin.
const PLUGIN_ROOT: &str = "CLAUDE_PLUGIN_ROOT";

/// Sentences by JSON pointer.
pub type Faults = BTreeMap<String, String>;

/// What is wrong with a value before it is sent.
#[must_use]
pub fn faults(surface: Surface, value: &Value) -> Faults {
    let mut found = Faults::new();
    match surface {
        Surface::Permissions => permissions(value, &mut found),
        Surface::Hooks => hooks(value, &mut found),
        Surface::Servers => servers(value, &mut found),
        Surface::Instructions | Surface::Subagents => {
            if value.as_str().is_some_and(|text| text.len() > MOST_BYTES) {
                found.insert(String::new(), words::TOO_LARGE.to_owned());
            }
        }
        Surface::Settings
        | Surface::Approvals
        | Surface::Skills
        | Surface::Plugins
        | Surface::Marketplaces => {}
    }
    found
}

fn permissions(value: &Value, found: &mut Faults) {
    for list in RULES {
        let at = member("", list);
        let rules = value.get(list).and_then(Value::as_array).into_iter().flatten();
        for (index, rule) in rules.enumerate() {
            if rule.as_str().is_none_or(|rule| rule.trim().is_empty()) {
                found.insert(item(&at, index), words::EMPTY_RULE.to_owned());
            }
        }
    }
}

fn hooks(value: &Value, found: &mut Faults) {
    for (event, groups) in value.as_object().into_iter().flatten() {
        let groups = groups.as_array().into_iter().flatten().enumerate();
        for (group, hooks) in groups {
            let at = format!("{}/hooks", item(&member("", event), group));
            let hooks = hooks.get("hooks").and_then(Value::as_array).into_iter().flatten();
            for (index, hook) in hooks.enumerate() {
                let at = item(&at, index);
                if hook.get("type").and_then(Value::as_str) != Some("command") {
                    continue; // a kind that only raw JSON changes
                }
                let command = text(hook, "/command");
                if command.trim().is_empty() {
                    found.insert(member(&at, "command"), words::NO_COMMAND.to_owned());
                } else if command.contains(PLUGIN_ROOT) {
                    found.insert(member(&at, "command"), words::OF_PLUGIN.to_owned());
                }
                let is_time = |time: &Value| time.as_f64().is_some_and(|time| time > 0.0);
                if hook.get("timeout").is_some_and(|time| !is_time(time)) {
                    found.insert(member(&at, "timeout"), words::NO_TIME.to_owned());
                }
            }
        }
    }
}

fn servers(value: &Value, found: &mut Faults) {
    for (name, entry) in value.as_object().into_iter().flatten() {
        let at = member("", name);
        let has = |key: &str| entry.get(key).is_some();
        if has("command") && text(entry, "/command").is_empty() {
            found.insert(member(&at, "command"), words::NO_PROGRAM.to_owned());
        }
        if has("url") {
            let url = text(entry, "/url");
            let is_web = url.starts_with("https://") || url.starts_with("http://");
            if !is_web || url.contains(char::is_whitespace) {
                found.insert(member(&at, "url"), words::NO_URL.to_owned());
            }
        }
    }
}

/// Whether something can be the name of a server.
#[must_use]
pub fn is_server(name: &str) -> bool {
    let first = name.chars().next();
    first.is_some_and(|first| first.is_ascii_alphanumeric() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// Whether something can be the name of a subagent.
#[must_use]
pub fn is_subagent(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.chars().next().is_some_and(|first| first.is_ascii_lowercase())
        && name.split('-').all(is_word)
}

/// The place that a refusal of the service names; none where it names none.
#[must_use]
pub fn place_of(subject: &Subject, value: &Value, said: &str) -> Option<String> {
    let members = value.as_object()?;
    let named = |key: &&String| {
        let key = key.as_str();
        [format!("`{key}`"), format!("`{key}["), format!("\"{key}\""), format!("{key}.")]
            .iter()
            .any(|form| said.contains(form.as_str()))
            || said.starts_with(&format!("{key} "))
    };
    let key = members.keys().find(named)?;
    let at = member("", key);
    if subject.surface == Surface::Hooks {
        let (_, rest) = said.split_once(&format!("`{key}["))?;
        let (index, _) = rest.split_once(']')?;
        return Some(item(&at, index.parse().ok()?));
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::agent_config::Scope;
    use serde_json::json;

    #[test]
    fn a_fault_stands_at_its_field() {
        let found = |surface, value: Value| faults(surface, &value).into_keys().collect::<Vec<_>>();
        let hook = json!([{"hooks": [
            {"type": "command", "command": " "},
            {"type": "command", "command": "a", "timeout": "x"},
            {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/a"},
            {"type": "prompt"},
        ]}]);
        assert_eq!(
            found(Surface::Hooks, json!({ "Stop": hook })),
            ["/Stop/0/hooks/0/command", "/Stop/0/hooks/1/timeout", "/Stop/0/hooks/2/command"]
        );
        assert_eq!(found(Surface::Permissions, json!({"allow": ["Read", ""]})), ["/allow/1"]);
        assert_eq!(
            found(
                Surface::Servers,
                json!({"a": {"command": ""}, "b": {"url": "x", "type": "sse"}})
            ),
            ["/a/command", "/b/url"]
        );
        assert_eq!(found(Surface::Instructions, json!("m".repeat(MOST_BYTES + 1))), [""]);
    }

    #[test]
    fn names_follow_the_rules_of_the_service() {
        for (name, server, subagent) in [
            ("a", true, true),
            ("a-b1", true, true),
            ("_a.b", true, false),
            ("-a", false, false),
            ("a--b", true, false),
            ("A", true, false),
            ("1a", true, false),
            ("", false, false),
            ("a b", false, false),
        ] {
            assert_eq!((is_server(name), is_subagent(name)), (server, subagent), "{name}");
        }
    }

    #[test]
    fn a_refusal_finds_its_place() {
        let subject = |surface| Subject {
            surface,
            scope: Scope::Project,
            project: "a".into(),
            name: String::new(),
            file: String::new(),
        };
        let check = |surface, value: Value, said: &str| place_of(&subject(surface), &value, said);
        assert_eq!(
            check(Surface::Hooks, json!({"Stop": []}), "`Stop[1]` has a hook without a `command`"),
            Some("/Stop/1".into())
        );
        let server = json!({"mine": {}});
        assert_eq!(
            check(Surface::Servers, server, "the server \"mine\" needs a `command` or a `url`"),
            Some("/mine".into())
        );
        assert_eq!(
            check(Surface::Settings, json!({"env": {}}), "`env` must be an object of texts"),
            Some("/env".into())
        );
        assert_eq!(check(Surface::Settings, json!({"model": 1}), "the file is gone"), None);
    }
}
