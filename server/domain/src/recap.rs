//! The recap of an earlier conversation that a new session is given.
//!
//! The agent runs a hook of its user's settings when a session starts and adds what the hook prints
//! to the session (`agent-cli` §6.5). What stands here decides what is printed and how the hook is
//! written into the settings.

use crate::agent_hook::Hook;
use serde_json::{Value, json};

/// The hidden command of the hook, by which its entry is found again.
pub const COMMAND: &str = "__recap-hook__";

/// The variable that makes the hook act.
pub const SWITCH: &str = "SVC_RESUME_RECAP";

/// The variable with the most characters of a recap.
pub const MOST_CHARS: &str = "SVC_RESUME_RECAP_MAX_CHARS";

/// Fewest characters that a recap may have.
pub const FEWEST: usize = 500;

/// Characters of a recap where nothing else is said.
pub const USUAL: usize = 8_000;

/// The entry in the settings.
pub const HOOK: Hook =
    Hook { event: "SessionStart", place: "hooks.SessionStart", command: COMMAND, patience: 5 };

/// Head of each recap, so that no recap is told again in the next one.
const SENTINEL: &str = "[svc: recap of the previous conversation in this directory]";

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The user.
    User,
    /// The agent.
    Agent,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// By whom.
    pub by: Speaker,
    /// The text.
    pub text: String,
}

/// Whether a session that begins in this way gets a recap.
///
/// `source` is the agent's word. After a compaction or a clearing the session has what it should
/// have; a word that is not known begins a session.
#[must_use]
pub fn is_for(source: &str) -> bool {
    !matches!(source, "compact" | "clear")
}

/// The recap of what was said, oldest first, in at most `most_chars` characters.
///
/// The newest turns are kept. `None` if nothing is left to tell.
#[must_use]
pub fn recap(said: &[Said], most_chars: usize) -> Option<String> {
    let mut room = most_chars.checked_sub(SENTINEL.chars().count())?;
    let mut kept = Vec::new();
    for one in said.iter().rev() {
        let text = one.text.trim();
        if text.is_empty() || text.contains(SENTINEL) {
            continue;
        }
        let who = match one.by {
            Speaker::User => "User",
            Speaker::Agent => "Agent",
        };
        let line = format!("\n\n{who}: {text}");
        let length = line.chars().count();
        if length <= room {
            room -= length;
            kept.push(line);
            continue;
        }
        // The newest turn is told in part rather than not at all.
        if kept.is_empty() && room > 1 {
            kept.push(line.chars().take(room - 1).chain(['…']).collect());
        }
        break;
    }
    if kept.is_empty() {
        return None;
    }
    kept.reverse();
    Some(format!("{SENTINEL}{}", kept.concat()))
}

/// What the hook prints for a recap.
#[must_use]
pub fn output(recap: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": "SessionStart",
        "additionalContext": recap,
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(by: Speaker, text: &str) -> Said {
        Said { by, text: text.to_owned() }
    }

    #[test]
    fn the_newest_turns_are_told_in_their_order() {
        let all = [
            said(Speaker::User, &"old ".repeat(200)),
            said(Speaker::Agent, "Done."),
            said(Speaker::User, " And the tests? "),
            said(Speaker::Agent, "  "),
        ];
        let told = recap(&all, 500).unwrap();
        assert_eq!(told, format!("{SENTINEL}\n\nAgent: Done.\n\nUser: And the tests?"));
    }

    #[test]
    fn a_recap_keeps_to_its_length_and_tells_the_newest_turn_in_part() {
        let all = [said(Speaker::User, "before"), said(Speaker::Agent, &"ä".repeat(10_000))];
        let told = recap(&all, FEWEST).unwrap();
        assert_eq!(told.chars().count(), FEWEST);
        assert!(told.ends_with("ä…") && !told.contains("before"), "{told}");
    }

    #[test]
    fn a_recap_is_never_told_again() {
        let first = recap(&[said(Speaker::User, "hello")], USUAL).unwrap();
        let again = [said(Speaker::User, &first), said(Speaker::Agent, "Hi.")];
        assert_eq!(recap(&again, USUAL).unwrap(), format!("{SENTINEL}\n\nAgent: Hi."));
        assert_eq!(recap(&again[..1], USUAL), None);
        assert_eq!(recap(&[], USUAL), None);
    }

    #[test]
    fn a_compaction_or_a_clearing_gets_none() {
        assert!(is_for("startup") && is_for("resume") && is_for("something new"));
        assert!(!is_for("compact") && !is_for("clear"));
    }

    #[test]
    fn the_hook_is_written_once_and_beside_those_of_others() {
        let other = json!({ "hooks": [{ "type": "command", "command": "date" }] });
        let settings = json!({ "model": "x", "hooks": { "SessionStart": [other], "Stop": [] } });
        let first = HOOK.with(&settings, "/a/svc __recap-hook__").unwrap().unwrap();
        assert_eq!(first["hooks"]["SessionStart"][0], other);
        assert_eq!(first["hooks"]["SessionStart"].as_array().unwrap().len(), 2);
        assert_eq!(HOOK.with(&first, "/a/svc __recap-hook__"), Ok(None));
        let moved = HOOK.with(&first, "/b/svc __recap-hook__").unwrap().unwrap();
        let own = &moved["hooks"]["SessionStart"][1]["hooks"][0];
        assert_eq!(own["command"], "/b/svc __recap-hook__");
        assert_eq!(moved["hooks"]["SessionStart"].as_array().unwrap().len(), 2);
        let new = HOOK.with(&json!({}), "x __recap-hook__").unwrap().unwrap();
        assert_eq!(new["hooks"]["SessionStart"][0]["hooks"][0]["timeout"], HOOK.patience);
    }

    #[test]
    fn settings_of_another_form_are_left_alone() {
        for odd in [json!([]), json!({"hooks": 1}), json!({"hooks": {"SessionStart": {}}})] {
            assert!(HOOK.with(&odd, "svc __recap-hook__").is_err(), "{odd}");
        }
    }
}
