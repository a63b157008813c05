//! A simulator of the agent CLI: same argv, files, texts and exit codes.
//!
//! It needs no network and no account. This file has the safety check, the record of each start,
//! and the choice of form. The simulator shares no code with the product, so that a wrong idea
//! about the agent shows up as a disagreement. Facts come from agent 2.1.197 unless a profile says
//! otherwise.

mod agents;
mod auth;
mod bridge;
mod calls;
mod console;
mod debug_log;
mod double;
mod failure;
mod files;
mod home;
mod hosted;
mod ids;
mod jobs;
mod knobs;
mod link;
mod load;
mod login;
mod mcp;
mod permission;
mod plugin;
mod pointer;
mod print;
mod process;
mod profile;
mod registry;
mod remote;
mod signals;
mod terminal;
mod texts;
mod transcript;
mod trust;
mod tui;
mod values;
mod worker;
mod worktree;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use console::{pause, print, say};
use double::Double;
use failure::Failure;
use home::AgentHome;
use knobs::Knobs;
use profile::Profile;

/// Which part of the agent an argv asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Version,
    Help,
    AuthStatus,
    AuthLogin,
    AuthLogout,
    Mcp,
    Plugin,
    /// One reply, or a conversation over pipes.
    Print,
    Agents,
    Standard,
    Worker,
    Background,
    JobStop,
    JobRemove,
    JobLogs,
    JobAttach,
    JobRespawn,
    Service,
    /// The host of a background session, and the session itself.
    JobHost,
    JobSession,
    /// A process that only exists (knob `children`).
    Bystander,
    /// `--remote-control`: an interactive session.
    Interactive,
    /// `setup-token`.
    SetupToken,
    Unknown,
}

impl Form {
    /// The form of an argv for an agent with background sessions or without them.
    fn of(args: &[String], jobs: bool) -> Self {
        let first = args.first().map(String::as_str);
        let second = args.get(1).map(String::as_str);
        match (first, second) {
            (Some("--version" | "-v"), _) => Self::Version,
            (Some("--help" | "-h"), _) => Self::Help,
            (Some("auth"), Some("status")) => Self::AuthStatus,
            (Some("auth"), Some("login")) => Self::AuthLogin,
            (Some("auth"), Some("logout")) => Self::AuthLogout,
            (Some("mcp"), _) => Self::Mcp,
            (Some("plugin" | "plugins"), _) => Self::Plugin,
            (Some("setup-token"), _) => Self::SetupToken,
            (Some("agents"), _) => Self::Agents,
            (Some("remote-control"), _) => Self::Standard,
            (Some("--print"), Some("--sdk-url")) => Self::Worker,
            (Some(word), _) if jobs && Self::of_job(word).is_some() => {
                Self::of_job(word).unwrap_or(Self::Unknown)
            }
            (Some(load::BYSTANDER), _) => Self::Bystander,
            // The flag form, which is another thing than the command.
            _ if args.iter().any(|arg| matches!(arg.as_str(), "--remote-control" | "--rc")) => {
                Self::Interactive
            }
            (Some(name), _) if texts::PRINT_FORMS.contains(&name) => Self::Print,
            _ => Self::Unknown,
        }
    }

    /// The commands for background sessions (agent 2.1.145 and later).
    fn of_job(word: &str) -> Option<Self> {
        Some(match word {
            "--bg" | "--background" => Self::Background,
            "stop" => Self::JobStop,
            "rm" => Self::JobRemove,
            "logs" => Self::JobLogs,
            "attach" => Self::JobAttach,
            "respawn" => Self::JobRespawn,
            "daemon" => Self::Service,
            jobs::host::HOST => Self::JobHost,
            "--session-id" => Self::JobSession,
            _ => return None,
        })
    }

    /// The name scenario rules use (`match.form`).
    fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Help => "help",
            Self::AuthStatus | Self::AuthLogin | Self::AuthLogout | Self::SetupToken => "auth",
            Self::Print => "hosted",
            Self::Agents => "agents",
            Self::Standard => "standard",
            Self::Worker => "worker",
            Self::Bystander => "bystander",
            // A host and its session have the knobs of the command that asked for them.
            Self::Background | Self::JobHost | Self::JobSession => "bg",
            Self::JobStop
            | Self::JobRemove
            | Self::JobLogs
            | Self::JobAttach
            | Self::JobRespawn
            | Self::Service => "jobs",
            Self::Interactive => "pty",
            Self::Mcp | Self::Plugin | Self::Unknown => "other",
        }
    }
}

/// Runs one start of the double with the arguments after the program name.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let args: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    match dispatch(args) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            say(&format!("{}\n", failure.text));
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(args: Vec<String>) -> Result<u8, Failure> {
    match args.first().map(String::as_str) {
        Some("init") => return home::init(args.get(1..).unwrap_or_default()),
        Some("remote") => return remote::command(args.get(1..).unwrap_or_default()),
        _ => {}
    }
    let home = AgentHome::from_env()?;
    home.require_double()?;
    let form = Form::of(&args, true);
    if form == Form::Bystander {
        // Not a start of the agent: no record, so that call counts stay true.
        return load::bystand(args.get(1).map_or("", String::as_str), args.get(2));
    }
    let cwd = std::env::current_dir()
        .map_err(|e| Failure::refused(format!("the working directory cannot be read: {e}")))?;
    let knobs = Knobs::load(&home, form.name(), &cwd);
    // The start is recorded even if its knobs are wrong.
    let record_env = knobs.as_ref().map(|k| k.record_env.clone()).unwrap_or_default();
    calls::record(&home, &args, &cwd, &record_env)?;
    let mut knobs = knobs?;
    if knobs.auth == values::Auth::LoggedOut && login::was_made(&home) {
        knobs.auth = values::Auth::ClaudeAi;
    }
    let profile = Profile::nearest(&knobs.profile)?;
    let form = Form::of(&args, profile.has_jobs());
    Double { home, knobs, profile, cwd, args }.run(form)
}

impl Double {
    fn run(&self, form: Form) -> Result<u8, Failure> {
        match form {
            Form::Version => {
                pause(self.knobs.version_ms);
                let usual = format!("{} (Claude Code)", self.profile.version());
                print(&format!("{}\n", self.knobs.version_output.as_deref().unwrap_or(&usual)));
                Ok(0)
            }
            Form::Help => {
                print(texts::HELP);
                Ok(0)
            }
            Form::AuthStatus => auth::status(self),
            Form::AuthLogin => login::login(self),
            Form::AuthLogout => login::logout(self),
            Form::Mcp => mcp::run(self),
            Form::Plugin => plugin::run(self),
            Form::Print => print::run(self),
            Form::Agents => agents::list(self),
            Form::Standard => bridge::run(self),
            Form::Worker => worker::run(self),
            Form::Background => jobs::dispatch(self),
            Form::JobStop => jobs::stop(self),
            Form::JobRemove => jobs::remove(self),
            Form::JobLogs => jobs::logs(self),
            Form::JobAttach => jobs::attach(self),
            Form::JobRespawn => jobs::respawn(self),
            Form::Service => jobs::service(self),
            Form::JobHost => jobs::host::run(self),
            Form::JobSession => jobs::session(self),
            Form::Bystander => Ok(0),
            // Agent 2.1.197: without a terminal the flag form wants a prompt.
            Form::Interactive if !std::io::stdin().is_terminal() => {
                Err(Failure::agent(texts::NO_INPUT))
            }
            Form::Interactive => terminal::run(self),
            Form::SetupToken if !std::io::stdin().is_terminal() => {
                Err(Failure::agent(texts::NO_RAW_MODE))
            }
            Form::SetupToken => terminal::setup_token::run(self),
            Form::Unknown => Err(self.unknown_form()),
        }
    }

    fn unknown_form(&self) -> Failure {
        match self.args.first() {
            Some(option) if option.starts_with('-') => {
                Failure::agent(format!("error: unknown option '{option}'"))
            }
            // Agent 2.1.197: an unknown word is a prompt, and a prompt needs a terminal.
            _ => Failure::agent(texts::NO_INPUT),
        }
    }
}
