//! `--remote-control NAME`: the interactive form, drawn on a terminal.
//!
//! Its checks come in the agent's order (2.1.197): configuration, worktree, first-run screens,
//! trust, conversation. Without a login it goes on, and says so in the debug file only.

mod args;
mod conversation;
mod dialog;
mod keys;
mod screen;
mod session;
pub(crate) mod setup_token;
mod tty;

use std::sync::mpsc::sync_channel;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGWINCH};

use self::args::Args;
use self::dialog::{Answer, Dialog};
use self::screen::Screen;
use self::session::{Event, Session};
use super::console::print;
use super::debug_log::DebugLog;
use super::double::Double;
use super::failure::Failure;
use super::values::Fatal;
use super::{load, signals, texts, trust, worktree};

/// Runs the session to its end.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let args = Args::parse(&double.args)?;
    let log = DebugLog::new(args.debug_file.clone(), &double.knobs);
    log.debug("MDM settings load completed in 1ms");
    let config = double.home.config()?;
    match double.knobs.fatal {
        Some(Fatal::ConfigError) => {
            let file = double.home.config_file().display();
            return Err(Failure::agent(format!("Configuration error in {file}: invalid JSON")));
        }
        Some(Fatal::BadArgument) => {
            return Err(Failure::agent("error: unknown option '--unheard-of'"));
        }
        Some(Fatal::Network) => {
            print(
                "\x1b[?25l\x1b[2GUnable\x1b[9Gto\x1b[12Gconnect\x1b[20Gto\x1b[23GAnthropic\
                   \x1b[33Gservices\r\n\x1b[?25h",
            );
            return Ok(1);
        }
        Some(Fatal::Login | Fatal::Trust | Fatal::AlreadyServed | Fatal::OrgPolicy) | None => {}
    }
    let trusted = trust::is_trusted(&config, &double.cwd, double.profile);
    let mut double = double.clone();
    if let Some(name) = &args.worktree {
        if trust::git_root(&double.cwd).is_some() && !trusted {
            return Err(Failure::agent(texts::WORKTREE_NEEDS_TRUST));
        }
        double.cwd = worktree::enter(&double, name.as_deref())?;
    }
    let double = &double;

    // 256 pieces of input: a full channel only makes the reading thread wait.
    let (sender, receiver) = sync_channel(256);
    let mut caught = vec![SIGINT, SIGTERM, SIGUSR1, SIGWINCH];
    if double.knobs.ignore_sighup {
        caught.push(SIGHUP);
    }
    signals::forward(&caught, sender.clone(), Event::Signal)?;
    let raw = tty::Raw::enter();
    tty::read(sender.clone(), Event::Typed);
    if let Some(pipe) = &double.knobs.tui.feed {
        tty::follow(pipe.clone(), sender.clone(), Event::Fed);
    }
    load::burn(double.knobs.cpu);
    let _memory = load::hold_memory(double.knobs.memory_mb);
    let knobs = &double.knobs;
    let _children = load::start_children(knobs.children, knobs.child_mode, knobs.child_life_ms);

    let mut screen = Screen::new(&double.knobs.tui);
    let mut shown = Vec::new();
    let unfinished = config.get("hasCompletedOnboarding") == Some(&serde_json::json!(false));
    if double.knobs.onboarding || unfinished {
        shown.push(Dialog::Theme);
    }
    if double.knobs.trust_dialog || double.knobs.fatal == Some(Fatal::Trust) || !trusted {
        shown.push(Dialog::Trust);
    }
    for dialog in shown {
        match dialog::ask(double, dialog, &mut screen, &receiver) {
            Answer::Accepted => {}
            Answer::Leave(code) => {
                screen.close(None);
                return Ok(code);
            }
        }
    }
    let found = conversation::open(double, &args).inspect_err(|_| screen.close(None))?;
    let mut session = Session::begin(double, args, log, screen, found, sender);
    let end = session.run(&receiver);
    session.close();
    drop(raw);
    Ok(match end {
        session::End::Code(code) => code,
        session::End::Signal(signal) => signals::die(signal),
    })
}
