//! One connection to a keeper for all viewers of a session.
//!
//! It exists while somebody watches. The screen is kept once; each viewer takes what it lacks when
//! it is ready for more, so a slow viewer gets fewer frames and delays nobody.

use super::picture::{NO_RECORD, Picture, line};
use crate::bridges::keepers::{Keepers, Terminal, connect_as};
use crate::registry::Registry;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_keeper::client::{ConnectError, Connection};
use svc_keeper::message::{FromKeeper, MAX_FPS, Phase, Role};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::stream::close;
use svc_shared::terminal::{Line, LinesFrame, TerminalFrame};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Requests of all viewers that wait.
/// A further one is answered at once, with nothing.
const REQUESTS: usize = 16;
/// So often a keeper without a record is looked for before that is told.
const MISSES: u32 = 8;
/// First and longest wait before a lost keeper is looked for again.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Lines above the screen that a viewer asks for.
pub(super) struct Scroll {
    pub from: u64,
    pub n: u32,
    pub reply: mpsc::Sender<TerminalFrame>,
}

/// What viewers and the connection share.
pub(super) struct Shared {
    picture: Mutex<Picture>,
    closed: Mutex<Option<(u16, ErrorCode)>>,
    changes: watch::Sender<u64>,
}

/// Held by each viewer; the connection ends with the last one.
pub(super) struct Hub {
    pub shared: Arc<Shared>,
    requests: mpsc::Sender<Scroll>,
    _stop: DropGuard,
}

/// What the task of a hub needs.
pub(super) struct Watcher {
    pub id: InstanceId,
    pub keepers: Arc<Keepers>,
    pub registry: Arc<Registry>,
    pub shared: Arc<Shared>,
    pub stop: CancellationToken,
    requests: mpsc::Receiver<Scroll>,
    /// The generation whose agent was seen to end.
    exited: Option<u32>,
    /// How often in a row nothing was known of a keeper.
    misses: u32,
}

impl Hub {
    /// A hub and the task that serves it, which the caller starts.
    pub fn new(id: InstanceId, keepers: Arc<Keepers>, registry: Arc<Registry>) -> (Self, Watcher) {
        let shared = Arc::new(Shared {
            picture: Mutex::default(),
            closed: Mutex::default(),
            changes: watch::Sender::new(0),
        });
        let (sender, requests) = mpsc::channel(REQUESTS);
        let stop = CancellationToken::new();
        let hub = Self {
            shared: Arc::clone(&shared),
            requests: sender,
            _stop: stop.clone().drop_guard(),
        };
        let watcher =
            Watcher { id, keepers, registry, shared, stop, requests, exited: None, misses: 0 };
        (hub, watcher)
    }

    /// Asks for lines above the screen; the answer comes to `scroll.reply`.
    pub fn scroll(&self, scroll: Scroll) {
        if let Err(error) = self.requests.try_send(scroll) {
            let scroll = error.into_inner();
            answer(&self.shared, &scroll.reply, scroll.from, Vec::new(), 0);
        }
    }
}

impl Shared {
    pub fn picture(&self) -> MutexGuard<'_, Picture> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing more comes.
    pub fn closed(&self) -> Option<(u16, ErrorCode)> {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change<T>(&self, work: impl FnOnce(&mut Picture) -> T) -> T {
        let done = work(&mut self.picture());
        self.changes.send_modify(|count| *count += 1);
        done
    }

    fn close(&self, code: u16, word: ErrorCode) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, word));
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Tells a viewer lines; one that does not take its answers misses this one.
fn answer(
    shared: &Shared,
    reply: &mpsc::Sender<TerminalFrame>,
    from: u64,
    lines: Vec<Line>,
    oldest: u64,
) {
    let generation = shared.picture().generation;
    let frame = TerminalFrame::Lines(LinesFrame { generation, from, oldest, lines });
    let _ = reply.try_send(frame); // the viewer is gone or asks more than it reads: fine
}

/// Why a connection was given up.
enum Over {
    /// The row ended, was resumed or is gone.
    Row,
    /// The keeper closed the connection.
    Lost,
    /// Nobody watches any more.
    Unwatched,
}

/// Answers of the keeper that a viewer waits for.
#[derive(Default)]
struct Waiting {
    scrolls: VecDeque<(Scroll, Vec<Line>)>,
}

impl Watcher {
    /// Keeps the picture up to date until nobody watches or the row is forgotten.
    pub async fn run(mut self) {
        let mut changes = self.registry.copies.changes();
        let mut wait = AGAIN.0;
        let mut shown: Option<(u32, bool)> = None;
        loop {
            changes.mark_unchanged();
            let Some(bridge) = self.registry.copies.bridge(&self.id) else {
                self.shared.close(close::UNKNOWN, ErrorCode::UnknownInstance);
                return;
            };
            if shown.is_none_or(|(generation, _)| generation != bridge.generation) {
                self.shared.change(|picture| picture.begin(bridge.generation));
            }
            // An ended session is looked at once: its last screen does not change.
            let is_live = bridge.is_live();
            let stays = shown == Some((bridge.generation, false)) && !is_live;
            let mut retries = false;
            if !stays {
                shown = Some((bridge.generation, is_live));
                match self.show(&bridge).await {
                    Over::Unwatched => return,
                    Over::Row => {}
                    Over::Lost => retries = is_live,
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(wait), if retries => wait = (wait * 2).min(AGAIN.1),
                Some(scroll) = self.requests.recv() => {
                    answer(&self.shared, &scroll.reply, scroll.from, Vec::new(), 0);
                }
            }
            if self.shared.picture().has_screen {
                wait = AGAIN.0;
            }
        }
    }

    /// Shows the terminal of a generation until something ends it.
    async fn show(&mut self, bridge: &Bridge) -> Over {
        let found = self.keepers.terminal_of(bridge).await;
        self.misses = match found {
            Terminal::Unknown => self.misses.saturating_add(1),
            Terminal::Kept(_) | Terminal::Ended(_) => 0,
        };
        match found {
            // All of it was shown, and a connection would hold up its end.
            Terminal::Kept(_) if self.exited == Some(bridge.generation) => {
                if bridge.is_live() {
                    Over::Lost
                } else {
                    Over::Row
                }
            }
            Terminal::Kept(sidecar) => {
                match connect_as(&sidecar, Role::Observer).await {
                    Ok(connection) => return self.follow(bridge, connection).await,
                    Err(_) if !bridge.is_live() => self.shared.change(Picture::exited),
                    Err(error) => self.unreachable(&error),
                }
                Over::Lost
            }
            Terminal::Ended(screen) => {
                let is_live = bridge.is_live();
                self.shared.change(|picture| match screen {
                    Some(screen) => {
                        picture.key(screen.screen);
                        picture.exited();
                    }
                    None if is_live => picture.unavailable(
                        "the process that held the terminal of this session has ended; stop and \
                         resume the session for a new terminal",
                    ),
                    None => picture.exited(),
                });
                Over::Row
            }
            Terminal::Unknown if bridge.is_live() => {
                // A launch writes it within a moment.
                if self.misses > MISSES {
                    self.shared.change(|picture| picture.unavailable(NO_RECORD));
                }
                Over::Lost
            }
            Terminal::Unknown => {
                self.shared.change(Picture::exited);
                Over::Row
            }
        }
    }

    fn unreachable(&self, error: &ConnectError) {
        let why = match error {
            ConnectError::Version { .. } => {
                "the keeper of this session is of another version than the service; the session \
                 goes on, and can be watched again after a stop and a resume"
            }
            ConnectError::NoKeeper(_)
            | ConnectError::Stranger
            | ConnectError::Refused { .. }
            | ConnectError::Silent
            | ConnectError::Broken(_) => {
                "the keeper of this session does not answer; the service tries again"
            }
        };
        tracing::debug!(error = %error, "the keeper of session {} cannot be watched", self.id);
        self.shared.change(|picture| picture.unavailable(why));
    }

    async fn follow(&mut self, bridge: &Bridge, connection: Connection) -> Over {
        let Connection { welcome, commands, mut events } = connection;
        self.shared.change(|picture| picture.state(&welcome.session.state));
        let since = {
            let picture = self.shared.picture();
            picture.has_screen.then_some(picture.seq)
        };
        if commands.sub(since, Some(MAX_FPS), None).await.is_err() {
            return Over::Lost;
        }
        let mut rows = self.registry.copies.changes();
        let mut waiting = Waiting::default();
        let over = loop {
            tokio::select! {
                () = self.stop.cancelled() => break Over::Unwatched,
                changed = rows.changed() => {
                    let now = self.registry.copies.bridge(&self.id);
                    let is_same = now.is_some_and(|now| now.generation == bridge.generation);
                    if changed.is_err() || !is_same {
                        break Over::Row;
                    }
                }
                Some(scroll) = self.requests.recv() => {
                    let (from, n) = (scroll.from, scroll.n);
                    waiting.scrolls.push_back((scroll, Vec::new()));
                    if commands.scroll(from, n).await.is_err() {
                        break Over::Lost;
                    }
                }
                event = events.next() => match event {
                    // Its last screen came before. It serves that as long as somebody is connected,
                    // and whoever stops the session waits for its end.
                    Ok(FromKeeper::State(state)) if state.phase == Phase::Exited => {
                        self.shared.change(|picture| picture.state(&state));
                        self.exited = Some(bridge.generation);
                        break Over::Lost;
                    }
                    Ok(event) => if !self.heard(event, &mut waiting) {
                        // A frame that does not fit: the screen is asked for again.
                        if commands.sub(None, Some(MAX_FPS), None).await.is_err() {
                            break Over::Lost;
                        }
                    },
                    Err(_) => break Over::Lost,
                },
            }
        };
        for (scroll, lines) in waiting.scrolls {
            answer(&self.shared, &scroll.reply, scroll.from, lines, 0);
        }
        over
    }

    /// Takes over what the keeper says; false when the whole screen is needed.
    fn heard(&self, event: FromKeeper, waiting: &mut Waiting) -> bool {
        match event {
            FromKeeper::Key(key) => self.shared.change(|picture| picture.key(key)),
            FromKeeper::Diff(diff) => return self.shared.change(|picture| picture.diff(&diff)),
            FromKeeper::State(state) => self.shared.change(|picture| picture.state(&state)),
            FromKeeper::Line { row, .. } => {
                if let Some((_, lines)) = waiting.scrolls.front_mut() {
                    lines.push(line(&row));
                }
            }
            FromKeeper::Scrolled { from, first, .. } => {
                if let Some((scroll, lines)) = waiting.scrolls.pop_front() {
                    answer(&self.shared, &scroll.reply, from, lines, first);
                }
            }
            FromKeeper::Gap { .. }
            | FromKeeper::Welcome { .. }
            | FromKeeper::Error { .. }
            | FromKeeper::Ack { .. }
            | FromKeeper::Pong
            | FromKeeper::Stat(_)
            | FromKeeper::Unknown => {}
        }
        true
    }
}
