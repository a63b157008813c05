//! `svc doctor`: runs every check, prints what was found and what to do.

mod port;
mod probe;

use crate::cli::call::{Call, block_on};
use crate::cli::config::{found, shown};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::output::{Cell, Tone};
use crate::compose;
use crate::logging::{self, Shape};
use crate::signals::{Asked, Signals};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use svc_app::doctor::{self, Repairs};
use svc_config::{Config, ConfigErrors, FindError, Loaded, LogLevel, load};
use svc_shared::internal::Check;
use svc_shared::status::CheckStatus;

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Ask the running service as its clients do, through its public address or URL.
    #[arg(long, value_name = "URL", num_args = 0..=1, conflicts_with = "only")]
    pub(crate) probe: Option<Option<String>>,
    /// Only these checks.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) only: Vec<String>,
    /// Close configuration file and state directory to others, then check.
    #[arg(long, conflicts_with = "probe")]
    pub(crate) fix: bool,
    /// Warnings count: exit 3.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Names of all checks, in the order they are printed.
const NAMES: [&str; 27] = [
    "config",
    "config-keys",
    "config-mode",
    "env",
    "claude",
    "claude-login",
    "projects_root",
    "state_dir",
    "git",
    "auth",
    "workspace-trust",
    "node-toolchain",
    "extra:pty",
    "extra:notify",
    "binary:hosted",
    "binary:hosted:shadow",
    "tls",
    "disk",
    "db",
    "strays",
    "keepers",
    "restart",
    "duplicate-sessions",
    "systemd",
    "version",
    "port",
    "server",
];

/// Examines configuration, agent, directories and records.
pub(crate) fn run(call: &Call, options: &Doctor) -> Result<Exit, End> {
    if let Some(unknown) = options.only.iter().find(|name| !NAMES.contains(&name.as_str())) {
        let all = NAMES.join(", ");
        let line = format!("there is no check `{unknown}`; name some of: {all}");
        return Err(Failure::new(Exit::Refused, "invalid_value", line).into());
    }
    let examine = || {
        let mut found = examined(call, options.probe.as_ref())?;
        if !options.only.is_empty() {
            found.checks.retain(|check| options.only.contains(&check.name));
        }
        Ok::<_, End>(found)
    };
    let mut found = examine()?;
    if options.fix && fix(call, &found) {
        found = examine()?;
    }
    let report = doctor::report(found.checks, found.path.as_deref(), compose::now());
    let count = |status| report.checks.iter().filter(|check| check.status.is(&status)).count();
    let (failures, warnings) = (count(CheckStatus::Fail), count(CheckStatus::Warn));
    if options.json {
        call.output.json(&report)?;
    } else {
        for check in &report.checks {
            call.output.row(&line(check))?;
        }
        let sum = match (failures, warnings) {
            (0, 0) => "svc: all checks passed".to_owned(),
            (0, many) => format!("svc: {many} warning(s)"),
            _ => "svc: FAILURES above".to_owned(),
        };
        call.output.line(&sum)?;
    }
    Ok(match (failures, warnings) {
        (0, 1..) if options.strict => Exit::Blocked,
        (0, _) => Exit::Done,
        _ => Exit::Failed,
    })
}

/// Two blanks, verdict, name, what was found, and behind an arrow what to do.
fn line(check: &Check) -> [Cell; 2] {
    let (word, tone) = match check.status.known() {
        Some(CheckStatus::Ok) => ("PASS", Tone::Good),
        Some(CheckStatus::Warn) => ("WARN", Tone::Attention),
        Some(CheckStatus::Fail) | None => ("FAIL", Tone::Bad),
    };
    let hint = check.hint.as_ref().map(|hint| format!(" -> {hint}")).unwrap_or_default();
    let text = format!("{:<18}  {}{hint}", check.name, check.detail);
    [Cell::toned(word, tone), Cell::from(text)]
}

/// Everything that the doctor finds, and the configuration where it is usable.
pub(crate) fn whole(call: &Call) -> Result<(Option<Loaded>, svc_shared::internal::Doctor), End> {
    let found = examined(call, None)?;
    let report = doctor::report(found.checks, found.path.as_deref(), compose::now());
    let loaded = match crate::cli::config::found(call)? {
        Ok(found) => load(&found, &call.environment).ok(),
        Err(_) => None,
    };
    Ok((loaded, report))
}

/// What was examined, and what was found.
struct Examined {
    /// The configuration file.
    path: Option<PathBuf>,
    /// Its content, where it is usable.
    config: Option<Arc<Config>>,
    checks: Vec<Check>,
}

impl Examined {
    fn unusable(path: Option<PathBuf>, checks: Vec<Check>) -> Self {
        Self { path, config: None, checks }
    }

    fn is_wrong(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name && !check.status.is(&CheckStatus::Ok))
    }
}

/// Does what is safe to do about what was found, and tells of it on standard error.
///
/// Returns whether anything was changed.
fn fix(call: &Call, found: &Examined) -> bool {
    let mut repairs = Vec::new();
    if found.is_wrong("config-mode")
        && let Some(file) = &found.path
    {
        repairs.push(doctor::close_config(file));
    }
    if found.is_wrong("state_dir")
        && let Some(config) = found.config.as_ref().filter(|config| config.state_dir.is_dir())
    {
        repairs.push(doctor::close_state_dir(config));
    }
    for Repairs { done, failed } in &repairs {
        for line in done {
            call.output.note(&format!("fixed: {line}"));
        }
        for line in failed {
            call.output.note(&format!("not fixed: {line}"));
        }
    }
    repairs.iter().any(|repairs| !repairs.done.is_empty())
}

fn examined(call: &Call, probe: Option<&Option<String>>) -> Result<Examined, End> {
    let found = match found(call)? {
        Ok(found) => found,
        Err(FindError::NotFound { searched }) => {
            let searched: Vec<String> = searched.iter().map(shown).collect();
            return Ok(Examined::unusable(None, doctor::not_found(&searched)));
        }
        Err(FindError::Unusable(errors)) => {
            return Ok(Examined::unusable(None, doctor::of_unusable(&errors)));
        }
    };
    let path = Some(found.path.clone());
    let read = load(&found, &call.environment);
    let loaded = match &read {
        Ok(loaded) => loaded,
        // It may be examined, although it must not be served.
        Err(ConfigErrors { exposed: Some(loaded), .. }) => loaded,
        Err(errors) => return Ok(Examined::unusable(path, doctor::of_unusable(errors))),
    };
    logging::start(Shape::Remark, LogLevel::Error);
    crate::safety::report_panics();
    let checks = match probe {
        Some(url) => block_on(probed(call, loaded, url.as_deref())),
        None => block_on(asked(call, loaded, read.as_ref())),
    };
    Ok(Examined { path, config: Some(call.surroundings(loaded).config), checks: checks? })
}

/// The checks of `--probe`: what the start judges, then what clients see.
async fn probed(call: &Call, loaded: &Loaded, url: Option<&str>) -> Result<Vec<Check>, End> {
    let mut signals = Signals::of_command().map_err(End::of_machine)?;
    let around = call.surroundings(loaded);
    let work = async {
        let mut checks = doctor::posture(&around.config, compose::now()).await;
        checks.extend(probe::checks(&around, url).await);
        checks
    };
    tokio::select! {
        checks = work => Ok(checks),
        asked = signals.asked() => Err(End::Signal(match asked {
            Asked::Interrupt => Exit::Interrupted,
            Asked::Terminate => Exit::Terminated,
        })),
    }
}

async fn asked(
    call: &Call,
    loaded: &Loaded,
    read: Result<&Loaded, &ConfigErrors>,
) -> Result<Vec<Check>, End> {
    let mut signals = Signals::of_command().map_err(End::of_machine)?;
    let around = call.surroundings(loaded);
    let work = async {
        let (composed, records) = compose::examiner(&around).await.map_err(Failure::from)?;
        let (mut checks, port) =
            tokio::join!(composed.app.doctor().checks(read, &records), port::checks(&around));
        checks.extend(port);
        composed.app.close().await;
        Ok(checks)
    };
    // Nothing that was begun needs an end: what is dropped here only looked.
    tokio::select! {
        checks = work => checks,
        asked = signals.asked() => Err(End::Signal(match asked {
            Asked::Interrupt => Exit::Interrupted,
            Asked::Terminate => Exit::Terminated,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_check_as_it_is_called() {
        use clap::CommandFactory as _;
        let mut cli = crate::cli::arguments::Arguments::command();
        let help = cli.find_subcommand_mut("doctor").unwrap().render_long_help().to_string();
        let (_, checks) = help.split_once("Checks: ").unwrap();
        let (checks, _) = checks.split_once('.').unwrap();
        let named: Vec<&str> = checks.split(',').map(str::trim).collect();
        assert_eq!(named, NAMES);
    }

    /// The hints of all checks, with the module that gives each.
    fn sources() -> Vec<(String, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<std::path::PathBuf> = std::fs::read_dir(root.join("app/src/ops/doctor"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.push(root.join("app/src/ops/accounts.rs"));
        files.push(root.join("domain/src/posture.rs"));
        let code = |text: &str| -> String {
            let code = text.split("#[cfg(test)]").next().unwrap();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            lines.flat_map(|line| [line.trim(), " "]).collect::<String>().replace("\\ ", "")
        };
        let read = |file: &std::path::PathBuf| code(&std::fs::read_to_string(file).unwrap());
        files.iter().map(|file| (file.display().to_string(), read(file))).collect()
    }

    #[test]
    fn every_command_in_a_hint_is_one_and_can_be_copied() {
        use clap::CommandFactory as _;
        let verbs: Vec<String> = crate::cli::arguments::Arguments::command()
            .get_subcommands()
            .map(|verb| verb.get_name().to_owned())
            .collect();
        let mut seen = 0;
        for (file, text) in sources() {
            for (at, _) in text.match_indices("svc ") {
                let is_copied = text[..at].ends_with('`');
                let rest = text[at..].split(['`', '"', ';', ',']).next().unwrap();
                let words: Vec<&str> = rest.split_whitespace().collect();
                let is_verb =
                    words.get(1).is_some_and(|word| verbs.iter().any(|verb| verb == word));
                // A name that the reader puts in makes a sentence of it.
                if words.contains(&"PROJECT") {
                    continue;
                }
                assert_eq!(is_copied, is_verb, "{file}: {rest}");
                if is_copied {
                    let filled = rest.replace("{id}", "3f2a90c1").replace("{}", "4242");
                    let parsed = crate::cli::arguments::Arguments::command()
                        .try_get_matches_from(filled.split_whitespace());
                    assert!(parsed.is_ok(), "{file}: {rest}: {parsed:?}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 15, "{seen}");
    }

    #[test]
    fn every_key_in_a_hint_is_a_key() {
        let is_letter =
            |letter: char| letter.is_ascii_lowercase() || letter == '_' || letter == '.';
        let mut seen = 0;
        for (file, text) in sources() {
            for literal in text.split('"').skip(1).step_by(2) {
                for word in literal.split(|letter: char| !is_letter(letter)) {
                    let word = word.trim_matches('.');
                    let Some((section, _)) = word.split_once('.') else { continue };
                    if literal.contains('/') || ["svc", "state"].contains(&section) {
                        continue; // files
                    }
                    let is_key = svc_config::table::leaves().any(|leaf| leaf.key == word);
                    assert!(is_key, "{file}: {word} in {literal:?}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 15, "{seen}");
    }

    #[test]
    fn a_line_says_verdict_name_finding_and_remedy() {
        let check = doctor::failed("git", "not found", "install it");
        let [verdict, text] = line(&check);
        assert_eq!(verdict.text(), "FAIL");
        assert_eq!(text.text(), "git                 not found -> install it");
    }
}
