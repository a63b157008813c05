//! Sentences of the launch and trust dialogs.

/// Title.
#[must_use]
pub fn title(project: &str) -> String {
    format!("Launch in {project}")
}
/// Label of the kind.
pub const HOW: &str = "Kind";
/// What the one kind is.
pub const SERVER_MODE: &str = "Server Mode";
/// … and does.
pub const SERVER_MODE_EFFECT: &str =
    "Many conversations, started from the client. One per project. Resuming reconnects them.";
/// A kind.
pub const INTERACTIVE: &str = "Interactive Session";
/// … and does.
pub const INTERACTIVE_EFFECT: &str =
    "One conversation in a terminal. Several can run. Resuming continues the same conversation.";
/// What a background session does.
pub const BACKGROUND_EFFECT: &str =
    "Works alone from a first prompt. Several can run. Resuming continues in a new job.";
/// A kind.
pub const DIRECT: &str = "Direct Session";
/// … and does.
pub const DIRECT_EFFECT: &str =
    "One conversation, driven from this page. Several can run. Resuming continues the same one.";
/// Label of the first prompt.
pub const PROMPT: &str = "First prompt";
/// A number with a comma before each group of three digits.
#[must_use]
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
/// Size of the first prompt.
#[must_use]
pub fn prompt_size(bytes: usize) -> String {
    format!("{} / 100,000 bytes. Ctrl+Enter to launch", thousands(bytes))
}
/// Switch.
pub const REGISTER: &str = "Register with the remote service";
/// Label of the switch.
pub const REMOTE: &str = "Remote";
/// What the switch means.
pub const REGISTER_HELP: &str =
    "The client lists the session by this name, and the prompt can come later.";
/// Label of that name.
pub const REMOTE_NAME: &str = "Remote name";
/// Label of the model.
pub const MODEL: &str = "Model";
/// Placeholder of the model.
pub const MODEL_DEFAULT: &str = "Agent default";
/// Rule of the model.
pub const MODEL_HELP: &str = "A model name of the agent, at most 128 characters.";
/// What breaks the rule.
pub const MODEL_REFUSED: &str =
    "Use at most 128 characters, no control or invisible ones, and no dash at the start.";
/// Footer while there is nothing to do.
pub const WAITS_FOR_PROMPT: &str =
    "Write a first prompt, or register the session with the remote service.";
/// Footer.
pub const PROMPT_TOO_LONG: &str = "The first prompt is longer than 100,000 bytes.";
/// Label of the permission mode.
pub const MAY_DO: &str = "Permissions";
/// All modes with their effects.
pub const ALL_MODES: &str = "What each choice means";
/// Label of the spawn mode.
pub const RUNS_IN: &str = "Runs in";
/// Why no worktree.
pub const NOT_GIT: &str = "Worktrees need a git repository, and this folder is not one.";
/// Option text of the disabled worktree.
pub const WORKTREE_OFF: &str = "Own worktree per session (not a git repository)";
/// Why no worktree, although there is a repository.
pub const NO_WORKTREE: &str =
    "No worktree can be made here. The repository needs at least one commit.";
/// Others work on the same files.
#[must_use]
pub fn collision(others: usize) -> String {
    match others {
        1 => "Another session works on the same files. Their changes can get mixed.".to_owned(),
        n => format!("{n} other sessions work on the same files. Their changes can get mixed."),
    }
}
/// Chooses the worktree instead.
pub const USE_WORKTREE: &str = "Use a worktree";
/// What servers that nobody approved mean for a session in a terminal.
pub const MCP_ASKS: &str =
    "The session would wait in its terminal until somebody approves or rejects them.";
/// Opens the choices that few need.
pub const MORE: &str = "More: restarts, plan limits";
/// Label of the restart policy.
pub const RESTART: &str = "Restarts";
/// The policy of the configuration.
#[must_use]
pub fn restart_inherit(policy: Option<&str>) -> String {
    match policy {
        Some(policy) => format!("As configured: {}", restart(policy).to_lowercase()),
        None => "As configured".to_owned(),
    }
}
/// A restart policy.
#[must_use]
pub fn restart(policy: &str) -> &str {
    match policy {
        "never" => "Never",
        "on-crash" => "After a crash",
        "always" => "After every exit that nobody asked for",
        other => other,
    }
}
/// Label of what a session does after a plan limit.
pub const ON_LIMIT: &str = "After a plan limit";
/// What the configuration says.
pub const ON_LIMIT_INHERIT: &str = "As configured";
/// What a session does after a plan limit.
#[must_use]
pub fn on_limit(choice: &str) -> &str {
    match choice {
        "wait" => "Waits for a person",
        "continue" => "Continues once after the reset",
        other => other,
    }
}
/// What that means.
#[must_use]
pub fn on_limit_effect(choice: &str) -> &'static str {
    match choice {
        "wait" => "After the reset, somebody has to tell the session to go on.",
        "continue" => {
            "One to three minutes after the reset, the session is told once to go on, unless a person did before."
        }
        _ => "",
    }
}
/// Why a bridge has no choice.
pub const ON_LIMIT_NONE: &str =
    "A person goes on in the remote client: a Server Mode bridge takes no text from here.";
/// What a restart policy means.
#[must_use]
pub fn restart_effect(policy: &str) -> &'static str {
    match policy {
        "never" => "After it ends, somebody has to resume the session.",
        "on-crash" => {
            "Resumes the session after a crash, with a longer wait each time, and gives up after too many."
        }
        "always" => {
            "Also resumes it after an exit without an error and after a restart of the machine."
        }
        _ => "",
    }
}
/// Label of the name.
pub const SESSION_NAME: &str = "Session name";
/// Rule of the name of an Interactive Session.
pub const OWN_NAME_HELP: &str =
    "At most 128 characters. Shown here. The remote client shows the project name.";
/// Rule of the name of a session without a remote client.
pub const LOCAL_NAME_HELP: &str = "At most 128 characters. Shown here.";
/// Rule of the name.
pub const NAME_HELP: &str = "At most 128 characters. Shown in the remote client.";
/// What breaks the rule.
#[must_use]
pub fn name_refused(why: &str) -> String {
    format!("This session name cannot be used: {why}.")
}
/// Heading of the trust gate.
pub const NOT_TRUSTED: &str = "This folder is not trusted yet";
/// What trusting allows.
pub const TRUST_ALLOWS: &str =
    "If you trust it, the agent can read this folder and run what is in it:";
/// … when it ships nothing special.
pub const TRUST_ALLOWS_PLAIN: &str =
    "If you trust it, the agent can read this folder and run what is in it.";
/// The box.
pub const I_TRUST: &str = "I trust the files in this folder";
/// The folder has instructions.
pub const CLAUDE_MD: &str = "CLAUDE.md";
/// The folder has settings of its own.
pub const CLAUDE_DIR: &str = ".claude/ with settings";
/// The service is reading hooks and MCP servers of the folder.
pub const LOOKS: &str = "Looking for hooks and MCP servers…";
/// It could not read them.
pub const UNREADABLE: &str =
    "Hooks and MCP servers could not be read. Check the folder before you trust it.";
/// The folder's hooks.
#[must_use]
pub fn hooks(names: &[String]) -> String {
    let list = names.join(", ");
    if names.len() == 1 {
        format!("1 hook: {list}")
    } else {
        format!("{} hooks: {list}", names.len())
    }
}
/// A server the folder brings.
#[must_use]
pub fn mcp_server(name: &str) -> String {
    format!("MCP server {name}")
}
/// Heading of the bypass gate.
pub const BYPASS: &str = "This session would run everything without asking";
/// What to type.
#[must_use]
pub fn type_name(project: &str) -> String {
    format!("Type the project name, {project}, to allow it for this launch.")
}
/// Label of that field.
pub const TYPED_NAME: &str = "Project name";
/// Footer while the box is empty.
pub const WAITS_FOR_TRUST: &str = "Trust the folder to launch.";
/// Footer while the name is not typed.
pub const WAITS_FOR_NAME: &str = "Type the project name to launch.";
/// Footer while the answer is on its way.
pub const PENDING: &str = "Launching. Closing this does not cancel it.";
/// Footer while readiness is being asked.
pub const CHECKING: &str = "Checking what a launch needs…";
/// Readiness could not be read.
#[must_use]
pub fn unchecked(why: &str) -> String {
    format!("The checks could not run: {why}")
}
/// The project is another's second name.
#[must_use]
pub fn alias(of: &str) -> String {
    format!("This is the same folder as {of}. Launch in {of}.")
}
/// A verdict that comes without a sentence.
#[must_use]
pub fn verdict(code: &str) -> String {
    match code {
        "capacity" => "The limit of live bridges is reached. Stop one first.".to_owned(),
        "agent_missing" => "The agent program was not found on this machine.".to_owned(),
        "held_elsewhere" => "Another service or project holds this folder.".to_owned(),
        "disk_full" => "There is too little free space on this machine.".to_owned(),
        "pty_unavailable" => "This machine cannot open a terminal for the session.".to_owned(),
        "hosted_unavailable" => "Off. Set hosted.enabled to true in svc.yml.".to_owned(),
        other => format!("A launch would be refused: {other}."),
    }
}
/// The choice in one line.
#[must_use]
pub fn summary(kind: &str, place: &str, permission: &str) -> String {
    format!("{kind} {place}, {permission}")
}
/// The choice of a kind without a place, in one line.
#[must_use]
pub fn summary_anywhere(kind: &str, permission: &str) -> String {
    format!("{kind}, {permission}")
}
/// One lives already.
#[must_use]
pub fn already(since: &str) -> String {
    format!("Already running since {since}. Launching again opens the same one.")
}
/// Effective meaning of `inherit`.
#[must_use]
pub fn inherits(mode: &str, source: Option<&str>) -> String {
    match source {
        Some(source) => format!("Now: {mode}, from the {source} settings."),
        None => format!("Now: {mode}, the agent's default."),
    }
}
/// Capacity.
#[must_use]
pub fn capacity(live: u32, max: u32) -> String {
    format!("{live} of {max} bridges in use")
}
/// Buttons.
pub const LAUNCH: &str = "Launch";
/// … for a bridge that runs.
pub const VIEW_IT: &str = "View running session";
/// Closes.
pub const CANCEL: &str = "Cancel";
/// Closes.
pub const CLOSE: &str = "Close";
/// Sends the same request once more.
pub const TRY_AGAIN: &str = "Try again";
/// Grants trust.
pub const TRUST: &str = "Trust";
/// Opens the gate.
pub const TRUST_DOTS: &str = "Trust…";
/// Title of the gate.
#[must_use]
pub fn trust_title(project: &str) -> String {
    format!("Trust {project}?")
}
/// Title of the gate before a resume.
#[must_use]
pub fn trust_resume_title(project: &str) -> String {
    format!("Trust {project} and resume?")
}
/// Button of that gate.
pub const TRUST_AND_RESUME: &str = "Trust and resume";
/// Footer of the gate.
pub const TRUST_LASTS: &str = "The agent remembers this, also for sessions started elsewhere.";
/// The project of the address is not there.
#[must_use]
pub fn no_project(name: &str) -> String {
    format!("There is no project {name} on this machine.")
}
/// The button was pressed before the box.
pub const WAITS_FOR_BOX: &str = "Check the box first.";
/// Opens the failed launch once more.
pub const EDIT_AND_RETRY: &str = "Edit and retry";
/// Group of the choices that few need.
pub const ADVANCED: &str = "Advanced";
/// The address asks for a sandbox.
pub const SANDBOX_IGNORED: &str = "The address asks for a sandbox. This version ignores that.";
/// The dialog was closed before the answer came.
#[must_use]
pub fn goes_on(project: &str) -> String {
    format!("Still launching in {project}")
}
/// … and what follows.
pub const GOES_ON_BODY: &str = "A message tells you the result.";
/// Above the bridges that could be stopped.
pub const LEAST_USED: &str = "Least recently used:";
/// Before the next try.
#[must_use]
pub fn wait(span: &str) -> String {
    format!("Try again in {span}.")
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_read_in_groups_of_three_digits() {
        for (n, words) in [(0, "0"), (999, "999"), (1_000, "1,000"), (100_000, "100,000")] {
            assert_eq!(super::thousands(n), words);
        }
    }
}
