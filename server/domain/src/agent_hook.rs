//! One hook of ours in the agent's settings, beside those of the user.

use serde_json::{Value, json};

/// A hook as it is found again and written.
#[derive(Debug, Clone, Copy)]
pub struct Hook {
    /// The agent's word for when it runs.
    pub event: &'static str,
    /// Where that stands in the settings, for messages.
    pub place: &'static str,
    /// The hidden command, by which the entry is found again.
    pub command: &'static str,
    /// Seconds that the agent waits for it.
    pub patience: u64,
}

/// Why settings were left as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its `{0}` has another form than the agent's")]
pub struct OddSettings(&'static str);

impl Hook {
    /// The settings with the hook in them; `None` if it is there already.
    ///
    /// An entry of an earlier program is brought up to date where it stands.
    ///
    /// # Errors
    /// The settings have another form.
    pub fn with(&self, settings: &Value, command: &str) -> Result<Option<Value>, OddSettings> {
        let mut wanted = settings.clone();
        let hooks = member(&mut wanted, "hooks", json!({})).ok_or(OddSettings("hooks"))?;
        let groups = member(hooks, self.event, json!([])).and_then(Value::as_array_mut);
        let groups = groups.ok_or(OddSettings(self.place))?;
        let own = groups
            .iter_mut()
            .filter_map(|group| group.get_mut("hooks")?.as_array_mut())
            .flatten()
            .filter_map(|hook| hook.get_mut("command"))
            .find(|command| command.as_str().is_some_and(|text| text.contains(self.command)));
        match own {
            Some(known) if known == command => return Ok(None),
            Some(known) => *known = command.into(),
            None => groups.push(json!({ "hooks": [
                { "type": "command", "command": command, "timeout": self.patience },
            ] })),
        }
        Ok(Some(wanted))
    }

    /// The settings without the hook; `None` if it is not there.
    ///
    /// What held nothing else goes with it.
    #[must_use]
    pub fn without(&self, settings: &Value) -> Option<Value> {
        let mut wanted = settings.clone();
        let hooks = wanted.get_mut("hooks")?.as_object_mut()?;
        let groups = hooks.get_mut(self.event)?.as_array_mut()?;
        let is_own = |hook: &Value| {
            let command = hook.get("command").and_then(Value::as_str);
            command.is_some_and(|text| text.contains(self.command))
        };
        let mut is_found = false;
        groups.retain_mut(|group| {
            let Some(list) = group.get_mut("hooks").and_then(Value::as_array_mut) else {
                return true;
            };
            let before = list.len();
            list.retain(|hook| !is_own(hook));
            let is_changed = list.len() < before;
            is_found |= is_changed;
            !(is_changed && list.is_empty())
        });
        if !is_found {
            return None;
        }
        if groups.is_empty() {
            hooks.remove(self.event);
        }
        if hooks.is_empty() {
            wanted.as_object_mut()?.remove("hooks");
        }
        Some(wanted)
    }
}

/// A member of an object, made where it is missing.
///
/// `None` where there is no object.
fn member<'v>(value: &'v mut Value, name: &str, usual: Value) -> Option<&'v mut Value> {
    Some(value.as_object_mut()?.entry(name).or_insert(usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: Hook =
        Hook { event: "Stop", place: "hooks.Stop", command: "__mine__", patience: 5 };

    #[test]
    fn an_entry_comes_and_goes_beside_others() {
        let bare = json!({ "model": "opus" });
        let with = HOOK.with(&bare, "svc __mine__").unwrap().unwrap();
        assert_eq!(
            with,
            json!({ "model": "opus", "hooks": { "Stop": [
                { "hooks": [{ "type": "command", "command": "svc __mine__", "timeout": 5 }] },
            ] } })
        );
        assert_eq!(HOOK.with(&with, "svc __mine__"), Ok(None));
        assert_eq!(HOOK.without(&with), Some(bare.clone()));
        assert_eq!(HOOK.without(&bare), None);
        let theirs = json!({ "hooks": { "Stop": [{ "hooks": [{ "command": "beep" }] }] } });
        let both = HOOK.with(&theirs, "svc __mine__").unwrap().unwrap();
        assert_eq!(HOOK.without(&both), Some(theirs));
    }

    #[test]
    fn an_entry_in_a_group_of_the_user_leaves_the_rest_of_it() {
        let mixed = json!({ "hooks": { "Stop": [
            { "matcher": "x", "hooks": [{ "command": "beep" }, { "command": "/a __mine__" }] },
        ] } });
        let left = json!({ "hooks": { "Stop": [
            { "matcher": "x", "hooks": [{ "command": "beep" }] },
        ] } });
        assert_eq!(HOOK.without(&mixed), Some(left));
    }

    #[test]
    fn settings_of_another_form_are_left() {
        for odd in [json!([]), json!({ "hooks": [] }), json!({ "hooks": { "Stop": {} } })] {
            assert!(HOOK.with(&odd, "svc __mine__").is_err(), "{odd}");
            assert_eq!(HOOK.without(&odd), None, "{odd}");
        }
    }
}
