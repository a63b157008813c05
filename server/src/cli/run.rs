//! `svc run`: serves until it is asked to end.

use crate::cli::call::{Call, block_on};
use crate::cli::config::{ShownWarnings, found, show_warnings, unshown};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::setup::{FirstRun, Outcome};
use crate::logging;
use crate::serve::{Running, Sockets, feed_watchdog};
use crate::signals::Signals;
use crate::successor::{self, Handover, Inherited, Successor};
use std::ffi::{CStr, CString};
use std::io;
use svc_config::{Config, FindError, Loaded};
use tokio::net::TcpListener;

/// Serves the configured projects; without a configuration the setup page is first.
pub(crate) fn run(call: &Call) -> Result<Exit, End> {
    let inherited = successor::inherited();
    if inherited.is_lent {
        successor::end_with_parent();
    }
    match served(call, inherited)? {
        None => Ok(Exit::Done),
        Some(handover) => {
            let error = handover.replace();
            let text = format!("the service ended to be restarted, and cannot be started: {error}");
            Err(Failure::new(Exit::Failed, "not_restarted", text).into())
        }
    }
}

/// Serves until the end, or until another program is to take this one's place.
fn served(call: &Call, inherited: Inherited) -> Result<Option<Handover>, End> {
    if let Err(FindError::NotFound { searched }) = found(call)? {
        let first = FirstRun::prepare(call, &searched)?;
        return block_on(async {
            let mut signals = Signals::of_server().map_err(End::of_machine)?;
            match first.serve(call, &mut signals).await? {
                Outcome::Asked => Ok(None),
                Outcome::Configured(loaded, listener) => {
                    let sockets = Sockets { listener, twin: None, is_lent: false };
                    start(call, &loaded, sockets, &mut signals).await
                }
            }
        });
    }
    let loaded = unshown(call)?;
    logging::start(loaded.config.log_format.into(), loaded.config.log_level);
    show_warnings(call, &loaded, ShownWarnings::All);
    crate::safety::report_panics();
    block_on(async {
        let mut signals = Signals::of_server().map_err(End::of_machine)?;
        let Inherited { listeners, twin, is_lent } = inherited;
        let listener = successor::fitting(&loaded.config, listeners).await;
        let listener = listener.map(TcpListener::from_std).transpose().map_err(End::of_machine)?;
        let sockets = Sockets { listener, twin, is_lent };
        start(call, &loaded, sockets, &mut signals).await
    })
}

/// Shows the name of this installation in the list of processes.
///
/// The kernel keeps 15 bytes of it. A name that cannot be shown stops nothing.
fn show_name(config: &Config) {
    let name = config.instance_name.as_ref();
    if let Some(Ok(title)) = name.map(|name| CString::new(format!("svc[{name}]"))) {
        let _ = set_title(&title);
    }
}

#[cfg(target_os = "linux")]
fn set_title(title: &CStr) -> io::Result<()> {
    Ok(rustix::thread::set_name(title)?)
}

/// Other systems show the name of the program file.
#[cfg(not(target_os = "linux"))]
fn set_title(_: &CStr) -> io::Result<()> {
    Ok(())
}

/// Starts the service on an existing listener or on the configured address.
async fn start(
    call: &Call,
    loaded: &Loaded,
    sockets: Sockets,
    signals: &mut Signals,
) -> Result<Option<Handover>, End> {
    show_name(&loaded.config);
    let around = call.surroundings(loaded);
    let successor = Successor::of_this_process(call.umask);
    let is_tried = sockets.is_lent;
    let running = tokio::select! {
        running = Running::start(&around, sockets, successor) => running?,
        _ = signals.asked() => return Ok(None),
    };
    if !is_tried {
        let state_dir = around.config.state_dir.clone();
        // Nobody waits for it.
        drop(tokio::task::spawn_blocking(move || {
            if let Ok(program) = svc_process::own_program::path() {
                svc_app::upgrade::settle(&state_dir, &program);
            }
        }));
    }
    Ok(serve(call, running, &around.config, signals).await)
}

/// Announces the service, serves, and ends it. A second signal ends it at once.
async fn serve(
    call: &Call,
    mut running: Running,
    config: &Config,
    signals: &mut Signals,
) -> Option<Handover> {
    let restart = running.leaving();
    let banner = {
        let running = &running;
        async move { banner(running, config).await }
    };
    tokio::select! {
        () = feed_watchdog() => {}
        () = restart.cancelled() => {}
        // The banner waits for the probe of the agent; the service answers meanwhile.
        line = banner => call.output.note(&line),
        _ = signals.asked() => return end(call, running, signals).await,
    }
    running.until_asked(signals).await;
    let order = running.order();
    let handover = end(call, running, signals).await?;
    match order {
        None => Some(handover),
        Some(order) => handover.tried(order, &config.state_dir, signals).await,
    }
}

async fn end(call: &Call, running: Running, signals: &mut Signals) -> Option<Handover> {
    let is_restarting = running.is_restarting();
    tokio::select! {
        handover = running.end() => handover,
        _ = signals.asked() => {
            call.output.note(match is_restarting {
                true => "asked to end during a restart: ending without waiting",
                false => "asked twice: ending without waiting",
            });
            None
        }
    }
}

async fn banner(running: &Running, config: &Config) -> String {
    let agent = match running.agent_version().await {
        Some(version) => format!("agent {version}"),
        None => "agent not available".to_owned(),
    };
    format!(
        "svc {}, {agent}, projects in {}, {}",
        env!("CARGO_PKG_VERSION"),
        config.projects_root.display(),
        running.url()
    )
}
