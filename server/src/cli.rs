//! The command line: reads the arguments and runs one command.
//!
//! The end of the command becomes output and an exit code.

mod approvals;
mod arguments;
mod backup;
mod call;
mod can_start;
mod changes;
mod completions;
mod config;
mod config_write;
mod confirm;
mod credentials;
mod demo;
mod deps;
mod devices;
mod doctor;
mod exit_code;
mod failure;
mod install_service;
mod jobs;
mod keepers;
mod launches;
mod logs;
mod manual;
mod mcp;
mod migrate;
mod notifications;
mod open;
mod options;
mod output;
mod projects;
mod push;
mod read;
mod reap_environments;
mod report;
mod restart;
mod restore;
mod run;
mod screen;
mod setup;
mod stranded;
mod strays;
mod support;
mod upgrade;
mod usage;
mod webhooks;
mod work;
mod worktrees;
mod write;

use arguments::{Arguments, Command};
use call::Call;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use exit_code::Exit;
use failure::{End, Failure};
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;
use svc_app::upgrade::CAN_START;

/// Runs the command that the arguments of this process ask for.
///
/// `umask` is the one the process was started with.
#[must_use]
pub fn main(umask: u32) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == completions::HIDDEN) {
        return completions::complete(arguments, umask);
    }
    if arguments.get(1).is_some_and(|first| first == CAN_START) {
        let config = can_start::config_of(&arguments).map(Into::into);
        let environment = std::env::vars_os().collect();
        let output = Output::new(true);
        let call = Call { config, environment, output, umask };
        return ExitCode::from(exit(can_start::run(&call), true, output).code());
    }
    let output = Output::new(arguments.iter().any(|argument| argument == "--no-color"));
    let (end, json) = match parse(&arguments) {
        Err(error) => {
            let json = arguments.iter().any(|argument| argument == "--json");
            (not_understood(&error, output), json)
        }
        Ok(Arguments { config, no_color: _, command }) => {
            let command = command.unwrap_or(Command::Run);
            let json = command.wants_json();
            let environment = std::env::vars_os().collect();
            let call = Call { config, environment, output, umask };
            (dispatch(&call, &command), json)
        }
    };
    ExitCode::from(exit(end, json, output).code())
}

fn parse(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    // Colour is ours to decide: by `--no-color` and by where the text goes.
    let matches = Arguments::command().try_get_matches_from(arguments)?;
    Arguments::from_arg_matches(&matches)
}

/// Help and version are results; everything else is a usage error.
fn not_understood(error: &clap::Error, output: Output) -> Result<Exit, End> {
    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output.help(&text)?;
            Ok(Exit::Done)
        }
        _ => {
            let text = text.to_string();
            let mut lines =
                text.lines().filter(|line| !line.trim().is_empty()).map(ToOwned::to_owned);
            let first = lines.next().unwrap_or_else(|| "the arguments are not understood".into());
            let mut failure = Failure::new(Exit::Refused, "usage", first);
            failure.lines.extend(lines);
            Err(failure.into())
        }
    }
}

fn dispatch(call: &Call, command: &Command) -> Result<Exit, End> {
    match command {
        Command::Run => run::run(call),
        Command::Demo(demo) => demo::run(call, demo),
        Command::Config(command) => config::run(call, command),
        Command::Doctor(options) => doctor::run(call, options),
        Command::ApiToken(verb) => credentials::api_token(call, verb),
        Command::Devices(verb) => devices::devices(call, verb),
        Command::Access(listing) => devices::access(call, listing),
        Command::HashPassword(options) => credentials::hash_password(call, options),
        Command::HashToken(options) => {
            credentials::hash_token(call, options, "auth.api_token_hash", "SVC_AUTH_API_TOKEN_HASH")
        }
        Command::HashMetricsToken(options) => credentials::hash_token(
            call,
            options,
            "observability.metrics_token_hash",
            "SVC_OBSERVABILITY_METRICS_TOKEN_HASH",
        ),
        Command::Projects(listing) => read::projects(call, listing),
        Command::Create(wanted) => projects::create(call, wanted),
        Command::Clone(wanted) => projects::clone(call, wanted),
        Command::Status(listing) => read::status(call, listing),
        Command::Sessions(listing) => read::sessions(call, listing),
        Command::Launches(options) => launches::launches(call, options),
        Command::Stranded(options) => stranded::stranded(call, options),
        Command::ReapEnvironments(options) => reap_environments::reap_environments(call, options),
        Command::Strays(options) => strays::strays(call, options),
        Command::Keepers(options) => keepers::keepers(call, options),
        Command::Jobs(command) => jobs::run(call, command),
        Command::Approvals(command) => approvals::run(call, command),
        Command::Message(wanted) => approvals::message(call, wanted),
        Command::Start(start) => write::start(call, start),
        Command::Stop(named) => write::stop(call, named),
        Command::Resume(resume) => write::resume(call, resume),
        Command::RestoreSessions(wanted) => restore::restore_sessions(call, wanted),
        Command::RestartPolicy(wanted) => write::restart_policy(call, wanted),
        Command::OnLimit(wanted) => write::on_limit(call, wanted),
        Command::Heal(named) => write::heal(call, named),
        Command::Forget(named) => write::forget(call, named),
        Command::Logs(logs) => logs::logs(call, logs),
        Command::Report(options) => report::report(call, options),
        Command::Changes(options) => changes::changes(call, options),
        Command::Worktrees(options) => worktrees::worktrees(call, options),
        Command::Screen(options) => screen::screen(call, options),
        Command::SupportBundle(options) => support::support(call, options),
        Command::Usage(options) => usage::usage(call, options),
        Command::Webhooks(command) => webhooks::run(call, command),
        Command::Notifications(command) => notifications::run(call, command),
        Command::Push(command) => push::run(call, command),
        Command::Open(options) => open::open(call, options),
        Command::Backup(options) => backup::run_backup(call, options),
        Command::Restore(options) => backup::run_restore(call, options),
        Command::Deps(command) => deps::run(call, command),
        Command::Upgrade(options) => upgrade::run(call, options),
        Command::Restart(options) => restart::run(call, options),
        Command::InstallService(options) => install_service::run(call, options),
        Command::Migrate(listing) => migrate::migrate(call, listing),
        Command::Completions(wanted) => completions::script(call, wanted),
        Command::Man(wanted) => manual::man(call, wanted),
        Command::Mcp => mcp::mcp(call),
    }
}

/// Says why a command ended early, and gives the exit code.
fn exit(end: Result<Exit, End>, json: bool, output: Output) -> Exit {
    match end {
        Ok(exit) => exit,
        Err(End::Unread) => Exit::Done,
        Err(End::Signal(exit)) => exit,
        Err(End::Failure(failure)) => {
            for line in &failure.lines {
                output.complain(line);
            }
            if json {
                // Where the document cannot be written, the exit code still tells.
                let _ = output.json(&failure.document());
            }
            failure.exit
        }
    }
}
