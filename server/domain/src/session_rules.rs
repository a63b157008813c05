//! What an agent offers to allow for the rest of its session.
//!
//! With a question the agent tells which changes of its permissions would make the like of it
//! unnecessary (`permission_suggestions` of the hook and of `can_use_tool`; agents 2.0.45 and
//! later). Only rules that allow and directories are taken, and only for the session: a mode allows
//! more than what was asked, and a rule in a settings file outlives the session.

use crate::hosted::prompt::cut;
use crate::redact::redact_text;
use serde_json::{Value, json};

/// Most rules and directories that are offered together.
const MOST: usize = 20;
/// Most characters of one of them as a person reads it.
const LONGEST: usize = 200;

/// The changes that an agent offers, each for its session only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionRules {
    updates: Vec<Value>,
    words: Vec<String>,
}

impl SessionRules {
    /// What is offered.
    ///
    /// Nothing where it is not understood, or is more than a person would read.
    #[must_use]
    pub fn offered(suggestions: &Value) -> Self {
        let mut rules = Self::default();
        for one in suggestions.as_array().into_iter().flatten() {
            let text = |name: &str| one.get(name).and_then(Value::as_str);
            match text("type") {
                Some("addRules") if text("behavior") == Some("allow") => rules.add_rules(one),
                Some("addDirectories") => rules.add_directories(one),
                _ => {}
            }
        }
        if rules.words.len() > MOST { Self::default() } else { rules }
    }

    fn add_rules(&mut self, one: &Value) {
        let listed = one.get("rules").and_then(Value::as_array);
        let mut taken = Vec::new();
        for rule in listed.into_iter().flatten() {
            let text =
                |name: &str| rule.get(name).and_then(Value::as_str).filter(|t| !t.is_empty());
            let Some(tool) = text("toolName") else { continue };
            self.words.push(shown(&match text("ruleContent") {
                Some(content) => format!("{tool}({content})"),
                None => tool.to_owned(),
            }));
            taken.push(rule.clone());
        }
        if !taken.is_empty() {
            self.updates.push(json!({ "type": "addRules", "rules": taken, "behavior": "allow",
                "destination": "session" }));
        }
    }

    fn add_directories(&mut self, one: &Value) {
        let listed = one.get("directories").and_then(Value::as_array);
        let paths: Vec<&str> = listed
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|p| !p.is_empty())
            .collect();
        if !paths.is_empty() {
            self.words.extend(paths.iter().map(|path| shown(path)));
            self.updates.push(json!({ "type": "addDirectories", "directories": paths,
                "destination": "session" }));
        }
    }

    /// What would be allowed, in the agent's notation, redacted.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The changes as the agent takes them with an answer (`updatedPermissions`).
    #[must_use]
    pub fn updates(&self) -> &[Value] {
        &self.updates
    }
}

fn shown(text: &str) -> String {
    let (short, is_cut) = cut(&redact_text(text), LONGEST);
    if is_cut { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::text::is_unprintable;

    #[test]
    fn rules_and_directories_are_offered_for_the_session_only() {
        let offered = SessionRules::offered(&json!([
            { "type": "addRules", "behavior": "allow", "destination": "localSettings",
              "rules": [{ "toolName": "Bash", "ruleContent": "npm test:*" }, { "toolName": "Read" }] },
            { "type": "addDirectories", "directories": ["/work"], "destination": "userSettings" },
        ]));
        assert_eq!(offered.words(), ["Bash(npm test:*)", "Read", "/work"]);
        for update in offered.updates() {
            assert_eq!(update["destination"], "session");
        }
        assert_eq!(offered.updates()[0]["rules"][0]["ruleContent"], "npm test:*");
    }

    #[test]
    fn modes_refusals_and_what_is_not_understood_are_not_offered() {
        for odd in [
            json!(null),
            json!({ "type": "addRules" }),
            json!([{ "type": "setMode", "mode": "bypassPermissions", "destination": "session" }]),
            json!([{ "type": "addRules", "behavior": "deny", "rules": [{ "toolName": "Bash" }] }]),
            json!([{ "type": "removeRules", "behavior": "allow", "rules": [{ "toolName": "B" }] }]),
            json!([{ "type": "addRules", "behavior": "allow", "rules": [{ "toolName": 7 }] }, 3]),
            json!([{ "type": "addRules", "behavior": "allow",
                     "rules": vec![json!({ "toolName": "Bash" }); 21] }]),
        ] {
            assert_eq!(SessionRules::offered(&odd), SessionRules::default(), "{odd}");
        }
    }

    #[test]
    fn what_is_shown_is_redacted_short_and_steers_no_terminal() {
        let secret = format!("ghp_{}", "a1B2".repeat(9));
        let content = format!("echo {secret}\u{1b}[31m {}", "x".repeat(400));
        let offered = SessionRules::offered(&json!([{ "type": "addRules", "behavior": "allow",
            "rules": [{ "toolName": "Bash", "ruleContent": content }] }]));
        let word = &offered.words()[0];
        assert!(!word.contains(&secret) && !word.chars().any(is_unprintable), "{word}");
        assert_eq!(word.chars().count(), LONGEST + 1);
        // The agent gets its own words back.
        assert_eq!(offered.updates()[0]["rules"][0]["ruleContent"], content);
    }
}
