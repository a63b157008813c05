//! The live terminal of one session.
//!
//! Its socket, its screen, and the lines above it.
//!
//! Frames are folded as they come and painted once per frame of the browser; only rows that
//! changed are painted again.

use crate::browser;
use crate::model::outcome::{Level, Notice};
use crate::model::terminal::History;
use crate::page::Page;
use crate::socket::{Heard, Reconnecting, Socket};
use crate::text::terminal as words;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::paths;
use svc_shared::stream::close;
use svc_shared::terminal::{
    ClientFrame, Cursor, DiffFrame, Folded, Line, LinesFrame, Screen, TerminalFrame, TypedFrame,
};

/// Lines whose answer is waited for.
const LINES: usize = 16;
/// A hidden tab keeps its socket this long.
const HIDDEN: Duration = Duration::from_secs(60);

/// How the socket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feeding {
    /// Not connected yet.
    Connecting,
    /// Connected.
    Open,
    /// Lost, trying again.
    Lost,
    /// Switched off, or not an Interactive Session.
    Off,
    /// The row is gone.
    Gone,
}

/// What the head of the panel tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The state as a word; empty before the first frame.
    pub word: String,
    /// What is wrong.
    pub error: Option<String>,
    /// Columns and rows; 0 while there is no screen.
    pub size: (u16, u16),
    /// Generation of the session.
    pub generation: u32,
    /// Whether anything is on the screen.
    pub has_text: bool,
}

type Row = ArcRwSignal<Arc<Line>>;

/// The feed of one panel. Lives as long as its owner.
#[derive(Clone, Copy)]
pub struct Feed {
    /// The page.
    pub page: Page,
    /// Instance id.
    pub id: StoredValue<String>,
    screen: StoredValue<Screen>,
    rows: StoredValue<Vec<Row>>,
    /// How many rows the screen has.
    pub count: RwSignal<usize>,
    /// Where the cursor is.
    pub cursor: RwSignal<Cursor>,
    /// What the head tells.
    pub standing: RwSignal<Standing>,
    /// When the last frame came, milliseconds.
    pub seen_at: RwSignal<i64>,
    /// Lines above the screen: the number of the first, and the lines.
    pub above: RwSignal<Arc<History>>,
    /// Whether there are older lines to read.
    pub has_older: RwSignal<bool>,
    /// Whether the reader looks at lines above the screen, so that they are kept.
    pub keeps: RwSignal<bool>,
    /// How the socket stands.
    pub feeding: RwSignal<Feeding>,
    /// Changes with every painted frame.
    pub painted: RwSignal<u64>,
    /// A line that was not typed.
    pub returned: RwSignal<Option<String>>,
    inner: StoredValue<Inner, LocalStorage>,
}

#[derive(Default)]
struct Inner {
    line: Reconnecting,
    changed: Vec<u16>,
    all_changed: bool,
    is_waiting: bool,
    is_reading: bool,
    inputs: u64,
    /// Lines that were sent, until the service says what became of them.
    lines: BTreeMap<u64, String>,
    hide: Option<TimeoutHandle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.hide.take().inspect(TimeoutHandle::clear);
    }
}

impl Feed {
    /// Opens the feed of an instance; it ends with the owner.
    pub fn open(page: Page, id: String) -> Self {
        let feed = Self {
            page,
            id: StoredValue::new(id),
            screen: StoredValue::new(Screen::default()),
            rows: StoredValue::new(Vec::new()),
            count: RwSignal::new(0),
            cursor: RwSignal::new(Cursor::default()),
            standing: RwSignal::new(Standing::default()),
            seen_at: RwSignal::new(0),
            above: RwSignal::new(Arc::default()),
            has_older: RwSignal::new(false),
            keeps: RwSignal::new(false),
            feeding: RwSignal::new(Feeding::Connecting),
            painted: RwSignal::new(0),
            returned: RwSignal::new(None),
            inner: StoredValue::new_local(Inner::default()),
        };
        let seen = window_event_listener_untyped("visibilitychange", move |_| feed.visibility());
        on_cleanup(move || {
            seen.remove();
            feed.close();
        });
        feed.connect();
        feed
    }

    /// A row of the screen.
    pub fn row(self, at: usize) -> Option<Row> {
        self.rows.with_value(|rows| rows.get(at).cloned())
    }

    /// All lines: those above the screen that were read, then the screen.
    pub fn lines(self) -> Vec<Line> {
        let mut lines: Vec<Line> =
            self.above.with_untracked(|history| history.lines().cloned().collect());
        self.screen.with_value(|screen| lines.extend(screen.rows.iter().cloned()));
        lines
    }

    /// How many rows of the screen are used: to the last text or the cursor.
    pub fn used(self) -> usize {
        self.screen.with_value(|screen| {
            let last = screen.rows.iter().rposition(|line| !line.text().is_empty());
            last.map_or(0, |last| last + 1).max(usize::from(screen.cursor.y) + 1)
        })
    }

    fn close(self) {
        self.inner.try_update_value(|inner| inner.line.close());
    }

    fn visibility(self) {
        if browser::is_hidden() {
            let hide = set_timeout_with_handle(move || self.close(), HIDDEN).ok();
            self.inner.update_value(|inner| inner.hide = hide);
            return;
        }
        self.inner.update_value(|inner| {
            inner.hide.take().inspect(TimeoutHandle::clear);
        });
        let is_closed = self.inner.with_value(|inner| inner.line.socket().is_none());
        let ended = matches!(self.feeding.get_untracked(), Feeding::Off | Feeding::Gone);
        if is_closed && !ended {
            self.connect();
        }
    }

    fn connect(self) {
        let Some(id) = self.id.try_get_value() else {
            return; // the panel was closed while this was waited for
        };
        let mut path = format!("{}?format=diff", paths::pty_screen(&id));
        let (generation, seq) = self.screen.with_value(|screen| (screen.generation, screen.seq));
        if generation > 0 {
            path.push_str(&format!("&gen={generation}&since={seq}"));
        }
        let socket = Socket::open(&path, move |heard| match heard {
            Heard::Open => {
                self.feeding.set(Feeding::Open);
                self.inner.update_value(|inner| inner.is_reading = false);
            }
            Heard::Text(text) => match TerminalFrame::read(&text) {
                Ok(TerminalFrame::Diff(frame)) => self.fold(frame),
                Ok(TerminalFrame::Lines(frame)) => self.add(frame),
                Ok(TerminalFrame::Typed(typed)) => self.typed(typed),
                // A frame of a newer version says nothing we could show.
                Err(_) => {}
            },
            Heard::Closed(code) => self.closed(code),
        });
        let is_refused = socket.is_none();
        self.inner.update_value(|inner| inner.line.hold(socket));
        if is_refused {
            self.again();
        }
    }

    fn closed(self, code: u16) {
        self.inner.update_value(|inner| inner.line.close());
        match code {
            close::UNKNOWN | close::AMBIGUOUS => self.feeding.set(Feeding::Gone),
            close::WRONG_KIND => self.feeding.set(Feeding::Off),
            _ => self.again(),
        }
    }

    fn again(self) {
        self.feeding.set(Feeding::Lost);
        self.inner.try_update_value(|inner| inner.line.connect_later(move || self.connect()));
    }

    fn send(self, message: &ClientFrame) -> bool {
        let Ok(text) = serde_json::to_string(message) else { return false };
        self.inner.with_value(|inner| inner.line.socket().is_some_and(|socket| socket.send(&text)))
    }

    fn fold(self, frame: DiffFrame) {
        let folded = self.screen.try_update_value(|screen| screen.fold(frame));
        let (is_missing, is_all) = (folded == Some(Folded::Missing), folded == Some(Folded::All));
        let begins = self.inner.try_update_value(|inner| {
            inner.line.works();
            inner.all_changed |= is_all;
            if let Some(Folded::Rows(rows)) = folded {
                inner.changed.extend(rows);
            }
            !std::mem::replace(&mut inner.is_waiting, true)
        });
        if is_missing {
            self.send(&ClientFrame::Full);
        }
        if is_all {
            self.above.set(Arc::default());
        }
        if begins == Some(true) {
            request_animation_frame(move || self.paint());
        }
    }

    /// Shows what came since the last frame of the browser.
    fn paint(self) {
        let Some((rows, all)) = self.inner.try_update_value(|inner| {
            inner.is_waiting = false;
            (std::mem::take(&mut inner.changed), std::mem::take(&mut inner.all_changed))
        }) else {
            return;
        };
        let page = self.page;
        let now = page.clock.now();
        self.screen.with_value(|screen| {
            let count = screen.rows.len();
            let is_new = self.count.get_untracked() != count;
            if is_new {
                self.rows.update_value(|all| {
                    all.resize_with(count, || ArcRwSignal::new(Arc::default()));
                });
            }
            self.rows.with_value(|signals| {
                let changed = |at: usize| {
                    let line = screen.rows.get(at);
                    if let (Some(line), Some(signal)) = (line, signals.get(at))
                        && signal.with_untracked(|shown| **shown != *line)
                    {
                        signal.set(Arc::new(line.clone()));
                    }
                };
                if all || is_new {
                    (0..count).for_each(changed);
                } else {
                    rows.into_iter().map(usize::from).for_each(changed);
                }
            });
            if is_new {
                self.count.set(count);
            }
            if self.cursor.get_untracked() != screen.cursor {
                self.cursor.set(screen.cursor);
            }
            let standing = Standing {
                word: screen.state.to_string(),
                error: screen.error.clone(),
                size: (screen.cols, u16::try_from(count).unwrap_or(u16::MAX)),
                generation: screen.generation,
                has_text: screen.rows.iter().any(|line| !line.runs.is_empty()),
            };
            if self.standing.with_untracked(|now| *now != standing) {
                self.standing.set(standing);
            }
            let has_older =
                self.above.with_untracked(|it| it.before(screen.above, screen.oldest)).is_some();
            if self.has_older.get_untracked() != has_older {
                self.has_older.set(has_older);
            }
        });
        self.seen_at.set(now);
        self.painted.update(|count| *count += 1);
        self.join();
    }

    /// Reads lines that left the screen while somebody reads above it.
    fn join(self) {
        if !self.keeps.get_untracked() {
            if !self.above.with_untracked(|history| history.is_empty()) {
                self.above.set(Arc::default());
            }
            return;
        }
        let (above, oldest) = self.screen.with_value(|screen| (screen.above, screen.oldest));
        if self.above.with_untracked(|history| history.is_cut_off(oldest)) {
            self.above.set(Arc::default());
            return;
        }
        let missing = self.above.with_untracked(|history| history.missing(above));
        self.ask(missing);
    }

    /// Reads the lines before the first one that is shown.
    pub fn read_older(self) {
        self.keeps.set(true);
        let (above, oldest) = self.screen.with_value(|screen| (screen.above, screen.oldest));
        let before = self.above.with_untracked(|history| history.before(above, oldest));
        self.ask(before);
    }

    fn ask(self, wanted: Option<(u64, u32)>) {
        let Some((from, n)) = wanted else { return };
        let begins =
            self.inner.try_update_value(|inner| !std::mem::replace(&mut inner.is_reading, true));
        if begins == Some(true) && !self.send(&ClientFrame::Scroll { from, n }) {
            self.inner.update_value(|inner| inner.is_reading = false);
        }
    }

    fn add(self, frame: LinesFrame) {
        self.inner.try_update_value(|inner| inner.is_reading = false);
        let Some((generation, above, oldest)) =
            self.screen.try_with_value(|screen| (screen.generation, screen.above, screen.oldest))
        else {
            return;
        };
        if frame.generation != generation || frame.lines.is_empty() {
            return;
        }
        let mut history = self.above.with_untracked(|history| (**history).clone());
        let before = history.clone();
        history.add(frame, above);
        if history == before {
            return; // asking once more would bring the same
        }
        self.has_older.set(history.before(above, oldest).is_some());
        self.above.set(Arc::new(history));
        self.join();
    }

    /// Types keys; false when there is no connection.
    pub fn type_in(self, text: String) -> bool {
        let id = self.next_input();
        self.send(&ClientFrame::Input { text, id, enter: false })
    }

    /// Types a line and Enter; false when there is no connection.
    ///
    /// A line that is refused comes back in [`Self::returned`].
    pub fn enter(self, text: String) -> bool {
        let id = self.next_input();
        let sent = self.send(&ClientFrame::Input { text: text.clone(), id, enter: true });
        if sent {
            self.inner.update_value(|inner| {
                inner.lines.insert(id, text);
                while inner.lines.len() > LINES {
                    inner.lines.pop_first();
                }
            });
        }
        sent
    }

    fn next_input(self) -> u64 {
        let id = self.inner.try_update_value(|inner| {
            inner.inputs += 1;
            inner.inputs
        });
        id.unwrap_or_default()
    }

    fn typed(self, typed: TypedFrame) {
        let line = self.inner.try_update_value(|inner| inner.lines.remove(&typed.typed));
        let Some(why) = typed.refused else { return };
        let title = if typed.stands { words::NOT_ENTERED } else { words::NOT_TYPED };
        self.page.say.notice(Notice::new(Level::Warning, title.to_owned(), why));
        if let Some(line) = line.flatten().filter(|line| !typed.stands && !line.is_empty()) {
            self.returned.set(Some(line));
        }
    }
}
