//! `svc completions`: the script of a shell, and the values that complete a word.
//!
//! Scripts and matching come from `clap_complete`. The script calls `svc __complete`, which never
//! writes, never asks, and prints nothing at all when something is wrong or takes too long.

use crate::cli::arguments::{Arguments, Completions, Shell};
use crate::cli::call::{Call, block_on};
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::Output;
use crate::compose;
use clap::{Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;
use svc_app::{App, AppError};
use svc_shared::status::{LaunchMode, PermissionMode, SandboxMode, SpawnMode};

/// First argument of the call that scripts make.
pub(crate) const HIDDEN: &str = "__complete";

/// Longest wait for a proposal; starting the process takes up to 100 ms more.
const PATIENCE: Duration = Duration::from_millis(400);

/// Stands in the generated script for the call back.
const CALL: &str = "SVC-CALLS-BACK";

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
            Self::Powershell => &Powershell,
            Self::Elvish => &Elvish,
        }
    }
}

/// Prints the script.
pub(crate) fn script(call: &Call, wanted: &Completions) -> Result<Exit, End> {
    let completer = wanted.shell.completer();
    let mut script = Vec::new();
    completer
        .write_registration("_SVC_SHELL", "svc", "svc", CALL, &mut script)
        .map_err(End::of_machine)?;
    let call_back = format!("svc {HIDDEN} {}", completer.name());
    let script = String::from_utf8_lossy(&script)
        .replace(&format!("\"{CALL}\""), &call_back)
        .replace(CALL, &call_back);
    call.output.raw(&script)?;
    Ok(Exit::Done)
}

/// Answers a script: `svc __complete SHELL -- WORDS…`.
pub(crate) fn complete(arguments: Vec<OsString>, umask: u32) -> ExitCode {
    // Nothing may appear between the lines that are being edited.
    std::panic::set_hook(Box::new(|_| {}));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(proposals(arguments, umask)); // too late: nobody waits any more
    });
    if let Ok(Some(proposals)) = receiver.recv_timeout(PATIENCE) {
        let _ = std::io::stdout().lock().write_all(&proposals);
    }
    ExitCode::SUCCESS
}

fn proposals(mut arguments: Vec<OsString>, umask: u32) -> Option<Vec<u8>> {
    let end = arguments.iter().position(|argument| argument == "--")?;
    let words = arguments.split_off(end + 1);
    let shell = arguments.get(2)?.to_str()?;
    let shell = <Shell as clap::ValueEnum>::from_str(shell, false).ok()?;
    if words.is_empty() {
        return None;
    }
    let mut command =
        with_values(Arguments::command(), &Known { config: config_in(&words), umask });
    let here = std::env::current_dir().ok();
    let mut out = Vec::new();
    shell.completer().write_complete(&mut command, words, here.as_deref(), &mut out).ok()?;
    Some(out)
}

/// The configuration file that the unfinished command names.
fn config_in(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let word = word.to_str()?;
        if word == "-c" || word == "--config" {
            return words.next().map(PathBuf::from);
        }
        let joined = word.strip_prefix("--config=").or_else(|| word.strip_prefix("-c"));
        if let Some(path) = joined {
            return Some(PathBuf::from(path));
        }
    }
    None
}

/// What a look into the registry needs.
#[derive(Debug, Clone)]
struct Known {
    config: Option<PathBuf>,
    umask: u32,
}

/// The tree with what fits where, by the names of the arguments.
fn with_values(command: Command, known: &Known) -> Command {
    let known = known.clone();
    command
        .mut_args(|argument| match argument.get_id().as_str() {
            "project" => {
                let known = known.clone();
                argument.add(ArgValueCompleter::new(move |current: &OsStr| {
                    fitting(current, known.look(async |app| Ok(projects(app))))
                }))
            }
            "instance" => {
                let known = known.clone();
                argument.add(ArgValueCompleter::new(move |current: &OsStr| {
                    fitting(current, known.look(instances))
                }))
            }
            "mode" => argument.add(words(&[LaunchMode::Standard, LaunchMode::Pty])),
            "spawn_mode" => argument.add(words(SpawnMode::ALL)),
            "permission_mode" => argument.add(words(PermissionMode::ALL)),
            "sandbox" => argument.add(words(SandboxMode::ALL)),
            _ => argument,
        })
        .mut_subcommands(|command| with_values(command, &known))
}

fn words<T: std::fmt::Display>(all: &[T]) -> ArgValueCompleter {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    ArgValueCompleter::new(move |current: &OsStr| {
        fitting(current, all.iter().map(CompletionCandidate::new).collect())
    })
}

fn fitting(current: &OsStr, all: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let typed = current.as_encoded_bytes();
    all.into_iter()
        .filter(|candidate| candidate.get_value().as_encoded_bytes().starts_with(typed))
        .collect()
}

fn projects(app: &App) -> Vec<CompletionCandidate> {
    app.projects().names().into_iter().map(CompletionCandidate::new).collect()
}

/// Beginnings of ids, and projects that name one instance each.
async fn instances(app: &App) -> Result<Vec<CompletionCandidate>, AppError> {
    let all = app.instances().written().await?;
    let of = |project: &str| all.iter().filter(|one| one.project == project).count();
    let help = |text: String| Some(clap::builder::StyledStr::from(text));
    let ids = all.iter().map(|one| {
        CompletionCandidate::new(one.instance_id.short())
            .help(help(format!("{}, {}", one.project, one.status)))
    });
    let names = all.iter().filter(|one| of(&one.project) == 1).map(|one| {
        CompletionCandidate::new(&one.project).help(help(format!(
            "{}, {}",
            one.instance_id.short(),
            one.status
        )))
    });
    Ok(names.chain(ids).collect())
}

impl Known {
    /// What the registry says; nothing where it says nothing.
    fn look(
        &self,
        work: impl AsyncFnOnce(&App) -> Result<Vec<CompletionCandidate>, AppError>,
    ) -> Vec<CompletionCandidate> {
        let call = Call {
            config: self.config.clone(),
            environment: std::env::vars_os().collect(),
            output: Output::new(true),
            umask: self.umask,
        };
        let found = || {
            let loaded = crate::cli::config::quiet(&call)?;
            let around = call.surroundings(&loaded);
            block_on(async {
                let composed = compose::reader(&around).await.ok();
                match composed {
                    Some(composed) => Ok(work(&composed.app).await.ok()),
                    None => Ok(None),
                }
            })
            .ok()
            .flatten()
        };
        found().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_an_unfinished_command_is_found() {
        let config = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            config_in(&words)
        };
        for line in ["svc -c x.yml stop", "svc stop --config x.yml", "svc --config=x.yml stop a"] {
            assert_eq!(config(line), Some(PathBuf::from("x.yml")), "{line}");
        }
        assert_eq!(config("svc stop a"), None);
        assert_eq!(config("svc stop -c"), None);
    }

    #[test]
    fn every_argument_that_names_something_has_values() {
        let known = Known { config: None, umask: 0o022 };
        let mut command = with_values(Arguments::command(), &known);
        command.build();
        let has = |command: &str, argument: &str, tree: &Command| {
            let command = tree.find_subcommand(command).unwrap();
            let found = command.get_arguments().find(|one| one.get_id() == argument).unwrap();
            found.get::<ArgValueCompleter>().is_some()
        };
        for (name, argument) in [
            ("start", "project"),
            ("start", "permission_mode"),
            ("stop", "instance"),
            ("resume", "instance"),
            ("forget", "instance"),
            ("logs", "instance"),
            ("screen", "instance"),
            ("changes", "instance"),
            ("open", "instance"),
        ] {
            assert!(has(name, argument, &command), "{name} {argument}");
        }
    }
}
