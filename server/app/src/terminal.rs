//! Use-cases: watch the terminal of an Interactive Session, and type into it.
//!
//! Rows are redacted by the keeper before they get here. Off unless `claude.pty_screen_enabled`;
//! typing needs `claude.terminal_input` as well, and never a token with scopes.

mod hub;
mod palette;
mod picture;
mod typing;
mod viewer;

pub use viewer::{TerminalForm, TerminalItem, TerminalViewer};

use crate::bridges::keepers::{Keepers, Terminal, connect_as};
use crate::bridges::lookup::{Lookup, Wanted};
use crate::ops::audit::Audit;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use hub::Hub;
use picture::{NO_RECORD, Picture};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_keeper::message::{FromKeeper, Role};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::status::ResumeMode;
use svc_shared::terminal::PlainFrame;
use tokio::time::timeout;
use typing::Keyboard;

/// A keeper sends its screen within milliseconds.
const SCREEN_LIMIT: Duration = Duration::from_secs(5);

/// The terminals of sessions.
pub struct Terminals {
    config: Arc<Config>,
    lookup: Arc<Lookup>,
    keepers: Arc<Keepers>,
    audit: Arc<Audit>,
    tasks: Tasks,
    hubs: Mutex<HashMap<InstanceId, Weak<Hub>>>,
}

/// Where a viewer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// Generation of the session.
    pub generation: u32,
    /// The last frame it has.
    pub seq: u64,
}

impl Terminals {
    pub(crate) fn new(
        config: Arc<Config>,
        lookup: Arc<Lookup>,
        keepers: Arc<Keepers>,
        audit: Arc<Audit>,
        tasks: Tasks,
    ) -> Self {
        Self { config, lookup, keepers, audit, tasks, hubs: Mutex::default() }
    }

    /// Begins to watch a terminal.
    /// `may_type` tells whether the caller's credential allows it.
    ///
    /// # Errors
    /// No such row, not an Interactive Session, or the view is switched off.
    pub async fn watch(
        &self,
        reference: &str,
        form: TerminalForm,
        since: Option<Since>,
        may_type: bool,
    ) -> Result<TerminalViewer, AppError> {
        if !self.config.claude.pty_screen_enabled {
            return Err(switched_off());
        }
        let bridge = self.interactive(reference).await?;
        let may_type = may_type && self.config.claude.terminal_input;
        Ok(self.view(&bridge, form, since, may_type))
    }

    fn view(
        &self,
        bridge: &Bridge,
        form: TerminalForm,
        since: Option<Since>,
        may_type: bool,
    ) -> TerminalViewer {
        let keyboard = may_type.then(|| {
            Keyboard::new(
                bridge.id.clone(),
                Arc::clone(&self.keepers),
                Arc::clone(&self.lookup.registry),
                Arc::clone(&self.audit),
                &self.tasks,
            )
        });
        let hub = self.hub(&bridge.id);
        TerminalViewer::new(hub, form, since, keyboard, self.tasks.shutdown().clone())
    }

    /// The screen as it is now, as text.
    /// Works without a service and for ended sessions.
    ///
    /// # Errors
    /// No such row, not an Interactive Session, or its keeper does not answer.
    pub async fn screen(&self, reference: &str) -> Result<PlainFrame, AppError> {
        let bridge = self.interactive(reference).await?;
        let mut picture = Picture::default();
        match self.keepers.terminal_of(&bridge).await {
            Terminal::Kept(sidecar) => {
                let connection = connect_as(&sidecar, Role::Observer).await;
                let connection = connection.map_err(|error| silent().because(error))?;
                picture.state(&connection.welcome.session.state);
                let (commands, mut events) = (connection.commands, connection.events);
                let read = async {
                    commands.sub(None, None, None).await?;
                    loop {
                        match events.next().await? {
                            FromKeeper::Key(key) => return Ok(key),
                            FromKeeper::State(state) => picture.state(&state),
                            _ => {}
                        }
                    }
                };
                let key: Result<_, svc_keeper::client::Closed> =
                    timeout(SCREEN_LIMIT, read).await.map_err(|_| silent())?;
                picture.key(key.map_err(|error| silent().because(error))?);
            }
            Terminal::Ended(screen) => {
                if let Some(screen) = screen {
                    picture.key(screen.screen);
                }
                picture.exited();
            }
            Terminal::Unknown if bridge.is_live() => {
                return Err(AppError::busy(NO_RECORD));
            }
            Terminal::Unknown => picture.unavailable("this session has no terminal"),
        }
        Ok(picture.plain())
    }

    async fn interactive(&self, reference: &str) -> Result<Bridge, AppError> {
        let bridge = self.lookup.bridge(reference, Wanted::Live).await?;
        if bridge.resume_mode == ResumeMode::Pty {
            return Ok(bridge);
        }
        Err(AppError::new(
            ErrorCode::CapabilityDisabled,
            Class::Conflict,
            "only Interactive Sessions have a terminal; this is Server Mode, which has a log",
        ))
    }

    /// The hub of a session; a new one when nobody watches it yet.
    fn hub(&self, id: &InstanceId) -> Arc<Hub> {
        let mut hubs = self.hubs.lock().unwrap_or_else(PoisonError::into_inner);
        hubs.retain(|_, hub| hub.strong_count() > 0);
        // One whose session was forgotten says so for ever.
        let live = hubs.get(id).and_then(Weak::upgrade);
        if let Some(hub) = live.filter(|hub| hub.shared.closed().is_none()) {
            return hub;
        }
        let registry = Arc::clone(&self.lookup.registry);
        let (hub, watcher) = Hub::new(id.clone(), Arc::clone(&self.keepers), registry);
        let hub = Arc::new(hub);
        hubs.insert(id.clone(), Arc::downgrade(&hub));
        self.tasks.spawn(watcher.run());
        hub
    }
}

fn switched_off() -> AppError {
    AppError::new(
        ErrorCode::CapabilityDisabled,
        Class::Forbidden,
        "the live terminal is switched off; set `claude.pty_screen_enabled` to true",
    )
}

fn silent() -> AppError {
    AppError::new(
        ErrorCode::Busy,
        Class::Unavailable,
        "the keeper of this session does not answer; try again, and look at `svc keepers`",
    )
}

#[cfg(test)]
mod tests;
