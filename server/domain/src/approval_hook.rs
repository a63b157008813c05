//! The agent's hook for permissions, as a way to the approval inbox.
//!
//! Before the agent asks its user for a permission it runs this hook. The hook asks the service,
//! which parks the question for a person, and prints what was decided. When it prints nothing, the
//! agent asks as it would without it.

use crate::agent_hook::Hook;
use crate::hosted::prompt::{Answer, DENIED};
use serde_json::{Value, json};

/// The hidden command of the hook.
pub const COMMAND: &str = "__permission-hook__";

/// The variable with the socket of the service, for its own sessions.
///
/// Empty where the hook has nothing to do: what a Direct Session asks comes another way.
pub const SOCKET: &str = "SVC_APPROVAL_SOCKET";

/// Tools whose question is more than yes or no.
///
/// Only the agent's own client can ask it.
pub const INTERACTIVE: [&str; 2] = ["AskUserQuestion", "ExitPlanMode"];

/// The variable that says which launch a session belongs to.
pub const LAUNCH: &str = "SVC_LAUNCH_ID";

/// Seconds that a question waits for a person at most.
pub const PATIENCE: u64 = 590;

/// The entry in the settings. The agent waits a little longer than the hook.
pub const HOOK: Hook = Hook {
    event: "PermissionRequest",
    place: "hooks.PermissionRequest",
    command: COMMAND,
    patience: PATIENCE + 10,
};

/// What the hook prints for an answer (agents 2.1.31 to 2.1.258).
#[must_use]
pub fn output(answer: &Answer) -> Value {
    let decision = match answer {
        Answer::Allow => json!({ "behavior": "allow" }),
        Answer::AllowForSession(rules) => {
            json!({ "behavior": "allow", "updatedPermissions": rules.updates() })
        }
        Answer::Deny(message) => {
            json!({ "behavior": "deny", "message": message.as_deref().unwrap_or(DENIED) })
        }
    };
    json!({ "hookSpecificOutput": {
        "hookEventName": HOOK.event,
        "decision": decision,
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_told_in_its_own_words() {
        let allowed = json!({ "hookSpecificOutput": {
            "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" },
        } });
        assert_eq!(output(&Answer::Allow), allowed);
        let denied = output(&Answer::Deny(None));
        assert_eq!(denied["hookSpecificOutput"]["decision"]["message"], DENIED);
    }
}
