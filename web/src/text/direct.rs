//! Sentences of Direct Sessions and of the inbox.

/// Tab.
pub const LIVE: &str = "Live";
/// View and place of the navigation.
pub const INBOX: &str = "Inbox";
/// Who said it.
pub const YOU: &str = "You";
/// Who said it.
pub const AGENT: &str = "Agent";
/// Label of the conversation.
pub const TALK: &str = "Conversation";
/// Before anything was said.
pub const NOTHING_YET: &str = "No messages yet. Write what the agent should do.";
/// The socket is not there.
pub const CONNECTING: &str = "Connecting to the session…";
/// The socket was lost.
pub const RECONNECTING: &str = "Connection to the session lost. Reconnecting…";
/// The row is gone.
pub const GONE: &str = "This session was forgotten.";
/// Label of the message box.
pub const MESSAGE: &str = "Message to the agent";
/// Button.
pub const SEND: &str = "Send";
/// Why the next message cannot be sent yet.
pub const SENDING: &str = "The message before is being sent.";
/// Why nothing can be sent.
pub const NOT_RUNNING: &str = "The session is not running. Resume it to send a message.";
/// Under the box while a question waits.
pub const AFTER_ANSWER: &str = "The agent reads the message after you answer the request above.";
/// Under the box.
pub const KEYS: &str = "Enter sends. Shift+Enter starts a new line.";
/// What a message is called in messages about it.
pub const SEND_TO: &str = "Send a message";
/// Button.
pub const ALLOW: &str = "Allow once";
/// Button: with what the agent offers for the rest of its session.
pub const ALLOW_SESSION: &str = "Allow for this session";
/// Before what that allows.
pub const SESSION_RULES: &str = "For this session, the agent offers to allow:";
/// Button.
pub const DENY: &str = "Deny";
/// Label of the text beside a refusal.
pub const REASON: &str = "Message to the agent if you deny";
/// Beside a question.
pub const ONCE: &str = "the answer is for this request only";
/// Beside a question whose summary is not everything.
pub const SHORTENED: &str = "shortened; the conversation has the full text";
/// The inbox without questions.
pub const EMPTY: &str = "Nothing is waiting for you.";
/// What will be there.
pub const EMPTY_WHY: &str = "Requests of Direct Sessions appear here, and background sessions that wait for you. With \
     Approvals here on (Settings, Agent) all sessions of this machine ask here.";
/// How to get to the session.
pub const OPEN: &str = "Open session";
/// How to get to the conversation of a session that nobody manages.
pub const OPEN_CONVERSATION: &str = "Open conversation";
/// Beside a question of a session that nobody manages.
pub const THIS_MACHINE: &str = "started on this machine, not by svc";
/// Until when a question waits here.
#[must_use]
pub fn until(time: &str) -> String {
    format!("waits here until {time}")
}
/// An answer was taken.
#[must_use]
pub fn answered(is_allowed: bool, project: &str) -> String {
    if is_allowed { format!("Allowed in {project}") } else { format!("Denied in {project}") }
}
/// A message was taken.
#[must_use]
pub fn sent(project: &str) -> String {
    format!("Message sent to {project}")
}
/// How long a turn took.
#[must_use]
pub fn turn_done(millis: Option<i64>) -> String {
    match millis {
        Some(millis) => format!("Turn done after {} s", (millis + 500) / 1000),
        None => "Turn done".to_owned(),
    }
}
/// What became of a question.
#[must_use]
pub fn decided(behavior: &str) -> String {
    match behavior {
        "allow" => "Allowed".to_owned(),
        "deny" => "Denied".to_owned(),
        "cancelled" => "The agent withdrew the request".to_owned(),
        "interrupted" => "The session ended before an answer".to_owned(),
        other => other.to_owned(),
    }
}
/// Events that cannot be shown.
#[must_use]
pub fn gap(count: u64) -> String {
    match count {
        1 => "1 event is not available here".to_owned(),
        many => format!("{many} events are not available here"),
    }
}
/// The daemon was lost.
pub const LOST: &str = "The connection to the agent was lost. The service is reconnecting.";
/// The end.
#[must_use]
pub fn ended(code: Option<i64>) -> String {
    match code {
        Some(0) | None => "The agent exited".to_owned(),
        Some(code) => format!("The agent exited with code {code}"),
    }
}
/// How many questions wait.
#[must_use]
pub fn waiting(count: usize) -> String {
    match count {
        1 => "1 request is waiting".to_owned(),
        many => format!("{many} requests are waiting"),
    }
}
