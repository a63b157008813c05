//! The live view of one Direct Session: its socket and what was heard.

use crate::model::direct::Talk;
use crate::socket::{Heard, Reconnecting, Socket};
use leptos::prelude::*;
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
    line: StoredValue<Reconnecting, LocalStorage>,
}

impl DirectFeed {
    /// Opens the feed of an instance; it ends with the owner.
    pub fn open(id: String) -> Self {
        let feed = Self {
            id: StoredValue::new(id),
            talk: RwSignal::new(Talk::default()),
            hearing: RwSignal::new(Hearing::Connecting),
            line: StoredValue::new_local(Reconnecting::default()),
        };
        on_cleanup(move || {
            feed.line.try_update_value(Reconnecting::close);
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
                self.line.update_value(Reconnecting::works);
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
        let is_refused = socket.is_none();
        self.line.update_value(|line| line.hold(socket));
        if is_refused {
            self.again();
        }
    }

    fn again(self) {
        self.hearing.set(Hearing::Lost);
        self.line.try_update_value(|line| line.connect_later(move || self.connect()));
    }
}
