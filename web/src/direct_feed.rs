//! The live view of one Direct Session: its socket and what was heard.

use crate::model::direct::Talk;
use crate::model::stream::delay_ms;
use crate::socket::{Heard, Socket};
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use std::time::Duration;
use svc_shared::paths;
use svc_shared::stream::close;

/// How the socket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// Not connected yet.
    Connecting,
    /// Connected.
    Open,
    /// Lost, trying again.
    Lost,
    /// The session has ended and everything was heard.
    Complete,
    /// The row is gone.
    Gone,
}

/// The feed of one panel. Lives as long as its owner.
#[derive(Clone, Copy)]
pub struct DirectFeed {
    id: StoredValue<String>,
    /// What was heard.
    pub talk: RwSignal<Talk>,
    /// How the socket stands.
    pub hearing: RwSignal<Hearing>,
    inner: StoredValue<Inner, LocalStorage>,
}

#[derive(Default)]
struct Inner {
    socket: Option<Socket>,
    attempt: u32,
    timer: Option<TimeoutHandle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.clear();
        }
    }
}

impl DirectFeed {
    /// Opens the feed of an instance; it ends with the owner.
    pub fn open(id: String) -> Self {
        let feed = Self {
            id: StoredValue::new(id),
            talk: RwSignal::new(Talk::default()),
            hearing: RwSignal::new(Hearing::Connecting),
            inner: StoredValue::new_local(Inner::default()),
        };
        on_cleanup(move || {
            feed.inner.try_update_value(|inner| inner.socket = None);
        });
        feed.connect();
        feed
    }

    /// Connects where that makes sense: after a resume too.
    pub fn connect(self) {
        let Some(id) = self.id.try_get_value() else {
            return; // the panel was closed while this was waited for
        };
        let (stream, seq) = self.talk.with_untracked(|talk| (talk.stream.clone(), talk.seq));
        let path = format!("{}?after={seq}&stream={stream}", paths::hosted(&id));
        let socket = Socket::open(&path, move |heard| match heard {
            Heard::Open => {
                self.hearing.set(Hearing::Open);
                self.inner.update_value(|inner| inner.attempt = 0);
            }
            Heard::Text(text) => {
                if let Ok(frame) = serde_json::from_str(&text) {
                    self.talk.update(|talk| talk.take(&frame));
                }
            }
            Heard::Closed(close::COMPLETE) => self.hearing.set(Hearing::Complete),
            Heard::Closed(close::UNKNOWN | close::WRONG_KIND) => self.hearing.set(Hearing::Gone),
            Heard::Closed(_) => self.again(),
        });
        if socket.is_none() {
            self.again();
        }
        self.inner.update_value(|inner| inner.socket = socket);
    }

    fn again(self) {
        self.hearing.set(Hearing::Lost);
        self.inner.update_value(|inner| {
            let wait = delay_ms(inner.attempt, false, js_sys::Math::random());
            inner.attempt = inner.attempt.saturating_add(1);
            let wait = Duration::from_secs_f64(wait / 1000.0);
            inner.timer = set_timeout_with_handle(move || self.connect(), wait).ok();
        });
    }
}
