//! Sentences of the editors of the agent's own configuration.

pub mod plugins;
pub mod review;
pub mod skills;

use crate::model::agent_config::{Scope, Surface};

/// View.
pub const TITLE: &str = "Agent configuration";
/// Button that leads here from a project.
pub const LINK: &str = "Agent config";
/// It is off.
pub const OFF: &str = "These files decide which code runs, so they can be changed here only after \
    config_write.enabled is set to true in the configuration file.";
/// Button that leads to the settings of the service.
pub const TO_SETTINGS: &str = "Open settings";
/// Field.
pub const PROJECT: &str = "Project";
/// No project is chosen.
pub const CHOOSE: &str = "Choose a project.";
/// There is no project to choose.
pub const NO_PROJECT: &str = "There is no project of this name.";
/// Head of the list.
pub const SURFACE: &str = "Part";
/// What the figures of the list mean.
pub const COUNTS: &str = "Numbers count the entries, a dash means empty. A blank field: the agent \
    has no such scope for this part.";
/// Something is there.
pub const SET: &str = "set";
/// The file cannot be read.
pub const UNREADABLE: &str = "!";
/// Way back on a phone.
pub const ALL: &str = "All parts";
/// Group of scopes.
pub const SCOPE: &str = "Scope";
/// After the name of a scope.
pub const SCOPE_WORD: &str = "scope";
/// While a part is read.
pub const READING: &str = "Reading…";
/// Button.
pub const RETRY: &str = "Try again";
/// The file does not exist.
pub const NO_FILE: &str = "not there yet";
/// When a change counts.
pub const NEW_SESSIONS: &str = "applies to new sessions";
/// Button.
pub const RAW: &str = "Raw JSON";
/// Button.
pub const FORM: &str = "Form";
/// Button.
pub const EFFECTIVE: &str = "Effective values";
/// Button.
pub const VERSIONS: &str = "Earlier versions";
/// Button.
pub const ADD: &str = "Add";
/// Button of a row.
pub const REMOVE: &str = "Remove";
/// Field.
pub const NAME: &str = "Name";
/// Field.
pub const VALUE: &str = "Value";
/// What the stars in a field mean.
pub const STARS: &str = "Stars stand for a stored secret. Leave them, and it stays as it is.";
/// Said after a save.
#[must_use]
pub fn saved(surface: Surface) -> String {
    format!("{} saved.", label(surface))
}

/// Name of a surface.
#[must_use]
pub fn label(surface: Surface) -> &'static str {
    match surface {
        Surface::Instructions => "CLAUDE.md",
        Surface::Settings => "Settings",
        Surface::Permissions => "Permissions",
        Surface::Hooks => "Hooks",
        Surface::Servers => "MCP servers",
        Surface::Approvals => "Approvals",
        Surface::Subagents => "Subagents",
        Surface::Skills => "Skills",
        Surface::Plugins => "Plugins",
        Surface::Marketplaces => "Marketplaces",
    }
}

/// Name of a scope.
#[must_use]
pub fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "User",
        Scope::Project => "Project",
        Scope::Local => "Local",
    }
}

/// What a surface is for, or warns of.
#[must_use]
pub fn about(surface: Surface) -> &'static str {
    match surface {
        Surface::Instructions => "Each session reads this text when it starts.",
        Surface::Settings => "Permissions, hooks, MCP servers and plugins have parts of their own.",
        Surface::Permissions => "Rules name a tool, and in brackets what it may be used for.",
        Surface::Hooks => "Hooks run commands on this machine, as the user of the agent.",
        Surface::Servers => "Servers run commands on this machine, or send data to an address.",
        Surface::Approvals => "Which servers of .mcp.json may run in this project.",
        Surface::Subagents => "Agents that a session may call, each with its own instructions.",
        Surface::Skills => "Skills are instructions and scripts that the agent takes up by itself.",
        Surface::Plugins => "Plugins bring hooks, skills and servers, and run on this machine.",
        Surface::Marketplaces => "Where plugins come from.",
    }
}

/// Sentences about fields.
pub mod fault {
    /// A rule without text.
    pub const EMPTY_RULE: &str = "Write a rule, or remove this row.";
    /// A hook without command.
    pub const NO_COMMAND: &str = "Write the command, or remove this hook.";
    /// A hook of a plugin.
    pub const OF_PLUGIN: &str = "This command belongs to a plugin and is changed there.";
    /// A time that is none.
    pub const NO_TIME: &str = "Write a number of seconds above 0, or leave it empty.";
    /// A server without program.
    pub const NO_PROGRAM: &str = "Write the program that is started.";
    /// A server without address.
    pub const NO_URL: &str = "Write an address that begins with https:// or http://.";
    /// More than can be saved.
    pub const TOO_LARGE: &str = "At most 65,536 bytes can be saved. Shorten the text.";
    /// A name that does not fit.
    pub const BAD_NAME: &str = "Use letters, digits, _, . and -, and begin with a letter.";
    /// A name that does not fit.
    pub const BAD_SUBAGENT: &str = "Use small letters and digits, joined by -.";
    /// A name that is taken.
    pub const TAKEN: &str = "There is one of this name already.";
    /// A name that is missing.
    pub const NO_NAME: &str = "Write a name, or remove this row.";
    /// Not an object.
    pub const NO_OBJECT: &str = "This must be an object: { … }.";

    /// Not JSON.
    #[must_use]
    pub fn no_json(line: usize, column: usize) -> String {
        format!("This is no JSON: see line {line}, column {column}.")
    }
}

/// Sentences about hooks.
pub mod hooks {
    /// Events with what they are, and the name of their filter where they have one.
    pub const EVENTS: [(&str, &str, Option<&str>); 9] = [
        ("PreToolUse", "before a tool runs", Some(ONLY_FOR)),
        ("PostToolUse", "after a tool has run", Some(ONLY_FOR)),
        ("UserPromptSubmit", "when a message is sent", None),
        ("Notification", "when the agent wants attention", Some(ONLY_WHEN)),
        ("Stop", "when a turn ends", None),
        ("SubagentStop", "when a subagent ends", None),
        ("PreCompact", "before a conversation is shortened", Some(ONLY_WHEN)),
        ("SessionStart", "when a session starts", Some(ONLY_WHEN)),
        ("SessionEnd", "when a session ends", Some(ONLY_WHEN)),
    ];
    /// Field.
    pub const ONLY_FOR: &str = "Only for tools";
    /// Field.
    pub const ONLY_WHEN: &str = "Only for";
    /// A field that this event has not.
    pub const NOT_USED: &str = "not used here";
    /// A field that the hook shares with the one above.
    pub const AS_ABOVE: &str = "as above";
    /// Field.
    pub const COMMAND: &str = "Command";
    /// Field.
    pub const TIMEOUT: &str = "Timeout, s";
    /// Button.
    pub const ADD: &str = "Add";
    /// Verb of the button's name.
    pub const ADD_HOOK: &str = "Add a hook to";
    /// Choice.
    pub const ADD_EVENT: &str = "Add a hook for…";
    /// There are none.
    pub const NONE: &str = "No hooks in this scope.";

    /// A hook of another kind.
    #[must_use]
    pub fn kept(kind: &str) -> String {
        format!("A hook of the kind \"{kind}\" stays as it is. Raw JSON removes it.")
    }
}

/// Sentences about permissions.
pub mod permissions {
    /// Field.
    pub const MODE: &str = "Default mode";
    /// Why one mode is missing.
    pub const MODE_ABOUT: &str =
        "Skipping all questions is chosen when a session is launched, never here.";
    /// The modes.
    pub const MODES: [(&str, &str); 6] = [
        ("", "not set"),
        ("default", "default: ask"),
        ("plan", "plan: read only"),
        ("acceptEdits", "acceptEdits: edit without asking"),
        ("auto", "auto: the agent judges"),
        ("dontAsk", "dontAsk: refuse what is not allowed"),
    ];
    /// Field of a row.
    pub const RULE: &str = "Rule";
    /// Lists with what they do.
    pub const LISTS: [(&str, &str); 3] = [
        ("Allow", "Done without a question, such as Bash(npm run test:*)."),
        ("Deny", "Never done, such as Read(./.env)."),
        ("Ask", "Always asked, such as Bash(git push:*)."),
    ];
}

/// Sentences about settings.
pub mod settings {
    /// Group.
    pub const ENV: &str = "Environment variables";
    /// Group.
    pub const KEYS: &str = "Other settings";
    /// Field.
    pub const NEW: &str = "New setting";
    /// Head of a table.
    pub const KEY: &str = "Key";
    /// Head of a table.
    pub const SOURCE: &str = "From";
    /// Nothing is set.
    pub const NOTHING: &str = "No settings file of this project says anything.";

    /// Why something cannot be the name of a setting.
    #[must_use]
    pub fn check(name: &str) -> Option<&'static str> {
        const OWNED: [&str; 6] = [
            "permissions",
            "hooks",
            "enabledPlugins",
            "disabledPlugins",
            "enabledMcpjsonServers",
            "disabledMcpjsonServers",
        ];
        match name {
            "" => Some("Write the name of the setting."),
            name if OWNED.contains(&name) => {
                Some("This setting has a part of its own in the list.")
            }
            _ => None,
        }
    }
}

/// Sentences about servers.
pub mod servers {
    /// There are none.
    pub const NONE: &str = "No MCP servers in this scope.";
    /// Field.
    pub const NEW: &str = "Name of a new server";
    /// Field.
    pub const KIND: &str = "Kind";
    /// The kinds.
    pub const KINDS: [(&str, &str); 3] =
        [("stdio", "Program"), ("http", "Address (HTTP)"), ("sse", "Address (SSE)")];
    /// Field.
    pub const COMMAND: &str = "Program";
    /// Group.
    pub const ARGS: &str = "Arguments";
    /// Field.
    pub const ARG: &str = "Argument";
    /// Group.
    pub const ENV: &str = "Environment variables";
    /// Field.
    pub const URL: &str = "Address";
    /// Group.
    pub const HEADERS: &str = "Headers";
}

/// Sentences about approvals.
pub mod approvals {
    /// There are none.
    pub const NONE: &str = "This project brings no MCP servers, and nothing was decided.";
    /// The choices: allowed, forbidden, neither.
    pub const CHOICES: [(&str, Option<usize>); 3] =
        [("Approve", Some(0)), ("Reject", Some(1)), ("Ask", None)];
    /// A settings file decides.
    pub const LOCKED: &str = "decided in a settings file; change it there";
    /// The server is not in the file.
    pub const GONE: &str = "not in .mcp.json";
    /// Button.
    pub const RESET: &str = "Ask about all again";
}

/// Sentences about subagents.
pub mod subagents {
    /// Way back.
    pub const BACK: &str = "All subagents";
    /// Field.
    pub const NEW: &str = "Name of a new subagent";
    /// Where one comes from.
    #[must_use]
    pub fn source(word: &str) -> String {
        match word {
            "built-in" => "comes with the agent".to_owned(),
            "plugin" => "belongs to a plugin".to_owned(),
            other => other.to_owned(),
        }
    }
    /// Text of the file.
    pub const TEXT: &str = "Text of the subagent";
    /// Not shown.
    pub const FIXED: &str = "This subagent is not changed here.";
    /// Button.
    pub const DELETE: &str = "Remove this subagent";
    /// Button of the question.
    pub const YES: &str = "Remove";
    /// Toast.
    #[must_use]
    pub fn deleted(name: &str) -> String {
        format!("The subagent {name} is removed. Earlier versions keeps its text.")
    }
    /// What a new one contains.
    #[must_use]
    pub fn template(name: &str) -> String {
        format!("---\nname: {name}\ndescription: \n---\n\n")
    }
}

/// Sentences about texts.
pub mod text {
    /// Field.
    pub const INSTRUCTIONS: &str = "Text of the instructions";

    /// How much of the room is used.
    #[must_use]
    pub fn size(bytes: usize) -> String {
        use crate::text::launch::thousands;
        format!("{} / {} bytes", thousands(bytes), thousands(64 * 1024))
    }
}
