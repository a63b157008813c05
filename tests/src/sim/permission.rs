//! Hooks for permissions: commands that may answer in the place of a person.
//!
//! They stand in the user's settings.
//! They run while the agent's own question stands; whoever answers first decides. The agent does
//! not end a hook that is too late (agents 2.1.31 to 2.1.211).

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;
use serde_json::{Value, json};

use super::double::Double;

/// What a hook decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// With what is allowed for the rest of the session.
    Allow(Rules),
    Deny(String),
}

/// What a session does without asking: a tool, and the beginning of its command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Rules(Vec<(String, String)>);

impl Rules {
    /// What an answer allows (`updatedPermissions`).
    ///
    /// A destination other than the session is not taken: nothing here may write settings.
    pub(crate) fn of(updates: Option<&Value>) -> Self {
        let text = |one: &Value, name: &str| one.get(name)?.as_str().map(str::to_owned);
        let updates = updates.and_then(Value::as_array).into_iter().flatten();
        let for_session = updates.filter(|one| {
            text(one, "type").as_deref() == Some("addRules")
                && text(one, "behavior").as_deref() == Some("allow")
                && text(one, "destination").as_deref() == Some("session")
        });
        let rules = for_session.filter_map(|one| one.get("rules")?.as_array()).flatten();
        let rules = rules.filter_map(|rule| {
            let content = text(rule, "ruleContent")?;
            Some((text(rule, "toolName")?, content.strip_suffix(":*")?.to_owned()))
        });
        Self(rules.collect())
    }

    pub(crate) fn take(&mut self, more: &Self) {
        self.0.extend(more.0.iter().cloned());
    }

    pub(crate) fn allow(&self, tool: &str, input: &Value) -> bool {
        let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
        self.0.iter().any(|(of, begin)| of == tool && command.starts_with(begin.as_str()))
    }
}

/// What the agent offers to allow from now on: the program of a command.
///
/// For the settings of the project, as the agent offers it (agents 2.0.45 and later).
pub(crate) fn suggestions(tool: &str, input: &Value) -> Value {
    let program = input.get("command").and_then(Value::as_str).and_then(|c| c.split(' ').next());
    let Some(program) = program else { return json!([]) };
    json!([{ "type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{ "toolName": tool, "ruleContent": format!("{program}:*") }] }])
}

/// A call that needs a permission.
pub(crate) struct Call<'a> {
    pub(crate) session: &'a str,
    pub(crate) transcript: &'a Path,
    pub(crate) tool: &'a str,
    pub(crate) input: &'a Value,
}

/// Runs the hooks beside this process.
///
/// `then` hears the first decision, if one decides.
pub(crate) fn ask(double: &Double, call: &Call<'_>, then: impl FnOnce(Decision) + Send + 'static) {
    let commands = commands(double, call.tool);
    if commands.is_empty() {
        return;
    }
    let told = json!({
        "session_id": call.session, "transcript_path": call.transcript, "cwd": double.cwd,
        "permission_mode": "default", "hook_event_name": "PermissionRequest",
        "tool_name": call.tool, "tool_input": call.input, "permission_suggestions": suggestions(call.tool, call.input),
    })
    .to_string();
    let cwd = double.cwd.clone();
    std::thread::spawn(move || {
        if let Some(decision) = commands.iter().find_map(|command| run(command, &cwd, &told)) {
            then(decision);
        }
    });
}

/// The commands of hooks whose matcher fits the tool.
fn commands(double: &Double, tool: &str) -> Vec<String> {
    let read = std::fs::read_to_string(double.home.dir().join("settings.json"));
    let settings: Value = read.ok().and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
    let groups = settings.pointer("/hooks/PermissionRequest").and_then(Value::as_array);
    let fits = |group: &&Value| match group.get("matcher").and_then(Value::as_str) {
        None | Some("" | "*") => true,
        Some(pattern) => Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|r| r.is_match(tool)),
    };
    let hooks = groups.into_iter().flatten().filter(fits).filter_map(|group| group.get("hooks"));
    let hooks = hooks.filter_map(Value::as_array).flatten();
    hooks.filter_map(|hook| Some(hook.get("command")?.as_str()?.to_owned())).collect()
}

fn run(command: &str, cwd: &Path, told: &str) -> Option<Decision> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // A hook that has nothing to do ends before it has read.
    let _ = child.stdin.take()?.write_all(told.as_bytes());
    let done = child.wait_with_output().ok()?;
    if !done.status.success() {
        return None;
    }
    let answer: Value = serde_json::from_slice(&done.stdout).ok()?;
    let output = answer.get("hookSpecificOutput")?;
    if output.get("hookEventName")?.as_str()? != "PermissionRequest" {
        return None;
    }
    let decision = output.get("decision")?;
    match decision.get("behavior")?.as_str()? {
        "allow" => Some(Decision::Allow(Rules::of(decision.get("updatedPermissions")))),
        "deny" => Some(Decision::Deny(decision.get("message")?.as_str()?.to_owned())),
        _ => None,
    }
}
