//! Subagents: what the front matter of their files must say.

use super::{BadConfig, bad};
use crate::log_escape::quoted;
use serde_json::{Map, Value};

/// Those that the agent brings, which no file here replaces.
pub const BUILT_IN: [&str; 3] = ["explore", "general-purpose", "plan"];
/// Longest description, in characters.
const LONGEST: usize = 20_000;

/// Checks the front matter of a file that is about to be written for a name.
///
/// # Errors
/// A member is missing or does not fit.
pub fn check(name: &str, front: &Map<String, Value>) -> Result<(), BadConfig> {
    let text = |key: &str| front.get(key).and_then(Value::as_str).map(str::trim);
    match text("name") {
        None | Some("") => return Err(bad("the front matter has no `name`")),
        Some(inside) if inside != name => {
            return Err(bad(format!(
                "`name` of the front matter is {}, but the subagent is {}; make them the same",
                quoted(inside),
                quoted(name)
            )));
        }
        Some(_) => {}
    }
    match text("description") {
        None | Some("") => {
            return Err(bad(
                "the front matter has no `description`: the agent chooses by this text",
            ));
        }
        Some(text) if text.chars().count() > LONGEST => {
            return Err(bad(format!("`description` has more than {LONGEST} characters")));
        }
        Some(_) => {}
    }
    check_mode(front)
}

/// Refuses front matter that bypasses permissions.
///
/// # Errors
/// It does.
pub fn check_mode(front: &Map<String, Value>) -> Result<(), BadConfig> {
    if front.get("permissionMode").and_then(Value::as_str) == Some("bypassPermissions") {
        return Err(bad(
            "`permissionMode` of the front matter bypasses permissions; choose another one",
        ));
    }
    Ok(())
}

/// The description of a subagent or a skill, for a list.
#[must_use]
pub fn description(front: &Map<String, Value>) -> Option<&str> {
    front.get("description").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_subagent_needs_its_name_and_a_description() {
        let check = |front: Value| check("review", front.as_object().unwrap());
        assert!(
            check(json!({"name": "review", "description": "Reviews.", "tools": "Read"})).is_ok()
        );
        for (front, why) in [
            (json!({"description": "x"}), "no `name`"),
            (json!({"name": 5, "description": "x"}), "no `name`"),
            (json!({"name": "other", "description": "x"}), "make them the same"),
            (json!({"name": "review"}), "`description`"),
            (json!({"name": "review", "description": " "}), "`description`"),
            (json!({"name": "review", "description": "x".repeat(20_001)}), "20000"),
            (
                json!({"name": "review", "description": "x", "permissionMode": "bypassPermissions"}),
                "`permissionMode`",
            ),
        ] {
            assert!(check(front).unwrap_err().0.contains(why), "{why}");
        }
    }
}
