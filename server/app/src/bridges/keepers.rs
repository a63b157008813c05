//! The keepers of Interactive Sessions: records, connections and ends.

use crate::bridges::controller::{Controller, NotTyped};
use crate::log_files;
use crate::tasks::blocking;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::identity::{LaunchId, ProcessIdentity, Verdict};
use svc_keeper::client::{ConnectError, Connection, Options, connect};
use svc_keeper::message::Role;
use svc_keeper::sidecar::{FinalScreen, SUFFIX, Sidecar, screen_file};
use svc_ports::ProcessHost;
use svc_ports::process::{ExitReport, ProcessFacts, Signal, Signalled, Target};
use svc_shared::ids::InstanceId;
use tokio::sync::Notify;
use tracing::{debug, warn};

/// How long a keeper may take to end after its agent (`agent-cli` §10).
const AFTER_AGENT: Duration = Duration::from_secs(2);

/// The control over a keeper is taken back within milliseconds.
const REGAINED: Duration = Duration::from_secs(2);

/// Lines of the final screen that an end is explained with.
const LAST_LINES: usize = 40;

/// The argument by which a keeper is known.
const KEEPER: &str = "__keeper__";

/// Finds keepers, and holds the one controlling connection to each.
pub(crate) struct Keepers {
    pub config: Arc<Config>,
    pub host: Arc<dyn ProcessHost>,
    /// Whether control that another program took is taken back.
    ///
    /// Only the service does: a command that waits beside it ends soon.
    pub takes_back: bool,
    open: Open,
}

/// The controlling connections of this process, by instance.
#[derive(Debug, Default)]
pub(crate) struct Open {
    controllers: Mutex<HashMap<InstanceId, (u32, Controller)>>,
    opened: Notify,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, (u32, Controller)>> {
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a keeper cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    /// No record names it, or its process is gone.
    #[error("the session has no keeper that could be asked")]
    NoKeeper,
    /// It was found and did not let us in.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// Where the terminal of a session is.
pub(crate) enum Terminal {
    /// Its keeper runs.
    Kept(Box<Sidecar>),
    /// Its keeper has ended, with the last screen if it left one.
    Ended(Option<Box<FinalScreen>>),
    /// There is no trace of a keeper.
    Unknown,
}

/// What the keeper left behind about the end of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It saw the end.
    Seen(ExitReport),
    /// It is gone and has seen nothing.
    Nothing,
    /// It lives, or there never was one.
    Unknown,
}

impl Keepers {
    /// Knows no keeper yet.
    pub fn new(config: &Arc<Config>, host: &Arc<dyn ProcessHost>, takes_back: bool) -> Self {
        let (config, host) = (Arc::clone(config), Arc::clone(host));
        Self { config, host, takes_back, open: Open::default() }
    }

    /// The record of a session's keeper, if it is about this very launch.
    /// Blocks for one small file.
    pub fn record_of(&self, bridge: &Bridge) -> Option<Sidecar> {
        let path = self.path_of(bridge)?;
        match Sidecar::read(&path) {
            Ok(sidecar) => {
                let is_its = sidecar.instance_id == bridge.id
                    && (bridge.keeper.is_none() || sidecar.keeper() == bridge.keeper);
                is_its.then_some(sidecar)
            }
            Err(error) => {
                debug!(bridge.id = %bridge.id, error = %error, "no usable record of a keeper");
                None
            }
        }
    }

    fn path_of(&self, bridge: &Bridge) -> Option<PathBuf> {
        let stem = &bridge.launch.as_ref().filter(|_| bridge.is_interactive())?.log_stem;
        let set = log_files::set(&self.config, stem)?;
        Some(set.directory().join(format!("{stem}{SUFFIX}")))
    }

    /// Looks for the terminal of the present generation.
    pub async fn terminal_of(&self, bridge: &Bridge) -> Terminal {
        let Some(path) = self.path_of(bridge) else { return Terminal::Unknown };
        let (host, id) = (Arc::clone(&self.host), bridge.id.clone());
        let found = blocking(move || {
            let screen = || FinalScreen::read(&screen_file(&path)).ok().map(Box::new);
            let Ok(sidecar) = Sidecar::read(&path) else {
                return screen().map_or(Terminal::Unknown, |screen| Terminal::Ended(Some(screen)));
            };
            if sidecar.instance_id != id {
                return Terminal::Unknown; // the record of another session got into its place
            }
            let lives = sidecar.keeper().is_some_and(|it| host.probe(&it) == Verdict::Same);
            if lives { Terminal::Kept(Box::new(sidecar)) } else { Terminal::Ended(screen()) }
        });
        found.await.unwrap_or(Terminal::Unknown)
    }

    /// Connects to the keeper of a session after its process was proven.
    ///
    /// # Errors
    /// See [`Unreachable`].
    pub async fn connect(&self, bridge: &Bridge, role: Role) -> Result<Connection, Unreachable> {
        let keeper = bridge.keeper.as_ref().ok_or(Unreachable::NoKeeper)?;
        let sidecar = self.record_of(bridge).ok_or(Unreachable::NoKeeper)?;
        if self.host.probe(keeper) != Verdict::Same {
            return Err(Unreachable::NoKeeper);
        }
        Ok(connect_as(&sidecar, role).await?)
    }

    /// The controlling connection to this generation, while this process has one.
    pub fn controller(&self, bridge: &Bridge) -> Option<Controller> {
        let open = self.open.lock();
        let (generation, controller) = open.get(&bridge.id)?;
        (*generation == bridge.generation).then(|| controller.clone())
    }

    /// Remembers a controlling connection.
    pub fn opened(&self, bridge: &Bridge, controller: Controller) {
        self.open.lock().insert(bridge.id.clone(), (bridge.generation, controller));
        self.open.opened.notify_waiters();
    }

    /// Types a text into a session; see [`Controller::type_in`].
    ///
    /// # Errors
    /// See [`NotTyped`].
    pub async fn type_in(&self, bridge: &Bridge, text: &str) -> Result<(), NotTyped> {
        // Not held while control is taken back: a keeper does not end while somebody is connected.
        let typed = self.controller(bridge).ok_or(NotTyped::Silent)?.type_in(text).await;
        match typed {
            Err(NotTyped::Displaced) => self.regained(bridge).await?.type_in(text).await,
            done => done,
        }
    }

    /// Types a text into a session, and Enter; see [`Controller::type_line`].
    ///
    /// # Errors
    /// See [`NotTyped`], with whether the text stands in the terminal.
    pub async fn type_line(&self, bridge: &Bridge, text: &str) -> Result<(), (NotTyped, bool)> {
        let controller = self.controller(bridge).ok_or((NotTyped::Silent, false))?;
        let typed = controller.type_line(text).await;
        drop(controller); // as above
        let (rest, stands) = match typed {
            Err((NotTyped::Displaced, stands)) => (if stands { "" } else { text }, stands),
            done => return done,
        };
        let controller = self.regained(bridge).await.map_err(|error| (error, stands))?;
        controller.type_line(rest).await.map_err(|(error, now)| (error, stands || now))
    }

    /// The next controlling connection, after another program took it over.
    pub async fn regained(&self, bridge: &Bridge) -> Result<Controller, NotTyped> {
        let keeper = bridge.keeper.as_ref().ok_or(NotTyped::Silent)?;
        let found = async {
            loop {
                let opened = self.open.opened.notified();
                tokio::pin!(opened);
                opened.as_mut().enable();
                match self.controller(bridge) {
                    Some(controller) if !controller.is_displaced() => return controller,
                    Some(_) | None => opened.await,
                }
            }
        };
        tokio::select! {
            controller = found => Ok(controller),
            _ = self.host.exited(keeper) => Err(NotTyped::Silent),
            () = tokio::time::sleep(REGAINED) => Err(NotTyped::Displaced),
        }
    }

    /// Forgets the connections of a generation.
    pub fn closed(&self, bridge: &Bridge) {
        let is_its = |entry: &(u32, Controller)| entry.0 == bridge.generation;
        self.forget(&bridge.id, is_its);
    }

    /// Forgets one connection.
    pub fn lost(&self, bridge: &Bridge, controller: &Controller) {
        self.forget(&bridge.id, |(_, known)| known.is_same(controller));
    }

    fn forget(&self, id: &InstanceId, is_meant: impl Fn(&(u32, Controller)) -> bool) {
        let mut open = self.open.lock();
        if open.get(id).is_some_and(is_meant) {
            open.remove(id);
        }
    }

    /// What is known of the end of a session's agent. Blocks for one small file.
    pub fn left_of(&self, bridge: &Bridge) -> Left {
        let seen = self.record_of(bridge).and_then(|sidecar| sidecar.exit);
        if let Some(exit) = seen {
            let (code, signal) = (exit.code, exit.signal);
            return Left::Seen(ExitReport { code, signal, oom_kill: false });
        }
        let is_gone = bridge
            .keeper
            .as_ref()
            .is_some_and(|keeper| matches!(self.host.probe(keeper), Verdict::Gone(_)));
        if is_gone { Left::Nothing } else { Left::Unknown }
    }

    /// The last lines that a session showed. Blocks for one file.
    pub fn last_lines(&self, bridge: &Bridge) -> String {
        let screen = self.path_of(bridge).map(|path| FinalScreen::read(&screen_file(&path)));
        match screen {
            Some(Ok(screen)) => screen.tail(LAST_LINES).join("\n"),
            Some(Err(_)) | None => String::new(), // it was killed, or never had a screen
        }
    }

    /// Ends the keeper of an agent that is gone: it has two seconds to end by itself.
    pub async fn finish(&self, bridge: &Bridge) {
        // It serves its last screen while somebody is connected.
        self.closed(bridge);
        let Some(keeper) = &bridge.keeper else { return };
        let exited = self.host.exited(keeper);
        tokio::pin!(exited);
        if tokio::time::timeout(AFTER_AGENT, &mut exited).await.is_ok() {
            return;
        }
        let (host, named) = (Arc::clone(&self.host), keeper.clone());
        let launch = bridge.launch.as_ref().map(|launch| launch.id.clone());
        let is_its = blocking(move || is_keeper_of(host.as_ref(), &named, launch.as_ref())).await;
        if !is_its.unwrap_or(false) {
            if matches!(self.host.probe(keeper), Verdict::Gone(_)) {
                return;
            }
            warn!(
                bridge.id = %bridge.id, agent.pid = keeper.pid.get(),
                "the process that the record of session {} names as its keeper is none of it, and \
                 is left alone",
                bridge.id.short()
            );
            return;
        }
        match self.host.signal(keeper, Signal::Kill, Target::Process) {
            Signalled::Gone => {}
            Signalled::Sent => {
                if tokio::time::timeout(AFTER_AGENT, exited).await.is_ok() {
                    self.remove_socket(bridge, keeper).await;
                } else {
                    warn!(
                        bridge.id = %bridge.id, agent.pid = keeper.pid.get(),
                        "the keeper of session {} does not end; see `svc keepers`",
                        bridge.id.short()
                    );
                }
            }
            Signalled::NotPermitted | Signalled::Unproven => warn!(
                bridge.id = %bridge.id, agent.pid = keeper.pid.get(),
                "the keeper of session {} cannot be ended; see `svc keepers`",
                bridge.id.short()
            ),
        }
    }

    /// Removes what a killed keeper listened at: only an orderly end does that.
    async fn remove_socket(&self, bridge: &Bridge, keeper: &ProcessIdentity) {
        let (Some(path), keeper) = (self.path_of(bridge), keeper.clone()) else { return };
        let removed = blocking(move || {
            let sidecar = Sidecar::read(&path).ok()?;
            let is_its = sidecar.keeper().as_ref() == Some(&keeper);
            is_its.then(|| svc_process::files::remove_socket(&sidecar.socket))
        });
        if let Ok(Some(Err(error))) = removed.await {
            debug!(bridge.id = %bridge.id, error = %error, "the socket of a keeper stays");
        }
    }
}

/// Connects to a keeper that was just found.
///
/// # Errors
/// It cannot be reached, or speaks another version.
pub(crate) async fn connect_as(sidecar: &Sidecar, role: Role) -> Result<Connection, ConnectError> {
    let options = Options::new(role);
    #[cfg(feature = "failpoints")]
    let options = crate::failpoint::of_another_release(options);
    connect(sidecar, &options).await
}

/// What is known of the end of a session's agent, asked without blocking.
pub(crate) async fn left_of(keepers: &Arc<Keepers>, bridge: &Bridge) -> Left {
    let (keepers, bridge) = (Arc::clone(keepers), bridge.clone());
    blocking(move || keepers.left_of(&bridge)).await.unwrap_or(Left::Unknown)
}

/// Whether a process may be ended as the keeper of this launch (H102).
///
/// A record can name a stranger's true pid, start and boot. A keeper is known by its argument, and
/// the agent that it holds carries the id of its launch: a keeper that holds an agent of another
/// launch belongs to that one. Blocks: reads the process table.
pub(crate) fn is_keeper_of(
    host: &dyn ProcessHost,
    keeper: &ProcessIdentity,
    launch: Option<&LaunchId>,
) -> bool {
    let is_one = host
        .inspect(keeper.pid)
        .is_some_and(|facts| facts.identity == *keeper && is_keeper(&facts));
    is_one
        && held_by(host, &host.processes(), keeper)
            .iter()
            .all(|(_, carried)| Some(carried) == launch)
}

/// The children of a keeper that belong to a launch, with its id.
pub(crate) fn held_by(
    host: &dyn ProcessHost,
    processes: &[ProcessFacts],
    keeper: &ProcessIdentity,
) -> Vec<(ProcessIdentity, LaunchId)> {
    let children = processes.iter().filter(|one| one.parent == keeper.pid.get());
    let launched =
        |one: &ProcessFacts| Some((one.identity.clone(), host.launch_of(&one.identity)?));
    children.filter_map(launched).collect()
}

/// Whether a process is a keeper, by the argument that it was started with.
pub(crate) fn is_keeper(facts: &ProcessFacts) -> bool {
    facts.argv.get(1).is_some_and(|argument| argument == KEEPER)
}
