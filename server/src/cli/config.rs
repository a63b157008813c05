//! `svc config …`, and the configuration of every other command.

use crate::cli::call::Call;
use crate::cli::config_write::{self, Get, Reconcile, Set};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::options::Listing;
use crate::cli::output::Cell;
use crate::cli::output::Output;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use svc_config::{
    Candidate, ConfigErrors, FindError, Found, Loaded, Step, View, Warning, WarningKind, find,
    load, show,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Validate the configuration and list its warnings.
    #[command(after_help = "\
Exit 0 when it is valid, 2 when not, 3 with --strict and warnings.

Examples:
  svc config check -c ./svc.yml
  svc config check --strict")]
    Check(Check),
    /// Print every key, its value and where it comes from; secrets are masked.
    #[command(after_help = "Examples:\n  svc config show\n  svc config show --effective --json")]
    Show(Show),
    /// Print the value of one key; a secret is masked.
    #[command(after_help = "Examples:\n  svc config get claude.launch_mode")]
    Get(Get),
    /// Write values to the file; comments and order stay.
    #[command(after_help = "\
The whole configuration is checked first; nothing is written when it would not be valid.
A running service reads the file at once; the answer names what waits for its next start.

Examples:
  svc config set claude.launch_mode pty
  svc config set restart.policy on-crash restart.max_crashes 3
  svc hash-password | svc config set auth.password_hash -
  svc config set projects.api.restart always")]
    Set(Set),
    /// Replace old names of keys in the file, one question each; no answer is a no.
    #[command(
        after_help = "Examples:\n  svc config reconcile --dry-run\n  svc config reconcile --yes"
    )]
    Reconcile(Reconcile),
    /// Print the file in use and the search list.
    #[command(after_help = "Examples:\n  svc config path")]
    Path(Listing),
    /// Print the JSON Schema of the configuration file, for editors.
    #[command(after_help = "Examples:\n  svc config schema > svc.schema.json")]
    Schema(Listing),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Warnings count: exit 3.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Values as the service uses them, derived ones filled in.
    #[arg(long)]
    pub(crate) effective: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which warnings a command shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownWarnings {
    /// All of them, because the command depends on the whole configuration.
    All,
    /// Warnings of old names only.
    ///
    /// They appear at every load. The others are for `run` and `config check`.
    Deprecated,
}

/// Runs one of the configuration commands.
pub(crate) fn run(call: &Call, command: &Config) -> Result<Exit, End> {
    match command {
        Config::Check(check) => run_check(call, check),
        Config::Show(show) => run_show(call, show),
        Config::Get(get) => config_write::get(call, get),
        Config::Set(set) => config_write::set(call, set),
        Config::Reconcile(wanted) => config_write::reconcile(call, wanted),
        Config::Path(listing) => run_path(call, listing),
        Config::Schema(_) => {
            call.output.json(&svc_config::json_schema())?;
            Ok(Exit::Done)
        }
    }
}

/// Loads the configuration of this call and shows its warnings on standard error.
pub(crate) fn loaded(call: &Call, shown: ShownWarnings) -> Result<Loaded, End> {
    let loaded = unshown(call)?;
    show_warnings(call, &loaded, shown);
    Ok(loaded)
}

/// Loads the configuration of this call.
/// Its warnings wait for the log that it asks for.
pub(crate) fn unshown(call: &Call) -> Result<Loaded, End> {
    Ok(load(&needed(call)?, &call.environment)?)
}

/// Shows the warnings of a configuration on standard error.
pub(crate) fn show_warnings(call: &Call, loaded: &Loaded, shown: ShownWarnings) {
    for warning in &loaded.warnings {
        if shown == ShownWarnings::All || warning.kind == WarningKind::Deprecated {
            call.output.note(&format!("warning: {warning}"));
        }
    }
}

/// The configuration of this call without any message; none when it cannot be used.
pub(crate) fn quiet(call: &Call) -> Option<Loaded> {
    load(&needed(call).ok()?, &call.environment).ok()
}

/// Finds the configuration file of this call.
///
/// The inner error says that there is no file, or that it may not be examined.
pub(crate) fn found(call: &Call) -> Result<Result<Found, FindError>, End> {
    let here = std::env::current_dir().or_else(|error| match &call.config {
        // An absolute path needs no working directory.
        Some(path) if path.is_absolute() => Ok(PathBuf::from("/")),
        Some(_) | None => Err(Failure::new(
            Exit::Refused,
            "config",
            format!(
                "the working directory cannot be read ({error}), so no configuration can be \
                 looked for; change to another directory, or name the file with an absolute -c"
            ),
        )),
    })?;
    Ok(find(call.config.as_deref(), &call.environment, &here))
}

pub(crate) fn needed(call: &Call) -> Result<Found, End> {
    found(call)?.map_err(|error| match error {
        FindError::NotFound { searched } => not_found(&searched).into(),
        FindError::Unusable(errors) => End::from(errors),
    })
}

fn not_found(searched: &[Candidate]) -> Failure {
    let mut failure =
        Failure::new(Exit::Refused, "config_missing", "no configuration found; searched:");
    for candidate in searched {
        failure = failure.line(format!("  {}", shown(candidate)));
    }
    failure.line(
        "write one of these (one line does: `projects_root: DIR`), name one with -c, let `svc run` \
         ask for what is needed, or try `svc demo`, which needs none",
    )
}

/// A path of the search list, and why it is on the list.
pub(crate) fn shown(candidate: &Candidate) -> String {
    format!("{} ({})", candidate.path.display(), describe(candidate.step))
}

fn describe(step: Step) -> &'static str {
    match step {
        Step::Argument => "-c",
        Step::Variable => "SVC_CONFIG",
        Step::WorkingDirectory => "working directory",
        Step::Home => "SVC_HOME",
        Step::User => "user",
        Step::System => "system",
    }
}

fn run_path(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let found = needed(call)?;
    if listing.json {
        let searched: Vec<Value> = found
            .searched
            .iter()
            .map(|one| json!({ "path": one.path.to_string_lossy(), "step": describe(one.step) }))
            .collect();
        let document = json!({
            "path": found.path.to_string_lossy(),
            "step": describe(found.step),
            "searched": searched,
        });
        call.output.json(&document)?;
        return Ok(Exit::Done);
    }
    // The path alone is the first line, for scripts.
    call.output.line(&found.path.to_string_lossy())?;
    call.output.line("searched:")?;
    for candidate in &found.searched {
        let mark = if candidate.path == found.path { " <- in use" } else { "" };
        call.output.line(&format!("  {}{mark}", shown(candidate)))?;
    }
    Ok(Exit::Done)
}

fn run_show(call: &Call, options: &Show) -> Result<Exit, End> {
    let loaded = loaded(call, ShownWarnings::Deprecated)?;
    let view = if options.effective { View::Effective } else { View::Configured };
    let rows = show(&loaded, view);
    if options.json {
        let keys: Map<String, Value> = rows
            .into_iter()
            .map(|row| {
                let source = row.source.to_string();
                (row.key, json!({ "value": row.value, "source": source }))
            })
            .collect();
        let path = loaded.path.map(|path| path.to_string_lossy().into_owned());
        call.output.json(&json!({ "path": path, "keys": keys }))?;
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 3]> = rows
        .into_iter()
        .map(|row| [row.key.as_str().into(), row.text().into(), row.source.to_string().into()])
        .collect();
    call.output.table(["KEY", "VALUE", "SOURCE"], &rows)?;
    Ok(Exit::Done)
}

fn run_check(call: &Call, check: &Check) -> Result<Exit, End> {
    let found = needed(call)?;
    let path = found.path.to_string_lossy().into_owned();
    let loaded = load(&found, &call.environment).map_err(|errors| invalid(&path, errors))?;
    let warnings = &loaded.warnings;
    if check.strict && !warnings.is_empty() {
        let count = counted(warnings.len());
        let mut failure = Failure::new(
            Exit::Blocked,
            "config_warnings",
            format!("{path} is valid but has {count}, and --strict does not accept any"),
        )
        .beside("path", path.into())
        .beside("warnings", warnings.iter().map(warning_json).collect());
        failure.lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        return Err(failure.into());
    }
    if check.json {
        let warnings: Vec<Value> = warnings.iter().map(warning_json).collect();
        call.output.json(&json!({ "ok": true, "path": path, "warnings": warnings }))?;
    } else {
        list_warnings(call.output, warnings)?;
        call.output.line(&format!("{path} is valid, {}", counted(warnings.len())))?;
    }
    Ok(Exit::Done)
}

fn list_warnings(output: Output, warnings: &[Warning]) -> Result<(), End> {
    for warning in warnings {
        output.line(&format!("warning: {warning}"))?;
    }
    Ok(())
}

fn counted(warnings: usize) -> String {
    match warnings {
        0 => "no warnings".to_owned(),
        1 => "1 warning".to_owned(),
        many => format!("{many} warnings"),
    }
}

fn invalid(path: &str, errors: ConfigErrors) -> Failure {
    let problems: Value = errors
        .problems
        .iter()
        .map(|problem| {
            json!({
                "place": problem.location.to_string(),
                "key": problem.key,
                "reason": problem.reason,
            })
        })
        .collect();
    let warnings: Value = errors.warnings.iter().map(warning_json).collect();
    let remarks: Vec<String> =
        errors.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    let mut failure = Failure::from(errors)
        .beside("path", path.into())
        .beside("problems", problems)
        .beside("warnings", warnings);
    failure.lines.extend(remarks);
    failure
}

fn warning_json(warning: &Warning) -> Value {
    json!({
        "place": warning.location.to_string(),
        "keys": warning.keys,
        "message": warning.message,
    })
}
