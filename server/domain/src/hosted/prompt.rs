//! What an agent asks for, as a person sees it, and how it is answered.

use crate::redact::redact_text;
use crate::session_rules::SessionRules;
use serde_json::{Value, json};
use svc_shared::text::is_unprintable;

/// Longest summary, in characters.
pub const LONGEST_SUMMARY: usize = 300;
/// Longest text beside a refusal, in characters.
pub const LONGEST_MESSAGE: usize = 2000;
/// What a refusal says without a text.
pub const DENIED: &str = "Denied by operator";

/// A question of an agent in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The tool it wants to use.
    pub tool: Option<String>,
    /// What it wants to do with it, redacted.
    pub summary: String,
    /// Whether the summary leaves something out.
    pub truncated: bool,
}

/// How a kind of question is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Answered at once with nothing: no permission is in it.
    Acknowledge,
    /// A person decides.
    Park,
}

/// How a kind of question is treated. Nothing is ever granted by itself.
#[must_use]
pub fn treatment(subtype: &str) -> Treatment {
    match subtype {
        "initialize" | "mcp_message" => Treatment::Acknowledge,
        _ => Treatment::Park,
    }
}

/// What a question says to a person.
#[must_use]
pub fn describe(subtype: &str, request: &Value) -> Prompt {
    let text = |name: &str| request.get(name).and_then(Value::as_str).filter(|s| !s.is_empty());
    let tool = text("tool_name").map(|name| cut(&redact_text(name), 100).0);
    let input = request.get("input");
    let member = |name: &str| input.and_then(|input| input.get(name)).and_then(Value::as_str);
    // The one member that says what a usual tool is about to do; otherwise everything.
    let told = ["command", "file_path", "url", "pattern", "query", "prompt"]
        .into_iter()
        .find_map(member)
        .map(str::to_owned);
    let is_partial =
        told.is_some() && input.and_then(Value::as_object).is_some_and(|members| members.len() > 1);
    let words = told
        .or_else(|| input.map(ToString::to_string))
        .or_else(|| text("description").map(str::to_owned))
        .unwrap_or_else(|| subtype.to_owned());
    let (summary, is_cut) = cut(&redact_text(&words), LONGEST_SUMMARY);
    Prompt { tool, summary, truncated: is_cut || is_partial }
}

/// The beginning of a text, and whether more follows.
///
/// What a terminal would act on becomes blanks.
pub(crate) fn cut(text: &str, most: usize) -> (String, bool) {
    let plain = |c: char| if is_unprintable(c) { ' ' } else { c };
    let short: String = text.chars().take(most).map(plain).collect();
    let is_cut = text.chars().nth(most).is_some();
    (short, is_cut)
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Go ahead.
    Allow,
    /// Go ahead, and do the like of it for the rest of the session without asking.
    AllowForSession(SessionRules),
    /// Do not, for this reason.
    Deny(Option<String>),
}

/// The line that tells the agent.
///
/// `input` is what the agent wanted to do, unredacted: it takes no permission without it.
#[must_use]
pub fn answer_line(request_id: &str, answer: &Answer, input: &Value) -> String {
    let response = match answer {
        Answer::Allow => json!({ "behavior": "allow", "updatedInput": input }),
        Answer::AllowForSession(rules) => json!({ "behavior": "allow", "updatedInput": input,
            "updatedPermissions": rules.updates() }),
        Answer::Deny(message) => {
            json!({ "behavior": "deny", "message": message.as_deref().unwrap_or(DENIED) })
        }
    };
    line(&json!({ "type": "control_response", "response": {
        "subtype": "success", "request_id": request_id, "response": response } }))
}

/// The line that acknowledges a question without a permission in it.
#[must_use]
pub fn acknowledge_line(request_id: &str) -> String {
    line(&json!({ "type": "control_response", "response": {
        "subtype": "success", "request_id": request_id, "response": {} } }))
}

/// The line of a person's message.
#[must_use]
pub fn message_line(text: &str) -> String {
    line(&json!({ "type": "user", "message": { "role": "user", "content": text } }))
}

/// The line that ends the turn the agent is in.
#[must_use]
pub fn interrupt_line(request_id: &str) -> String {
    line(&json!({ "type": "control_request", "request_id": request_id,
        "request": { "subtype": "interrupt" } }))
}

fn line(value: &Value) -> String {
    let mut line = value.to_string();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_says_tool_and_command_and_whether_something_is_left_out() {
        let asked = json!({ "tool_name": "Bash", "input": { "command": "ls -l" } });
        let prompt = describe("can_use_tool", &asked);
        assert_eq!((prompt.tool.as_deref(), prompt.summary.as_str()), (Some("Bash"), "ls -l"));
        assert!(!prompt.truncated);
        let more = json!({ "tool_name": "Write", "input": { "file_path": "a", "content": "b" } });
        assert!(describe("can_use_tool", &more).truncated);
        let long = json!({ "input": { "command": "x".repeat(400) } });
        let prompt = describe("can_use_tool", &long);
        assert!(prompt.truncated && prompt.summary.chars().count() == LONGEST_SUMMARY);
        assert_eq!(describe("hook_callback", &Value::Null).summary, "hook_callback");
        let odd = json!({ "input": [1, 2] });
        assert_eq!(describe("can_use_tool", &odd).summary, "[1,2]");
    }

    #[test]
    fn a_summary_is_redacted_and_steers_no_terminal() {
        let secret = format!("ghp_{}", "a1B2".repeat(9));
        let asked = json!({ "input": { "command": format!("echo {secret}\u{1b}[31m\u{202e}") } });
        let summary = describe("can_use_tool", &asked).summary;
        assert!(!summary.contains(&secret) && !summary.chars().any(is_unprintable), "{summary}");
    }

    #[test]
    fn hd17_an_allowed_tool_gets_its_input_back_unchanged() {
        let input = json!({ "command": "export T=ghp_secret", "n": 1.5 });
        let line = answer_line("r1", &Answer::Allow, &input);
        let sent: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(sent["response"]["response"]["updatedInput"], input);
        assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
        let denied: Value =
            serde_json::from_str(&answer_line("r1", &Answer::Deny(None), &input)).unwrap();
        assert_eq!(denied["response"]["response"]["message"], DENIED);
    }

    #[test]
    fn only_two_kinds_are_answered_without_a_person() {
        assert_eq!(treatment("initialize"), Treatment::Acknowledge);
        assert_eq!(treatment("mcp_message"), Treatment::Acknowledge);
        for parked in ["can_use_tool", "hook_callback", "unknown", "", "set_model"] {
            assert_eq!(treatment(parked), Treatment::Park, "{parked}");
        }
    }
}
