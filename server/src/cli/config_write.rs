//! `svc config get`, `svc config set` and `svc config reconcile`.

use crate::cli::call::{Call, block_on};
use crate::cli::config::{ShownWarnings, loaded, needed};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::compose::now;
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufRead as _, IsTerminal as _, Read as _};
use svc_app::{ConfigFile, ConfigSurface, ConfigWritten, FileChange, Reloaded, ask_reload};
use svc_config::schema::Leaf;
use svc_config::{Found, OldName, Row, View, Wanted, is_named_in, old_names, show};

/// Longest value that is read from standard input.
const LONGEST: u64 = 64 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The dotted key, as `svc config show` lists it.
    pub(crate) key: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Keys and values in turn; `-` as a value is read from standard input.
    #[arg(value_names = ["KEY", "VALUE"], num_args = 2.., required = true,
        allow_negative_numbers = true)]
    pub(crate) pairs: Vec<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Reconcile {
    /// Say what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Accept every proposal.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `svc config get`.
pub(crate) fn get(call: &Call, options: &Get) -> Result<Exit, End> {
    let loaded = loaded(call, ShownWarnings::Deprecated)?;
    let rows = show(&loaded, View::Configured);
    let Some(Row { value, source, .. }) = rows.iter().find_map(|row| within(row, &options.key))
    else {
        let line = match Wanted::from_text(&options.key, "") {
            Err(reason) if reason.contains("is not a known key") => reason,
            Ok(_) | Err(_) => format!("{} is not set in this configuration", options.key),
        };
        return Err(Failure::new(Exit::Refused, "unknown_key", line).into());
    };
    if options.json {
        let source = source.to_string();
        call.output.json(&json!({ "key": options.key, "value": value, "source": source }))?;
    } else {
        let row = Row { key: options.key.clone(), value, source };
        call.output.line(&row.text())?;
    }
    Ok(Exit::Done)
}

/// The row itself, or one name of its map.
fn within(row: &Row, key: &str) -> Option<Row> {
    if row.key == key {
        return Some(row.clone());
    }
    let name = key.strip_prefix(&row.key)?.strip_prefix('.')?;
    let value = row.value.as_object()?.get(name)?.clone();
    Some(Row { key: key.to_owned(), value, source: row.source.clone() })
}

/// `svc config set`.
pub(crate) fn set(call: &Call, options: &Set) -> Result<Exit, End> {
    let usage = |line: String| End::from(Failure::new(Exit::Refused, "usage", line));
    let (pairs, []) = options.pairs.as_chunks::<2>() else {
        return Err(usage("give a value for every key: svc config set KEY VALUE …".to_owned()));
    };
    let piped = pairs.iter().filter(|[_, value]| value == "-").count();
    let mut wanted = Vec::with_capacity(pairs.len());
    for [key, value] in pairs {
        let is_piped = value == "-";
        let text = if is_piped { from_input(key, piped == 1)? } else { value.clone() };
        let one = Wanted::from_text(key, &text).map_err(usage)?;
        if one.leaf().secret && !is_piped {
            return Err(usage(format!(
                "{key} is a secret, and other users of this machine can read the arguments of a \
                 command; pipe it in: svc config set {key} -"
            )));
        }
        wanted.push(one);
    }
    let found = needed(call)?;
    let asked: Vec<(String, &'static Leaf)> =
        wanted.iter().map(|one| (one.key(), one.leaf())).collect();
    let written = write(call, &found, FileChange::Set(wanted), ConfigSurface::Config)?;
    let told = told(call, &found, &written);
    if options.json {
        call.output.json(&document(&found, &written, told.as_ref()))?;
        return Ok(Exit::Done);
    }
    for (key, _) in &asked {
        let is_new = written.changed.contains(key);
        call.output.line(&format!("{key}: {}", if is_new { "set" } else { "unchanged" }))?;
    }
    tell(call, &written, told.as_ref());
    Ok(Exit::Done)
}

/// Asks a running service to read what was written.
fn told(call: &Call, found: &Found, written: &ConfigWritten) -> Option<Reloaded> {
    if written.changed.is_empty() {
        return None;
    }
    let loaded = svc_config::load(found, &call.environment).ok()?;
    ask_reload(&loaded.config.state_dir, &written.changed)
}

/// The changed keys that wait for the next start of the service that answered.
fn waiting<'w>(written: &'w ConfigWritten, told: Option<&Reloaded>) -> Vec<&'w str> {
    let waits = |key: &&String| match told {
        Some(Reloaded::Read { at_restart, .. }) => is_named_in(at_restart, key),
        Some(Reloaded::Refused(_)) => true,
        None => false,
    };
    written.changed.iter().filter(waits).map(String::as_str).collect()
}

fn document(found: &Found, written: &ConfigWritten, told: Option<&Reloaded>) -> Value {
    json!({
        "path": found.path.to_string_lossy(),
        "hash": written.hash,
        "changed": written.changed,
        "overridden": written.overridden,
        "restart_required": !waiting(written, told).is_empty(),
    })
}

/// What else somebody must know after a write.
fn tell(call: &Call, written: &ConfigWritten, told: Option<&Reloaded>) {
    for (key, variable) in &written.overridden {
        call.output.note(&format!(
            "warning: {key} is written, but {variable} decides it; unset the variable"
        ));
    }
    match told {
        Some(Reloaded::Read { .. }) => match &waiting(written, told)[..] {
            [] => call.output.note("the running service uses this now"),
            keys => call.output.note(&format!(
                "the running service uses {} after its next start: `svc restart`",
                keys.join(", ")
            )),
        },
        Some(Reloaded::Refused(why)) => call.output.note(&format!(
            "warning: the running service does not use this, because its configuration cannot be \
             used: {why}"
        )),
        // No service answers: the next one reads the file.
        None => {}
    }
}

fn write(
    call: &Call,
    found: &Found,
    change: FileChange,
    surface: ConfigSurface,
) -> Result<ConfigWritten, End> {
    let file = ConfigFile::new(found.clone(), call.environment.clone());
    block_on(async { Ok(file.write_as_command(change, surface, now()).await?) })
}

/// All of standard input.
///
/// One line of it where several values are read from there, or where somebody types it.
fn from_input(key: &str, is_only: bool) -> Result<String, End> {
    let refused = |line: String| Failure::new(Exit::Refused, "usage", line);
    let mut bytes = Vec::new();
    let input = std::io::stdin();
    let is_typed = input.is_terminal();
    let mut input = input.lock().take(LONGEST + 1);
    match is_only && !is_typed {
        true => input.read_to_end(&mut bytes),
        false => input.read_until(b'\n', &mut bytes),
    }
    .map_err(End::of_machine)?;
    if input.limit() == 0 {
        return Err(refused(format!(
            "the value of {key} on standard input is longer than {LONGEST} bytes; send less"
        ))
        .into());
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| refused(format!("the value of {key} on standard input is not UTF-8")))?;
    let value = text.trim_end_matches(['\r', '\n']);
    if value.is_empty() {
        return Err(refused(format!("standard input has no value for {key}")).into());
    }
    Ok(value.to_owned())
}

/// `svc config reconcile`.
pub(crate) fn reconcile(call: &Call, options: &Reconcile) -> Result<Exit, End> {
    let found = needed(call)?;
    let text = std::fs::read_to_string(&found.path).map_err(End::of_machine)?;
    let names = old_names(&text)
        .map_err(|error| Failure::new(Exit::Refused, "config", error.to_string()))?;
    if names.is_empty() {
        call.output.note("the configuration uses no old names");
        return Ok(Exit::Done);
    }
    let mut accepted = Vec::new();
    for name in names {
        call.output.note(&question(&name));
        if options.yes || options.dry_run {
            accepted.push(name);
            continue;
        }
        match answer(&name)? {
            Answer::Accept(name) => accepted.push(name),
            Answer::Skip => call.output.note(&format!("{} is kept", name.key)),
            Answer::End => {
                return Err(
                    Failure::new(Exit::Failed, "aborted", "aborted; nothing written").into()
                );
            }
        }
    }
    if options.dry_run {
        call.output.note("nothing was written (--dry-run)");
        return Ok(Exit::Done);
    }
    if accepted.is_empty() {
        return Ok(Exit::Done);
    }
    let change = FileChange::Reconcile(accepted);
    let written =
        write(call, &found, change, ConfigSurface::Reconcile).map_err(|end| match end {
            // A rejected rewrite is a failure of the work, not of the request.
            End::Failure(mut failure) => {
                failure.exit = Exit::Failed;
                End::Failure(failure)
            }
            other => other,
        })?;
    for key in &written.changed {
        call.output.line(&format!("{key}: reconciled"))?;
    }
    tell(call, &written, told(call, &found, &written).as_ref());
    Ok(Exit::Done)
}

fn question(name: &OldName) -> String {
    let OldName { key, value, reason, proposal, choices } = name;
    let proposed = match proposal {
        Some((next, text)) => format!("write {next}: {text} instead"),
        None => "remove it".to_owned(),
    };
    let mut question = format!("{key}: {value} {reason}; {proposed}? [Y/n");
    if proposal.is_some() && !choices.is_empty() {
        question.push_str(&format!(", or one of {}", choices.join(", ")));
    }
    question.push(']');
    question
}

/// What somebody answers to a proposal.
enum Answer {
    Accept(OldName),
    Skip,
    /// Nobody answers, which is a no to everything.
    End,
}

fn answer(name: &OldName) -> Result<Answer, End> {
    let mut line = String::new();
    let mut input = std::io::stdin().lock().take(LONGEST);
    if input.read_line(&mut line).map_err(End::of_machine)? == 0 {
        return Ok(Answer::End);
    }
    let said = line.trim();
    if said.is_empty() || said.eq_ignore_ascii_case("y") || said.eq_ignore_ascii_case("yes") {
        return Ok(Answer::Accept(name.clone()));
    }
    let mut name = name.clone();
    if let Some((_, text)) = &mut name.proposal
        && name.choices.contains(&said)
    {
        *text = said.to_owned();
        return Ok(Answer::Accept(name));
    }
    Ok(Answer::Skip)
}
