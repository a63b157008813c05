//! The live log of one bridge.
//!
//! It has its own socket while the panel is visible. Older pages are read on demand.

use crate::model::log::{Entry, Log, Older, Waiting};
use crate::model::outcome::{Level, Notice};
use crate::model::wire;
use crate::page::Page;
use crate::socket::{Heard, Reconnecting, Socket};
use crate::text::log as words;
use crate::{api, browser};
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::internal::LogPage;
use svc_shared::paths;
use svc_shared::stream::{LogFrame, close};

/// Lines that come within this time are shown together.
const GATHER: Duration = Duration::from_millis(40);
/// A hidden tab keeps its socket this long.
const HIDDEN: Duration = Duration::from_secs(60);
/// Bytes of an older page.
const PAGE_BYTES: u32 = 65_536;

/// How the socket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feeding {
    /// Not connected yet.
    Connecting,
    /// Connected since (milliseconds).
    Open(i64),
    /// Lost, trying again.
    Lost,
    /// The kind has no log.
    NoLog,
    /// The row is gone.
    Gone,
}

type Rows = ArcRwSignal<Arc<Vec<Entry>>>;

/// The feed of one panel. Lives as long as its owner.
#[derive(Clone, Copy)]
pub struct Feed {
    /// The page.
    pub page: Page,
    /// Instance id.
    pub id: StoredValue<String>,
    log: StoredValue<Log>,
    rows: StoredValue<Vec<(i64, Rows)>>,
    /// Ids of the chunks, oldest first.
    pub chunks: RwSignal<Vec<i64>>,
    /// Lines kept.
    pub lines: RwSignal<usize>,
    /// How to read further back.
    pub older: RwSignal<Older>,
    /// How the socket stands.
    pub feeding: RwSignal<Feeding>,
    /// Lines added at the end so far: changes whenever something came in.
    pub arrived: RwSignal<usize>,
    /// Shows nothing new for now.
    pub is_paused: RwSignal<bool>,
    /// Lines that wait meanwhile.
    pub waiting: RwSignal<usize>,
    /// Told before chunks come or go, while the old ones can still be measured.
    pub before_change: StoredValue<Option<Callback<()>>>,
    inner: StoredValue<Inner, LocalStorage>,
}

#[derive(Default)]
struct Inner {
    line: Reconnecting,
    queue: Waiting,
    is_gathering: bool,
    is_reading: bool,
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
            log: StoredValue::new(Log::default()),
            rows: StoredValue::new(Vec::new()),
            chunks: RwSignal::new(Vec::new()),
            lines: RwSignal::new(0),
            older: RwSignal::new(Older::Unknown),
            feeding: RwSignal::new(Feeding::Connecting),
            arrived: RwSignal::new(0),
            is_paused: RwSignal::new(false),
            waiting: RwSignal::new(0),
            before_change: StoredValue::new(None),
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

    /// The rows of a chunk.
    pub fn rows(self, chunk: i64) -> Option<Rows> {
        self.rows.with_value(|rows| {
            rows.iter().find(|(id, _)| *id == chunk).map(|(_, rows)| rows.clone())
        })
    }

    /// Reads the log.
    pub fn with<T>(self, read: impl FnOnce(&Log) -> T) -> T {
        self.log.with_value(read)
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
        if !self.is_paused.get_untracked() {
            self.reopen();
        }
    }

    /// Opens the socket again where it was closed on purpose.
    fn reopen(self) {
        let is_closed = self.inner.with_value(|inner| inner.line.socket().is_none());
        let ended = matches!(self.feeding.get_untracked(), Feeding::NoLog | Feeding::Gone);
        if is_closed && !ended {
            self.connect();
        }
    }

    fn connect(self) {
        let Some(id) = self.id.try_get_value() else {
            return; // the panel was closed while this was waited for
        };
        let mut path = format!("{}?format=json", paths::bridge_log(&id));
        let waiting = self.inner.with_value(|inner| inner.queue.cursor().map(paths::segment));
        let shown = || self.log.with_value(|log| log.resume_at().map(paths::segment));
        if let Some(cursor) = waiting.or_else(shown) {
            path.push_str("&cursor=");
            path.push_str(&cursor);
        }
        let socket = Socket::open(&path, move |heard| match heard {
            Heard::Open => self.feeding.set(Feeding::Open(self.page.clock.now())),
            // A frame of a newer version says nothing we could show.
            Heard::Text(text) => drop(wire::read(&text).map(|frame| self.gather(frame))),
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
            close::WRONG_KIND => self.feeding.set(Feeding::NoLog),
            _ => self.again(),
        }
    }

    fn again(self) {
        self.feeding.set(Feeding::Lost);
        self.inner.try_update_value(|inner| inner.line.connect_later(move || self.connect()));
    }

    fn gather(self, frame: LogFrame) {
        let is_paused = self.is_paused.get_untracked();
        let begin = self.inner.try_update_value(|inner| {
            inner.line.works();
            if !inner.queue.push(frame) && is_paused {
                inner.line.close();
            }
            !std::mem::replace(&mut inner.is_gathering, true)
        });
        if begin == Some(true) {
            set_timeout(move || self.flush(), GATHER);
        }
    }

    fn flush(self) {
        if self.is_paused.try_get_untracked() == Some(true) {
            let waiting = self.inner.try_update_value(|inner| {
                inner.is_gathering = false;
                inner.queue.lines()
            });
            self.waiting.set(waiting.unwrap_or(0));
            return;
        }
        let Some(frames) = self.inner.try_update_value(|inner| {
            inner.is_gathering = false;
            inner.queue.take()
        }) else {
            return;
        };
        let added = self.log.try_update_value(|log| log.append(frames)).unwrap_or(0);
        self.publish();
        self.arrived.update(|n| *n += added);
    }

    /// Stops showing what comes in, or shows what has come meanwhile.
    pub fn pause(self, pauses: bool) {
        self.is_paused.set(pauses);
        if pauses {
            return;
        }
        self.waiting.set(0);
        self.flush();
        self.reopen();
    }

    fn publish(self) {
        if let Some(Some(before)) = self.before_change.try_get_value() {
            before.run(());
        }
        let ids = self.log.with_value(|log| {
            let mut ids = Vec::new();
            for chunk in log.chunks() {
                ids.push(chunk.id);
                match self.rows(chunk.id) {
                    Some(rows) => {
                        if !rows.with_untracked(|now| Arc::ptr_eq(now, &chunk.rows)) {
                            rows.set(Arc::clone(&chunk.rows));
                        }
                    }
                    None => {
                        let rows = ArcRwSignal::new(Arc::clone(&chunk.rows));
                        self.rows.update_value(|all| all.push((chunk.id, rows)));
                    }
                }
            }
            self.lines.set(log.lines());
            self.older.set(log.older());
            ids
        });
        self.rows.update_value(|all| all.retain(|(id, _)| ids.binary_search(id).is_ok()));
        if self.chunks.with_untracked(|now| *now != ids) {
            self.chunks.set(ids);
        }
    }

    /// Reads the page before the first line.
    pub fn read_older(self) {
        let Older::Before { cursor, again } = self.older.get_untracked() else {
            return;
        };
        let begin =
            self.inner.try_update_value(|inner| !std::mem::replace(&mut inner.is_reading, true));
        if begin != Some(true) {
            return;
        }
        spawn_local(async move {
            let Some(id) = self.id.try_get_value() else {
                return;
            };
            let path = format!(
                "{}?tail={PAGE_BYTES}&before={}",
                paths::instance_action(&id, "log"),
                paths::segment(&cursor)
            );
            let page = api::get::<LogPage>(&path).await;
            let is_here = self.inner.try_update_value(|inner| inner.is_reading = false).is_some();
            match page {
                Ok(page) if is_here => {
                    self.log.update_value(|log| {
                        log.prepend(page, again);
                    });
                    self.publish();
                }
                Ok(_) => {}
                Err(problem) => {
                    let title = words::NOT_READ.to_owned();
                    self.page.say.notice(Notice::new(Level::Warning, title, problem.words()));
                }
            }
        });
    }
}
