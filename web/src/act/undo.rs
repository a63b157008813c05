//! Removals that can be undone.
//!
//! The row goes at once. The request is sent when its message goes, or when the page is left.

use super::{Target, Write};
use crate::model::job::JobView as _;
use crate::model::offers::{Offer, offers};
use crate::model::outcome::{Level, Notice};
use crate::model::sections;
use crate::page::Page;
use crate::say::Undo;
use crate::store::JOB;
use crate::text::{job as job_words, page::link, session as words};
use crate::{api, browser, focus};
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::Instance;

impl Page {
    /// Removes the row of an ended bridge.
    pub fn forget(self, target: Target) {
        let title = words::forgotten(&target.project);
        self.remove(Write::forget(target), title);
    }

    /// Removes an ended job.
    pub fn remove_job(self, target: Target) {
        let title = job_words::removed(&target.project);
        self.remove(Write::remove_job(target), title);
    }

    /// Removes the row of this key, or says why it stays. False when there is none.
    pub fn remove_row(self, key: &str) -> bool {
        let refusal = if let Some(id) = key.strip_prefix(JOB) {
            match self.store.job(id) {
                None => return false,
                Some(job) if job.is_live() => return false,
                Some(job) => {
                    self.remove_unless_offline(move |page| page.remove_job(Target::of_job(&job)))
                }
            }
        } else {
            let Some(record) = self.store.instance(key) else {
                return false;
            };
            let bridge = record.get_untracked();
            match offers(&bridge, None).forget {
                Offer::Absent => return false,
                Offer::Refused(why) => Some(why),
                Offer::Ready => {
                    self.remove_unless_offline(move |page| page.forget(Target::of(&bridge)))
                }
            }
        };
        if let Some(why) = refusal {
            self.say.politely(&why);
        }
        true
    }

    fn remove_unless_offline(self, remove: impl FnOnce(Self)) -> Option<String> {
        if self.live.is_offline.get_untracked() {
            return Some(link::OFFLINE.to_owned());
        }
        remove(self);
        None
    }

    fn remove(self, write: Write, title: String) {
        let id = write.about.clone();
        self.store.hide(&id);
        let back = Arc::new(move || {
            self.store.show_again(&id);
            focus_row(&id);
        });
        let write = Write { is_said: true, ..write };
        let commit = Arc::new(move |is_leaving: bool| {
            if is_leaving {
                api::leave(write.method.as_str(), &write.path);
            } else if self.live.is_offline.get_untracked() {
                self.later.update(|later| later.push(write.clone()));
            } else {
                self.write(write.clone());
            }
        });
        self.said_with_undo(title, Undo { back, commit });
    }

    fn said_with_undo(self, title: String, undo: Undo) {
        self.say.with_undo(Notice::new(Level::Success, title, ""), undo);
        focus::keep();
    }

    /// Sends what was removed for good while the service could not be reached.
    pub fn send_later(self) {
        for write in self.later.get_untracked() {
            self.write(write);
        }
        self.later.set(Vec::new());
    }

    /// Dismisses a bridge that ended badly.
    ///
    /// It moves to the ended rows on this page; the record does not change.
    pub fn dismiss(self, bridge: &Instance) {
        let id = bridge.instance_id.to_string();
        let seen = sections::place(bridge).seen;
        self.store.dismiss(&seen, true);
        let back = Arc::new(move || {
            self.store.dismiss(&seen, false);
            focus_row(&id);
        });
        let undo = Undo { back, commit: Arc::new(|_| ()) };
        self.said_with_undo(words::dismissed(&bridge.project), undo);
    }
}

fn focus_row(id: &str) {
    let name = format!("[data-row$=\"{id}\"] .name");
    browser::after_paint(move || {
        browser::focus(&name);
    });
}
