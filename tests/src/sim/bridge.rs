//! The standard bridge: the start checks in the agent's order, then the main loop.

pub(super) mod agenda;
mod args;
mod engine;
pub(super) mod noise;
mod registration;
mod screen;
mod sessions;

use std::io::{self, BufRead};
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use self::args::{Args, Spawn};
use self::engine::Engine;
use super::console::print;
use super::debug_log::DebugLog;
use super::double::Double;
use super::failure::Failure;
use super::values::Fatal;
use super::{files, texts, trust};

/// Runs `remote-control` to its end.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    checked(double).map_err(|mut failure| {
        if let Some(text) = &double.knobs.stderr_text {
            failure.text = format!("{text}\n{}", failure.text);
        }
        failure
    })
}

fn checked(double: &Double) -> Result<u8, Failure> {
    let words = double.args.get(1..).unwrap_or_default();
    let parsed = Args::parse(words);
    let log = DebugLog::new(Args::debug_file(words), &double.knobs);
    log_settings(double, &log);

    let config = double.home.config()?;
    if double.knobs.fatal == Some(Fatal::ConfigError) {
        let file = double.home.config_file().display();
        return Err(Failure::agent(format!(
            "Configuration error in {file}: JSON Parse error: Expected '}}'"
        )));
    }
    // The login comes before the flags: a logged-out account hides a wrong flag.
    if double.knobs.fatal == Some(Fatal::Login) || !double.knobs.auth.allows_remote_control() {
        return Err(login_required(&log));
    }
    let args = parsed?;
    if args.help {
        print(texts::BRIDGE_HELP);
        return Ok(0);
    }
    match double.knobs.fatal {
        Some(Fatal::BadArgument) => return Err(args::unknown("--unheard-of")),
        Some(Fatal::OrgPolicy) => return Err(Failure::agent(texts::ORG_POLICY)),
        Some(Fatal::Trust) => return Err(not_trusted(double)),
        Some(Fatal::Login | Fatal::ConfigError | Fatal::Network | Fatal::AlreadyServed) | None => {}
    }
    if !trust::is_trusted(&config, &double.cwd, double.profile) {
        return Err(not_trusted(double));
    }
    let seen = config.get("remoteDialogSeen") == Some(&Value::Bool(true));
    if !seen && !ask_to_enable(double, config)? {
        return Ok(0);
    }
    if args.spawn == Spawn::Worktree && trust::git_root(&double.cwd).is_none() {
        return Err(Failure::agent(texts::WORKTREE_NEEDS_GIT));
    }
    Engine::start(double, args, log)?.run()
}

/// The first lines of every debug file, before anything is decided.
fn log_settings(double: &Double, log: &DebugLog) {
    log.debug("MDM settings load completed in 1ms");
    let candidates = [
        double.home.dir().join("settings.json"),
        double.cwd.join(".claude/settings.json"),
        double.cwd.join(".claude/settings.local.json"),
        Path::new("/etc/claude-code/managed-settings.json").to_owned(),
    ];
    for path in candidates.iter().filter(|path| !path.exists()) {
        log.debug(&format!(
            "Broken symlink or missing file encountered for settings.json at path: {}",
            path.display()
        ));
    }
}

fn login_required(log: &DebugLog) -> Failure {
    let mut text = texts::LOGIN_REQUIRED.to_owned();
    if log.path().is_some() {
        text.push('\n');
        text.push_str(texts::AUTH_STATE);
    }
    Failure::agent(text)
}

fn not_trusted(double: &Double) -> Failure {
    Failure::agent(texts::not_trusted(&double.cwd.to_string_lossy()))
}

/// The one-time question. The answer is remembered; no answer at all is not one.
fn ask_to_enable(double: &Double, config: Value) -> Result<bool, Failure> {
    print(texts::REMOTE_QUESTION);
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer).unwrap_or(0) == 0 {
        return Ok(false);
    }
    let mut fields = match config {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("remoteDialogSeen".into(), json!(true));
    let file = double.home.config_file();
    files::replace(file, format!("{:#}", Value::Object(fields)).as_bytes())
        .map_err(|e| Failure::agent(format!("Error: cannot write {}: {e}", file.display())))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The machine's name as a start reports it.
fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

/// A command of this program, for a child.
fn own_program() -> io::Result<Command> {
    Ok(Command::new(std::env::current_exe()?))
}
