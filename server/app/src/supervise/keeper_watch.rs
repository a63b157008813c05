//! The connection to the keeper of one live session, as its watcher sees it.

use crate::bridges::controller::Controller;
use crate::bridges::keepers::{Keepers, Unreachable};
use crate::tasks::Tasks;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_domain::identity::Verdict;
use svc_keeper::client::ConnectError;
use svc_keeper::message::{FromKeeper, Phase, Role, SessionState};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// First pause after a failed connection; each next one is twice as long.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// How far the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reach {
    /// Not yet, or interrupted.
    #[default]
    Away,
    /// Open.
    Connected,
    /// The keeper speaks no common protocol.
    OtherVersion,
    /// The keeper is gone, or the session has none.
    Gone,
}

/// What is known of a keeper.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// How far the connection is.
    pub reach: Reach,
    /// What it said last.
    pub state: SessionState,
}

impl View {
    /// Takes what the keeper says.
    ///
    /// A link that is not told again still holds: a keeper takes none back, and tells it to the
    /// controller alone.
    fn learn(&mut self, state: SessionState) {
        let before = std::mem::replace(&mut self.state, state);
        self.state.url = self.state.url.take().or(before.url);
        self.state.session_id = self.state.session_id.take().or(before.session_id);
    }

    /// Whether nothing more is to be learned about the end of the agent.
    fn is_final(&self) -> bool {
        self.state.phase == Phase::Exited || self.reach == Reach::Gone
    }
}

/// Follows the keeper of a session. Ends when it is dropped.
pub(crate) struct KeeperWatch {
    view: watch::Receiver<View>,
    task: AbortHandle,
}

impl KeeperWatch {
    /// Connects, and connects again when the connection is lost while the keeper lives.
    pub fn start(keepers: &Arc<Keepers>, tasks: &Tasks, bridge: &Bridge) -> Self {
        let (tx, view) = watch::channel(View::default());
        let task = tasks.spawn(follow(Arc::clone(keepers), bridge.clone(), tx));
        Self { view, task: task.abort_handle() }
    }

    /// What is known now.
    pub fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// A channel that reports every change.
    pub fn changes(&self) -> watch::Receiver<View> {
        self.view.clone()
    }

    /// Waits until the keeper told how its agent ended, or is gone, within `limit`.
    pub async fn concluded(&mut self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.view.wait_for(View::is_final)).await; // late is fine
    }
}

impl Drop for KeeperWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that can be used. It is forgotten however its task ends.
struct Registered<'a> {
    keepers: &'a Keepers,
    bridge: &'a Bridge,
    controller: Controller,
}

impl<'a> Registered<'a> {
    fn new(keepers: &'a Keepers, bridge: &'a Bridge, controller: Controller) -> Self {
        keepers.opened(bridge, controller.clone());
        Self { keepers, bridge, controller }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.keepers.lost(self.bridge, &self.controller);
    }
}

async fn follow(keepers: Arc<Keepers>, bridge: Bridge, tx: watch::Sender<View>) {
    let reach = |reach: Reach| tx.send_modify(|view| view.reach = reach);
    let Some(keeper) = bridge.keeper.clone() else {
        reach(Reach::Gone);
        return;
    };
    let mut pause = RETRY;
    let mut registered: Option<Registered<'_>> = None;
    'connect: loop {
        match keepers.connect(&bridge, Role::Controller).await {
            Ok(connection) => {
                pause = RETRY;
                let allowed = connection.welcome.session.input_allowed;
                let (controller, answers) = Controller::new(connection.commands, allowed);
                // Whoever types meanwhile finds the one before, and waits for this one.
                drop(registered.replace(Registered::new(&keepers, &bridge, controller)));
                let state = connection.welcome.session.state;
                let _ = tx.send(View { reach: Reach::Connected, state }); // nobody looks: fine
                let mut events = connection.events;
                while let Ok(event) = events.next().await {
                    answers.hear(&event);
                    if keepers.takes_back && answers.is_displaced() {
                        continue 'connect;
                    }
                    if let FromKeeper::State(state) = event {
                        tx.send_modify(|view| view.learn(state));
                    }
                }
            }
            Err(Unreachable::Connect(error @ ConnectError::Version { .. })) => {
                tracing::warn!(
                    bridge.id = %bridge.id, error = %error,
                    "the keeper of session {} is of another version: the session goes on, and \
                     only signals can stop it",
                    bridge.id.short()
                );
                reach(Reach::OtherVersion);
                keepers.host.exited(&keeper).await;
            }
            Err(error) => tracing::debug!(bridge.id = %bridge.id, error = %error, "no connection"),
        }
        drop(registered.take());
        if matches!(keepers.host.probe(&keeper), Verdict::Gone(_)) {
            let (of, bridge) = (Arc::clone(&keepers), bridge.clone());
            let left = tokio::task::spawn_blocking(move || of.record_of(&bridge)).await;
            let said = left.ok().flatten().filter(|sidecar| sidecar.exit.is_some());
            tx.send_modify(|view| {
                if let Some(sidecar) = said {
                    view.state = sidecar.state();
                }
                view.reach = Reach::Gone;
            });
            return;
        }
        if tx.borrow().reach == Reach::Connected {
            reach(Reach::Away);
        }
        tokio::select! {
            _ = keepers.host.exited(&keeper) => {}
            () = tokio::time::sleep(pause) => pause = LONGEST_RETRY.min(pause.saturating_mul(2)),
        }
    }
}
