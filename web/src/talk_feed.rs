//! The turns of one conversation: pages on demand, and a socket while it is shown.

use crate::api;
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::model::talk::{PAGE, Window};
use crate::model::wire;
use crate::page::{Page, page};
use crate::socket::{Heard, Reconnecting, Socket};
use crate::text::conversation as words;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::conversations::{Conversation, ConversationPage, ConversationTail};
use svc_shared::paths;
use svc_shared::stream::close;

/// How the reading stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The first page is on its way.
    First,
    /// There is something to show.
    Done,
    /// Nothing could be read.
    Failed(Problem),
}

/// The feed of one reader. Lives as long as its owner.
#[derive(Clone, Copy)]
pub struct TalkFeed {
    /// The project.
    pub project: StoredValue<String>,
    /// Reference of the conversation.
    pub conversation: StoredValue<String>,
    /// The turns that are shown.
    pub window: RwSignal<Window>,
    /// What is known about the conversation.
    pub about: RwSignal<Option<Conversation>>,
    /// How the reading stands.
    pub reading: RwSignal<Reading>,
    /// Turns that came at the end: counts up.
    pub arrived: RwSignal<usize>,
    /// The connection is lost.
    pub is_lost: RwSignal<bool>,
    /// The file is gone.
    pub is_gone: RwSignal<bool>,
    /// The file was replaced while it was shown.
    pub is_replaced: RwSignal<bool>,
    /// An older or newer page is on its way.
    pub is_turning: RwSignal<bool>,
    /// Told before older turns come, while the old height can still be measured.
    pub before_older: StoredValue<Option<Callback<()>>>,
    offset: StoredValue<u64>,
    page: Page,
    line: StoredValue<Reconnecting, LocalStorage>,
}

impl TalkFeed {
    /// Opens a conversation at its end, or around a turn.
    pub fn open(project: String, conversation: String, around: Option<u64>) -> Self {
        let feed = Self {
            project: StoredValue::new(project),
            conversation: StoredValue::new(conversation),
            window: RwSignal::new(Window::default()),
            about: RwSignal::new(None),
            reading: RwSignal::new(Reading::First),
            arrived: RwSignal::new(0),
            is_lost: RwSignal::new(false),
            is_gone: RwSignal::new(false),
            is_replaced: RwSignal::new(false),
            is_turning: RwSignal::new(false),
            before_older: StoredValue::new(None),
            offset: StoredValue::new(0),
            page: page(),
            line: StoredValue::new_local(Reconnecting::default()),
        };
        on_cleanup(move || {
            feed.line.try_update_value(Reconnecting::close);
        });
        feed.begin(around);
        feed
    }

    /// Path of the conversation; `None` when the reader is gone.
    pub fn path(self) -> Option<String> {
        self.path_by(paths::conversation)
    }

    fn path_by(self, path: impl Fn(&str, &str) -> String) -> Option<String> {
        let project = self.project.try_get_value()?;
        Some(path(&project, &self.conversation.try_get_value()?))
    }

    /// Reads the end, or the turns around one.
    pub fn begin(self, around: Option<u64>) {
        let Some(path) = self.path() else { return };
        let path = match around {
            Some(turn) => {
                format!("{path}?order=asc&limit={PAGE}&cursor={}", turn.saturating_sub(PAGE / 2))
            }
            None => format!("{path}?limit={PAGE}"),
        };
        self.reading.set(Reading::First);
        spawn_local(async move {
            let answer = api::get::<ConversationPage>(&path).await;
            if self.path().is_none() {
                return; // left meanwhile
            }
            match answer {
                Ok(mut page) => {
                    page.turns.sort_by_key(|turn| turn.index);
                    self.offset.set_value(page.offset);
                    self.about.set(Some(page.about));
                    self.window.set(Window::of(page.turns, page.total));
                    self.reading.set(Reading::Done);
                    self.connect();
                }
                Err(problem) => self.reading.set(Reading::Failed(problem)),
            }
        });
    }

    /// Reads the page before the first turn.
    pub fn read_older(self) {
        let older = self.window.with_untracked(Window::older);
        if let Some((from, many)) = older {
            self.turn(from, from + many, true);
        }
    }

    /// Reads the page after the last turn.
    pub fn read_newer(self) {
        let (end, is_at_end) = self.window.with_untracked(|all| (all.end(), all.is_at_end()));
        if !is_at_end {
            self.turn(end, end + PAGE, false);
        }
    }

    /// Reads the turns `from..to`, in several answers when they are large.
    fn turn(self, from: u64, to: u64, is_older: bool) {
        if self.is_turning.get_untracked() {
            return;
        }
        self.is_turning.set(true);
        spawn_local(async move {
            let (mut turns, mut at, mut total) = (Vec::new(), from, 0);
            while at < to {
                let Some(path) = self.path() else { return };
                let path = format!("{path}?order=asc&cursor={at}&limit={}", to - at);
                let page = match api::get::<ConversationPage>(&path).await {
                    Ok(page) => page,
                    Err(problem) => {
                        let title = words::NOT_READ.to_owned();
                        let notice = Notice::new(Level::Warning, title, problem.words());
                        self.page.say.notice(notice);
                        break;
                    }
                };
                total = page.total;
                turns.extend(page.turns);
                match page.next_cursor {
                    Some(next) if next > at => at = next,
                    _ => at = to,
                }
            }
            if self.path().is_none() {
                return;
            }
            // With a hole nothing is shown: older turns must follow each other.
            let is_whole = at >= to;
            if is_older && is_whole {
                if let Some(Some(before)) = self.before_older.try_get_value() {
                    before.run(());
                }
                self.window.update(|all| all.prepend(turns));
            } else if !is_older {
                self.window.update(|all| {
                    all.append(turns, total);
                });
            }
            self.is_turning.set(false);
        });
    }

    fn connect(self) {
        let Some(path) = self.path_by(paths::conversation_tail) else { return };
        let path = format!("{path}?offset={}", self.offset.get_value());
        let socket = Socket::open(&path, move |heard| match heard {
            Heard::Open => self.is_lost.set(false),
            Heard::Text(text) => drop(wire::read(&text).map(|tail| self.take(tail))),
            Heard::Closed(code) => self.closed(code),
        });
        let is_refused = socket.is_none();
        self.line.update_value(|line| line.hold(socket));
        if is_refused {
            self.again();
        }
    }

    fn take(self, tail: ConversationTail) {
        self.line.update_value(Reconnecting::works);
        self.offset.set_value(tail.offset);
        self.about.update(|about| {
            if let Some(about) = about {
                about.live = tail.live;
                about.turn_count = tail.total;
                let last = tail.turns.iter().rev().find_map(|turn| turn.timestamp);
                about.last_ts = last.or(about.last_ts);
            }
        });
        if tail.reset {
            self.is_replaced.set(true);
            self.window.set(Window::of(tail.turns, tail.total));
            return;
        }
        let came = tail.turns.len();
        self.window.update(|all| {
            all.append(tail.turns, tail.total);
        });
        if came > 0 {
            self.arrived.update(|n| *n += came);
        }
    }

    fn closed(self, code: u16) {
        if self.path().is_none() {
            return;
        }
        self.line.update_value(Reconnecting::close);
        if code == close::UNKNOWN {
            self.is_gone.set(true);
        } else {
            self.again();
        }
    }

    fn again(self) {
        self.is_lost.set(true);
        self.line.try_update_value(|line| line.connect_later(move || self.connect()));
    }
}
