//! Background sessions: the commands that start, stop, show and remove them.
//!
//! The command writes the first `state.json` and asks the background service for the rest; the
//! service starts one host per job, whose child is the session (agent 2.1.197).

pub(crate) mod control;
mod daemon;
mod dispatch;
pub(crate) mod host;
pub(crate) mod list;
pub(crate) mod record;
mod roster;
mod session;

use std::io::{self, IsTerminal};
use std::time::Instant;

use self::control::{Answer, Request};
use self::record::Record;
use super::console::{later, pause, print};
use super::double::Double;
use super::failure::Failure;
use super::texts;

pub(crate) use self::dispatch::run as dispatch;
pub(crate) use self::session::run as session;

/// How long the agent waits for a session it told to end before it reports doubt.
const CONFIRM_MS: u64 = 5000;

/// `stop ID`: kills the job and keeps its record.
pub(crate) fn stop(double: &Double) -> Result<u8, Failure> {
    let Some(id) = wanted(double, "stop", texts::STOP_HELP)? else {
        return Ok(0);
    };
    let record = find(double, &id).ok_or_else(|| no_running_job(double, &id))?;
    end(double, &record, &Request::Stop { id: id.clone() })?;
    print(&format!("stopped {id}\n"));
    Ok(0)
}

/// `rm ID`: kills the job and deletes its record.
pub(crate) fn remove(double: &Double) -> Result<u8, Failure> {
    let Some(id) = wanted(double, "rm", texts::RM_HELP)? else {
        return Ok(0);
    };
    let record = find(double, &id).ok_or_else(|| no_job(double, &id))?;
    end(double, &record, &Request::Remove { id: id.clone() })?;
    let _ = record.remove(); // the service may have been faster
    print(&format!("removed {id}\n"));
    Ok(0)
}

/// Asks the service; without one, ends what its last roster still names.
fn end(double: &Double, record: &Record, request: &Request) -> Result<(), Failure> {
    if let Some(answer) = control::ask(&double.home, request) {
        return match answer {
            Answer::Done => Ok(()),
            Answer::Refused(text) => Err(Failure::agent(text)),
            Answer::Status(_) => Err(unconfirmed(record.id())),
        };
    }
    let worker = roster::read(&double.home).remove(record.id());
    let Some(worker) = worker.filter(roster::Worker::is_alive) else {
        return Err(unconfirmed(record.id()));
    };
    worker.kill();
    let until = later(CONFIRM_MS);
    while worker.is_alive() {
        if Instant::now() >= until {
            return Err(unconfirmed(record.id()));
        }
        pause(20); // a stranger's end is no event here
    }
    roster::drop_worker(&double.home, record.id());
    record.settle("stopped", Some("stopped"));
    Ok(())
}

/// The agent's answer when no service answers, also for a job that ended long ago.
fn unconfirmed(id: &str) -> Failure {
    Failure::agent(format!(
        "couldn't confirm {id} was stopped — the background service may be restarting. Try \
         again in a moment."
    ))
}

/// `respawn ID|--all`: starts a session again on its own conversation.
pub(crate) fn respawn(double: &Double) -> Result<u8, Failure> {
    let word = double.args.get(1).map(String::as_str);
    match word {
        None => return Err(Failure::agent("usage: claude respawn <id>|--all")),
        Some("--help" | "-h") => {
            print(texts::RESPAWN_HELP);
            return Ok(0);
        }
        Some(_) => control::ensure(double, "claude respawn")?, // before it looks for the job
    }
    let ids = match word {
        Some("--all") => {
            let records = record::all(&double.home);
            records.into_iter().filter(|r| !r.is_terminal()).map(|r| r.id().to_owned()).collect()
        }
        Some(id) => {
            find(double, id).ok_or_else(|| no_job(double, id))?;
            vec![id.to_owned()]
        }
        None => Vec::new(),
    };
    for id in ids {
        match control::ask(&double.home, &Request::Respawn { id: id.clone() }) {
            Some(Answer::Done) => print(&format!("respawned {id}\n")),
            Some(Answer::Refused(text)) => return Err(Failure::agent(text)),
            Some(Answer::Status(_)) | None => return Err(unconfirmed(&id)),
        }
    }
    Ok(0)
}

/// `logs ID`: what the session's terminal showed.
pub(crate) fn logs(double: &Double) -> Result<u8, Failure> {
    let Some(id) = wanted(double, "logs", texts::LOGS_HELP)? else {
        return Ok(0);
    };
    find(double, &id).ok_or_else(|| no_running_job(double, &id))?;
    let shown = std::fs::read(host::output_file(&double.home, &id)).unwrap_or_default();
    print(&String::from_utf8_lossy(&shown));
    Ok(0)
}

/// `attach ID`: needs a terminal, which this build does not simulate.
pub(crate) fn attach(double: &Double) -> Result<u8, Failure> {
    let Some(id) = wanted(double, "attach", texts::ATTACH_HELP)? else {
        return Ok(0);
    };
    find(double, &id).ok_or_else(|| no_running_job(double, &id))?;
    if io::stdin().is_terminal() {
        return Err(Failure::agent(
            "svc-agent-sim: attaching to a terminal is not simulated by this build; use logs",
        ));
    }
    // Agent 2.1.197 draws one line and leaves when there is no terminal.
    print("\u{1b}[?1049h\u{1b}[2J\u{1b}[H\r\n  \u{1b}[2mAttaching…\u{1b}[0m\r\n\u{1b}[?1049l");
    Ok(0)
}

/// `daemon run|status|stop …`.
pub(crate) fn service(double: &Double) -> Result<u8, Failure> {
    let words: Vec<&str> = double.args.iter().skip(1).map(String::as_str).collect();
    match words.first().copied() {
        None | Some("run") => daemon::run(double, &words),
        Some("--help" | "-h") => {
            print(texts::DAEMON_HELP);
            Ok(0)
        }
        Some("status") => Ok(control::status(&double.home)),
        Some("logs") => {
            print(&String::from_utf8_lossy(
                &std::fs::read(daemon::log_file(&double.home)).unwrap_or_default(),
            ));
            Ok(0)
        }
        Some("stop") => control::stop(&double.home, &words),
        Some(odd) => {
            print(&format!("unknown subcommand: {odd}\n\n{}", texts::DAEMON_HELP));
            Ok(1)
        }
    }
}

/// The id a command names; `None` when it only asked for help.
fn wanted(double: &Double, command: &str, help: &str) -> Result<Option<String>, Failure> {
    match double.args.get(1).map(String::as_str) {
        None => Err(Failure::agent(format!("Usage: claude {command} <id>"))),
        Some("--help" | "-h") => {
            print(help);
            Ok(None)
        }
        Some(id) => Ok(Some(id.to_owned())),
    }
}

fn find(double: &Double, id: &str) -> Option<Record> {
    Record::open(&double.home, id)
}

fn no_job(double: &Double, id: &str) -> Failure {
    Failure::agent(format!("No {} matching '{id}'", double.profile.job_word()))
}

fn no_running_job(double: &Double, id: &str) -> Failure {
    let no_job = no_job(double, id).text;
    Failure::agent(format!("{no_job}. Run 'claude agents' to list running sessions."))
}
