//! The parts of a settings file that have an editor of their own.

use super::secrets::{MASK, masked, unmasked};
use super::{BadConfig, bad};
use crate::log_escape::quoted;
use serde_json::{Map, Value};

/// Keys of a settings file that another part owns.
pub const OWNED: [&str; 6] = [
    "permissions",
    "hooks",
    "enabledPlugins",
    "disabledPlugins",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
];

/// Events that a hook can be written for.
pub const EVENTS: [&str; 9] = [
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Notification",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "SessionStart",
    "SessionEnd",
];

/// Permission modes that may be a default. Bypassing permissions may not.
const MODES: [&str; 5] = ["default", "plan", "acceptEdits", "auto", "dontAsk"];
/// Lists of permission rules.
const RULES: [&str; 3] = ["allow", "deny", "ask"];
/// How visible a skill may be.
const VISIBILITY: [&str; 4] = ["on", "name-only", "user-invocable-only", "off"];
/// Marks a command that belongs to a plugin.
const PLUGIN_ROOT: &str = "CLAUDE_PLUGIN_ROOT";

/// One part of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Every key without an owner.
    Settings,
    /// Rules and the default mode.
    Permissions,
    /// Commands that the agent runs at its events.
    Hooks,
    /// How visible skills are.
    SkillOverrides,
}

impl Part {
    /// The member of requests and answers that holds it.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Permissions => "permissions",
            Self::Hooks => "hooks",
            Self::SkillOverrides => "overrides",
        }
    }

    /// The key of the file that holds it; none for every key without an owner.
    #[must_use]
    pub fn key(self) -> Option<&'static str> {
        match self {
            Self::Settings => None,
            Self::Permissions => Some("permissions"),
            Self::Hooks => Some("hooks"),
            Self::SkillOverrides => Some("skillOverrides"),
        }
    }

    /// What is shown of it. `document` is the whole file.
    #[must_use]
    pub fn shown(self, document: &Value) -> Value {
        let own = match self.key() {
            None => Some(Value::Object(without_owned(document))),
            Some(key) => document.get(key).filter(|value| value.is_object()).cloned(),
        };
        let own = own.unwrap_or_else(|| Value::Object(Map::new()));
        match (self, own) {
            // What this editor does not know stays in the file and is not shown.
            (Self::Permissions, Value::Object(members)) => {
                let known = |key: &str| RULES.contains(&key) || key == "defaultMode";
                masked(&members.into_iter().filter(|(key, _)| known(key)).collect())
            }
            (Self::Settings | Self::Hooks | Self::SkillOverrides | Self::Permissions, own) => {
                masked(&own)
            }
        }
    }

    /// The whole document when this was sent for the part.
    ///
    /// # Errors
    /// A member does not fit.
    pub fn wanted(self, sent: &Value, document: &Value) -> Result<Value, BadConfig> {
        let Value::Object(sent) = sent else {
            return Err(bad(format!("`{}` must be an object", self.member())));
        };
        let mut next = document.as_object().cloned().unwrap_or_default();
        match self {
            Self::Settings => return settings(sent, &next, document),
            Self::Permissions => permissions(sent, &mut next)?,
            Self::Hooks => hooks(sent, &mut next)?,
            Self::SkillOverrides => overrides(sent, &mut next)?,
        }
        Ok(Value::Object(next))
    }
}

impl Part {
    /// The whole document with this part as it was in another state of the file.
    ///
    /// # Errors
    /// What was there may not be written any more.
    pub fn restored(self, was: &Value, now: &Value) -> Result<Value, BadConfig> {
        let mut next = now.as_object().cloned().unwrap_or_default();
        match self.key() {
            None => {
                next.retain(|key, _| OWNED.contains(&key.as_str()));
                next.extend(without_owned(was));
            }
            Some(key) => match was.get(key) {
                Some(value) => drop(next.insert(key.to_owned(), value.clone())),
                None => next.retain(|name, _| name != key),
            },
        }
        let mode = |document: &Value| document.get("permissions")?.get("defaultMode").cloned();
        let next = Value::Object(next);
        let is_known = |mode: &Value| mode.as_str().is_some_and(|mode| MODES.contains(&mode));
        if mode(&next) != mode(now) && !mode(&next).is_none_or(|mode| is_known(&mode)) {
            return Err(bad(format!(
                "`defaultMode` of this copy may only be set on the machine; one of {} may be set \
                 here",
                MODES.join(", ")
            )));
        }
        Ok(next)
    }
}

fn without_owned(document: &Value) -> Map<String, Value> {
    let members = document.as_object().cloned().unwrap_or_default();
    members.into_iter().filter(|(key, _)| !OWNED.contains(&key.as_str())).collect()
}

fn settings(
    sent: &Map<String, Value>,
    before: &Map<String, Value>,
    document: &Value,
) -> Result<Value, BadConfig> {
    if let Some(key) = sent.keys().find(|key| OWNED.contains(&key.as_str())) {
        return Err(bad(format!("`{key}` has an editor of its own; leave it out here")));
    }
    let sent =
        unmasked(&Value::Object(sent.clone()), Some(&Value::Object(without_owned(document))))?;
    if let Some(env) = sent.get("env") {
        let is_flat = env.as_object().is_some_and(|env| env.values().all(Value::is_string));
        if !is_flat && document.get("env") != Some(env) {
            return Err(bad("`env` must be an object of texts"));
        }
    }
    let kept = before.iter().filter(|(key, _)| OWNED.contains(&key.as_str()));
    let mut next: Map<String, Value> =
        kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    next.extend(sent.as_object().cloned().unwrap_or_default());
    Ok(Value::Object(next))
}

fn permissions(
    sent: &Map<String, Value>,
    document: &mut Map<String, Value>,
) -> Result<(), BadConfig> {
    let stored = document.get("permissions").cloned();
    let sent = unmasked(&Value::Object(sent.clone()), stored.as_ref())?;
    let before = |key: &str| stored.as_ref().and_then(|stored| stored.get(key));
    for (key, value) in sent.as_object().into_iter().flatten() {
        if before(key) == Some(value) {
            continue;
        }
        if RULES.contains(&key.as_str()) {
            let is_rule = |rule: &Value| {
                rule.as_str().is_some_and(|rule| !rule.trim().is_empty() && !rule.contains('\0'))
            };
            if !value.as_array().is_some_and(|rules| rules.iter().all(is_rule)) {
                return Err(bad(format!("`{key}` must be a list of rules, each a text")));
            }
        } else if key == "defaultMode" {
            if !value.as_str().is_some_and(|mode| MODES.contains(&mode)) {
                return Err(bad(format!("`defaultMode` must be one of {}", MODES.join(", "))));
            }
        } else {
            return Err(bad(format!(
                "{} is no part of the permissions; use allow, deny, ask and defaultMode",
                quoted(key)
            )));
        }
    }
    let mut next = stored.and_then(|stored| stored.as_object().cloned()).unwrap_or_default();
    next.retain(|key, _| !(RULES.contains(&key.as_str()) || key == "defaultMode"));
    next.extend(sent.as_object().cloned().unwrap_or_default());
    put(document, "permissions", next);
    Ok(())
}

fn hooks(sent: &Map<String, Value>, document: &mut Map<String, Value>) -> Result<(), BadConfig> {
    let stored = document.get("hooks").cloned();
    let sent = unmasked(&Value::Object(sent.clone()), stored.as_ref())?;
    let sent = sent.as_object().cloned().unwrap_or_default();
    for (event, groups) in &sent {
        let before = stored.as_ref().and_then(|stored| stored.get(event));
        // What is there already stays, even if only a newer agent knows it.
        if before == Some(groups) {
            continue;
        }
        if !EVENTS.contains(&event.as_str()) {
            return Err(bad(format!(
                "{} is no event that a hook can be written for; use one of {}",
                quoted(event),
                EVENTS.join(", ")
            )));
        }
        let old: &[Value] = before.and_then(Value::as_array).map_or(&[], Vec::as_slice);
        let Some(groups) = groups.as_array() else {
            return Err(bad(format!("`{event}` must be a list of groups")));
        };
        for (index, group) in groups.iter().enumerate().filter(|(_, group)| !old.contains(group)) {
            hook_group(group).map_err(|text| bad(format!("`{event}[{index}]` {text}")))?;
        }
    }
    put(document, "hooks", sent);
    Ok(())
}

fn hook_group(group: &Value) -> Result<(), String> {
    let Some(members) = group.as_object() else {
        return Err("must be an object".to_owned());
    };
    if let Some(key) = members.keys().find(|key| !["matcher", "hooks"].contains(&key.as_str())) {
        return Err(format!("has an unknown member {}", quoted(key)));
    }
    if members.get("matcher").is_some_and(|matcher| !matcher.is_string()) {
        return Err("needs a text as its `matcher`".to_owned());
    }
    let Some(hooks) = members.get("hooks").and_then(Value::as_array) else {
        return Err("needs a list as its `hooks`".to_owned());
    };
    for hook in hooks {
        let Some(hook) = hook.as_object() else {
            return Err("has a hook that is no object".to_owned());
        };
        let known = ["type", "command", "timeout"];
        if let Some(key) = hook.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("has a hook with an unknown member {}", quoted(key)));
        }
        if hook.get("type").and_then(Value::as_str) != Some("command") {
            return Err("has a hook whose `type` is not `command`".to_owned());
        }
        let command = hook.get("command").and_then(Value::as_str).unwrap_or_default();
        if command.trim().is_empty() || command.contains('\0') {
            return Err("has a hook without a `command`".to_owned());
        }
        if command.contains(PLUGIN_ROOT) {
            return Err(format!(
                "has a command that names {PLUGIN_ROOT}: it belongs to a plugin and is changed \
                 there"
            ));
        }
        let is_time = |time: &Value| time.as_f64().is_some_and(|time| time > 0.0);
        if hook.get("timeout").is_some_and(|time| !is_time(time)) {
            return Err("has a hook whose `timeout` is no number of seconds above 0".to_owned());
        }
    }
    Ok(())
}

fn overrides(
    sent: &Map<String, Value>,
    document: &mut Map<String, Value>,
) -> Result<(), BadConfig> {
    let stored = document.get("skillOverrides").cloned();
    for (skill, value) in sent {
        if stored.as_ref().and_then(|stored| stored.get(skill)) == Some(value) {
            continue;
        }
        if skill.is_empty() || skill.chars().any(char::is_control) || skill.len() > 200 {
            return Err(bad("the name of a skill must be a short text"));
        }
        if !value.as_str().is_some_and(|value| VISIBILITY.contains(&value)) {
            return Err(bad(format!("{} must be one of {}", quoted(skill), VISIBILITY.join(", "))));
        }
    }
    put(document, "skillOverrides", sent.clone());
    Ok(())
}

/// Keeps an empty part only where one was.
fn put(document: &mut Map<String, Value>, key: &str, next: Map<String, Value>) {
    if !next.is_empty() || document.contains_key(key) {
        document.insert(key.to_owned(), Value::Object(next));
    }
}

/// Each key with its value and where it comes from, highest precedence first.
///
/// Whole values: the agent does not merge what is in them.
#[must_use]
pub fn effective(layers: &[(&'static str, Value)]) -> Map<String, Value> {
    let mut found = Map::new();
    for (source, document) in layers {
        for (key, value) in document.as_object().into_iter().flatten() {
            if !found.contains_key(key) {
                let shown =
                    masked(&Value::Object([(key.clone(), value.clone())].into_iter().collect()));
                let value = shown.get(key).cloned().unwrap_or_else(|| Value::from(MASK));
                let entry = [("value".to_owned(), value), ("source".to_owned(), (*source).into())];
                found.insert(key.clone(), Value::Object(entry.into_iter().collect()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "model": "opus", "env": {"KEY": "k"}, "newKey": {"a": 1},
            "permissions": {"allow": ["Read"], "additionalDirectories": ["/x"]},
            "hooks": {
                "Stop": [{"hooks": [{"type": "command", "command": "true"}]}],
                "NewEvent": [{"odd": 1}],
            },
            "enabledPlugins": {"a@b": true},
        })
    }

    #[test]
    fn every_part_comes_back_unchanged_and_keeps_the_others() {
        let document = document();
        for part in [Part::Settings, Part::Permissions, Part::Hooks, Part::SkillOverrides] {
            let shown = part.shown(&document);
            assert_eq!(part.wanted(&shown, &document).unwrap(), document, "{part:?}");
        }
        assert_eq!(
            Part::Settings.shown(&document),
            json!({"model": "opus", "env": {"KEY": MASK}, "newKey": {"a": 1}})
        );
        assert_eq!(Part::Permissions.shown(&document), json!({"allow": ["Read"]}));
        assert_eq!(Part::Hooks.shown(&json!([])), json!({}));
    }

    #[test]
    fn a_part_is_replaced_and_what_it_does_not_know_stays() {
        let document = document();
        let next = Part::Settings.wanted(&json!({"env": {"KEY": MASK, "B": "2"}}), &document);
        let next = next.unwrap();
        assert_eq!(next["env"], json!({"KEY": "k", "B": "2"}));
        assert!(next.get("model").is_none() && next.get("newKey").is_none());
        assert_eq!(next["hooks"], document["hooks"]);
        let next = Part::Permissions.wanted(&json!({"deny": ["Bash"]}), &document).unwrap();
        assert_eq!(next["permissions"], json!({"deny": ["Bash"], "additionalDirectories": ["/x"]}));
        let mut hooks = document["hooks"].clone();
        hooks["PreToolUse"] = json!([{
            "matcher": "Bash", "hooks": [{"type": "command", "command": "x", "timeout": 5}]
        }]);
        let next = Part::Hooks.wanted(&hooks, &document).unwrap();
        assert_eq!(next["hooks"]["NewEvent"], json!([{"odd": 1}]));
        let next = Part::SkillOverrides.wanted(&json!({"x": "off"}), &document).unwrap();
        assert_eq!(next["skillOverrides"], json!({"x": "off"}));
    }

    #[test]
    fn a_part_is_put_back_and_the_others_stay() {
        let was = document();
        let now = json!({"model": "haiku", "b": 1, "permissions": {"deny": ["X"]}, "hooks": {}});
        let next = Part::Settings.restored(&was, &now).unwrap();
        assert_eq!(
            (&next["model"], &next["env"], &next["hooks"]),
            (&json!("opus"), &was["env"], &json!({}))
        );
        assert!(next.get("b").is_none() && next.get("enabledPlugins").is_none());
        let next = Part::Hooks.restored(&was, &now).unwrap();
        assert_eq!((&next["hooks"], &next["model"]), (&was["hooks"], &json!("haiku")));
        let next = Part::SkillOverrides.restored(&was, &json!({"skillOverrides": {"x": "off"}}));
        assert_eq!(next.unwrap(), json!({}));
        let bypass = json!({"permissions": {"defaultMode": "bypassPermissions"}});
        assert!(Part::Permissions.restored(&bypass, &now).is_err());
        assert!(Part::Permissions.restored(&bypass, &bypass).is_ok());
        assert!(Part::Settings.restored(&bypass, &now).is_ok());
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let command = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
        for (part, sent, why) in [
            (Part::Settings, json!({"hooks": {}}), "`hooks` has an editor"),
            (Part::Settings, json!({"env": {"A": 1}}), "`env`"),
            (Part::Settings, json!({"env": {"NEW": MASK}}), "env.NEW"),
            (Part::Settings, json!([]), "`settings`"),
            (Part::Permissions, json!({"other": 1}), "other"),
            (Part::Permissions, json!({"allow": "Read"}), "`allow`"),
            (Part::Permissions, json!({"defaultMode": "bypassPermissions"}), "defaultMode"),
            (Part::Permissions, json!({"defaultMode": "inherit"}), "defaultMode"),
            (Part::Hooks, json!({"NewEvent": [{"odd": 2}]}), "NewEvent"),
            (Part::Hooks, json!({"Stop": [{"odd": 2}]}), "Stop[0]"),
            (Part::Hooks, json!({"Stop": [{"hooks": [{"type": "http"}]}]}), "type"),
            (Part::Hooks, json!({"Stop": command("${CLAUDE_PLUGIN_ROOT}/x")}), "plugin"),
            (Part::Hooks, json!({"Stop": command(" ")}), "command"),
            (Part::SkillOverrides, json!({"x": "maybe"}), "name-only"),
        ] {
            let refused = part.wanted(&sent, &document()).unwrap_err().0;
            assert!(refused.contains(why), "{sent}: {refused}");
        }
    }

    #[test]
    fn the_highest_layer_decides_about_whole_values() {
        let found = effective(&[
            ("local", json!({"env": {"A": "1"}})),
            ("user", json!({"env": {"B": "2"}, "model": "opus", "apiToken": "x"})),
        ]);
        assert_eq!(
            Value::Object(found),
            json!({
                "env": {"value": {"A": MASK}, "source": "local"},
                "model": {"value": "opus", "source": "user"},
                "apiToken": {"value": MASK, "source": "user"},
            })
        );
    }
}
