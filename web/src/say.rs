//! Messages to the person: toasts, and the two live regions that read them out.

use crate::model::outcome::{Follows, Level, Notice};
use leptos::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::api::instances::Instance;

/// At most one announcement in this time: a screen reader cannot keep up with more.
const PAUSE: Duration = Duration::from_secs(2);
/// More messages than this are not read one by one.
const READ_AT_ONCE: usize = 3;

/// What repeats a request that was not answered.
pub type Repeat = Callback<()>;

/// What takes back something that was done on screen only, and what carries it out.
#[derive(Clone)]
pub struct Undo {
    // Not callbacks of the framework: those go with the row they were made in.
    /// Takes it back.
    pub back: Arc<dyn Fn() + Send + Sync>,
    /// Carries it out; told whether the page is being left.
    pub commit: Arc<dyn Fn(bool) + Send + Sync>,
}

/// A message on the screen.
#[derive(Clone)]
pub struct Toast {
    /// For the list.
    pub key: u64,
    /// What it says.
    pub notice: Notice,
    /// Sends the request once more.
    pub repeat: Option<Repeat>,
    /// It is there until it is put away; others go by themselves.
    pub stays: bool,
    /// Takes back what it tells.
    pub undo: Option<Undo>,
}

/// All messages.
#[derive(Clone, Copy)]
pub struct Say {
    /// Shown now, oldest first.
    pub toasts: RwSignal<Vec<Toast>>,
    /// Text of the polite region.
    pub polite: RwSignal<String>,
    /// Text of the assertive region.
    pub assertive: RwSignal<String>,
    waiting: RwSignal<Vec<String>>,
    is_pausing: RwSignal<bool>,
    next_key: StoredValue<u64>,
}

impl Say {
    /// Nothing said yet.
    pub fn new() -> Self {
        Self {
            toasts: RwSignal::new(Vec::new()),
            polite: RwSignal::new(String::new()),
            assertive: RwSignal::new(String::new()),
            waiting: RwSignal::new(Vec::new()),
            is_pausing: RwSignal::new(false),
            next_key: StoredValue::new(0),
        }
    }

    /// Shows a message.
    pub fn notice(self, notice: Notice) {
        self.with_repeat(notice, None);
    }

    /// Shows a message with a button that repeats the request.
    pub fn with_repeat(self, notice: Notice, repeat: Option<Repeat>) {
        self.show(notice, repeat, None);
    }

    /// Shows a message with Undo.
    ///
    /// Undo is possible as long as the message is shown.
    pub fn with_undo(self, notice: Notice, undo: Undo) {
        self.show(notice, None, Some(undo));
    }

    fn show(self, notice: Notice, repeat: Option<Repeat>, undo: Option<Undo>) {
        let spoken = if notice.body.is_empty() {
            format!("{}.", notice.title)
        } else {
            format!("{}. {}", notice.title, notice.body)
        };
        if notice.level.stays() {
            self.alert(&spoken);
        } else {
            self.politely(&spoken);
        }
        let key = self.next_key.get_value();
        self.next_key.set_value(key + 1);
        let stays = notice.level.stays() || notice.follows.is_some();
        let toast = Toast { key, stays, notice, repeat, undo };
        self.toasts.update(|toasts| {
            // The same sentence twice is one message.
            toasts.retain(|t| {
                t.undo.is_some()
                    || t.notice.title != toast.notice.title
                    || t.notice.body != toast.notice.body
            });
            toasts.push(toast);
        });
    }

    /// What messages follow.
    pub fn followed(self) -> Vec<Follows> {
        self.toasts.with_untracked(|toasts| {
            toasts.iter().filter_map(|toast| toast.notice.follows.clone()).collect()
        })
    }

    /// Takes away the messages that follow an instance which is gone.
    pub fn unfollow(self, id: &str) {
        self.toasts.update(|toasts| {
            toasts.retain(|toast| toast.notice.follows.as_ref().is_none_or(|it| it.id != id));
        });
    }

    /// Takes away the message that this record settles; true when there was one.
    pub fn take_following(self, bridge: &Instance) -> bool {
        let mut found = false;
        self.toasts.update(|toasts| {
            toasts.retain(|t| {
                let follows = t.notice.follows.as_ref().is_some_and(|f| f.is_settled_by(bridge));
                found |= follows;
                !follows
            });
        });
        found
    }

    /// The message with this key.
    pub fn toast(self, key: &str) -> Option<Toast> {
        self.toasts
            .with_untracked(|toasts| toasts.iter().find(|t| t.key.to_string() == key).cloned())
    }

    /// Takes a message away; what it told can no longer be taken back.
    pub fn dismiss(self, key: u64) {
        if let Some(undo) = self.take(key).and_then(|toast| toast.undo) {
            (undo.commit)(false);
        }
    }

    fn take(self, key: u64) -> Option<Toast> {
        let at = self.toasts.with_untracked(|toasts| toasts.iter().position(|t| t.key == key))?;
        self.toasts.try_update(|toasts| toasts.remove(at))
    }

    /// Undoes the action of a message.
    ///
    /// Without a key the last action that can be undone is undone. Returns false when there is
    /// none.
    pub fn take_back(self, key: Option<u64>) -> bool {
        let last = self.toasts.with_untracked(|toasts| {
            let mut can = toasts.iter().rev().filter(|t| t.undo.is_some());
            can.find(|t| key.is_none_or(|key| key == t.key)).map(|t| t.key)
        });
        let undo = last.and_then(|key| self.take(key)).and_then(|toast| toast.undo);
        undo.as_ref().inspect(|undo| (undo.back)()).is_some()
    }

    /// The page is left: what can be taken back is carried out.
    pub fn leave(self) {
        for undo in self.toasts.get_untracked().into_iter().filter_map(|toast| toast.undo) {
            (undo.commit)(true);
        }
        self.toasts.update(|toasts| toasts.retain(|toast| toast.undo.is_none()));
    }

    /// Says something without showing it.
    pub fn politely(self, text: &str) {
        self.waiting.update(|waiting| waiting.push(text.to_owned()));
        if !self.is_pausing.get_untracked() {
            self.read_out();
        }
    }

    fn read_out(self) {
        let waiting = self.waiting.try_update(std::mem::take).unwrap_or_default();
        if waiting.is_empty() {
            self.is_pausing.set(false);
            return;
        }
        let rest = waiting.len().saturating_sub(READ_AT_ONCE);
        let mut text: Vec<String> = waiting.into_iter().take(READ_AT_ONCE).collect();
        if rest > 0 {
            text.push(crate::text::page::and_more(rest));
        }
        self.polite.set(text.join(" "));
        self.is_pausing.set(true);
        set_timeout(move || self.read_out(), PAUSE);
    }

    /// Says something at once.
    pub fn alert(self, text: &str) {
        self.assertive.set(text.to_owned());
    }

    /// Shows a short confirmation.
    pub fn done(self, title: String) {
        self.notice(Notice::new(Level::Success, title, ""));
    }
}
