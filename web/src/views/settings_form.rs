//! The settings while they are edited: what was read, what is typed, and the save.

use crate::api;
use crate::model::problem::Problem;
use crate::model::settings::{Edits, conflicts, reasons};
use crate::model::wire;
use crate::page::page;
use crate::reactive::derived;
use crate::text::settings as words;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use svc_shared::error::ErrorCode;
use svc_shared::internal::settings::{ConfigReport, ConfigSpec, SaveConfig, SavedConfig};
use svc_shared::paths;

/// Everything that the view holds. Cheap to copy.
#[derive(Clone, Copy)]
pub struct SettingsForm {
    /// The first list.
    pub basic: RwSignal<Option<Result<ConfigReport, Problem>>>,
    /// The second list, once it is open.
    pub advanced: RwSignal<Option<ConfigReport>>,
    /// What is not saved yet, of both lists.
    pub edits: RwSignal<Edits>,
    /// What is wrong with a key.
    pub wrong: RwSignal<BTreeMap<String, String>>,
    /// Keys that somebody else changed meanwhile.
    pub conflicts: RwSignal<BTreeSet<String>>,
    /// What is said about the whole.
    pub strip: RwSignal<Option<String>>,
    /// The words that narrow the list.
    pub filter: RwSignal<String>,
    /// The dialog that asks for the password.
    pub asks: RwSignal<bool>,
    /// When the proof of the password ends, milliseconds of the server's clock.
    pub open_until: RwSignal<Option<i64>>,
    /// Whether the changes are listed.
    pub is_reviewed: RwSignal<bool>,
    /// A save is on its way.
    pub is_pending: RwSignal<bool>,
}

impl SettingsForm {
    /// Nothing is read yet.
    pub fn new() -> Self {
        Self {
            basic: RwSignal::new(None),
            advanced: RwSignal::new(None),
            edits: RwSignal::new(Edits::new()),
            wrong: RwSignal::new(BTreeMap::new()),
            conflicts: RwSignal::new(BTreeSet::new()),
            strip: RwSignal::new(None),
            filter: RwSignal::new(String::new()),
            asks: RwSignal::new(false),
            open_until: RwSignal::new(None),
            is_reviewed: RwSignal::new(false),
            is_pending: RwSignal::new(false),
        }
    }

    /// Reads the lists again.
    ///
    /// Edits stay; those of keys that changed meanwhile are marked.
    pub fn read(self) {
        spawn_local(async move { self.read_now().await });
    }

    async fn read_now(self) {
        let found = api::get::<ConfigReport>(paths::CONFIG).await;
        let is_open = self.advanced.try_with_untracked(Option::is_some) == Some(true);
        let second = match is_open {
            true => api::get::<ConfigReport>(paths::CONFIG_ADVANCED).await.ok(),
            false => None,
        };
        // The view may be gone by now.
        let Some(edits) = self.edits.try_get_untracked() else { return };
        let mut marked = BTreeSet::new();
        if let (Some(Ok(before)), Ok(now)) = (self.basic.get_untracked(), &found) {
            marked.extend(conflicts(&before, now, &edits));
        }
        if let (Some(before), Some(now)) = (self.advanced.get_untracked(), &second) {
            marked.extend(conflicts(&before, now, &edits));
        }
        marked.retain(|key| edits.contains_key(key));
        self.conflicts.set(marked);
        self.basic.set(Some(found));
        // Locked or opened meanwhile: then what was asked for before says nothing about it.
        if is_open && self.advanced.with_untracked(Option::is_some) {
            self.advanced.set(second);
        }
    }

    /// Whether saved values are not in use yet.
    pub fn waits(self) -> Signal<bool> {
        let waits = |report: &ConfigReport| report.specs.values().any(|spec| spec.pending);
        derived(move || {
            self.basic.with(|basic| matches!(basic, Some(Ok(report)) if waits(report)))
                || self.advanced.with(|second| second.as_ref().is_some_and(waits))
        })
    }

    /// The value of the file and what is known about a key, of either list. Tracked.
    pub fn known(self, key: &str) -> Option<(Value, ConfigSpec)> {
        let of = |report: &ConfigReport| {
            Some((report.fields.get(key)?.clone(), report.specs.get(key)?.clone()))
        };
        let basic = self.basic.with(|basic| basic.as_ref()?.as_ref().ok().and_then(of));
        basic.or_else(|| self.advanced.with(|second| second.as_ref().and_then(of)))
    }

    /// Takes the change of one key back.
    pub fn undo(self, key: &str) {
        self.edits.update(|edits| drop(edits.remove(key)));
        self.wrong.update(|wrong| drop(wrong.remove(key)));
        self.conflicts.update(|keys| _ = keys.remove(key));
    }

    /// Whether something is typed that is not saved. Tracked.
    pub fn is_unsaved(self) -> bool {
        !self.edits.with(Edits::is_empty) || !self.wrong.with(BTreeMap::is_empty)
    }

    /// Takes every change back.
    pub fn discard(self) {
        self.edits.set(Edits::new());
        self.wrong.set(BTreeMap::new());
        self.conflicts.set(BTreeSet::new());
        self.strip.set(None);
        self.is_reviewed.set(false);
        // The controls are drawn again with the values of the file.
        self.read();
    }

    /// Sends the edits of each list with what was read of the file.
    pub fn save(self) {
        if self.is_pending.get_untracked() || !self.wrong.with_untracked(BTreeMap::is_empty) {
            return;
        }
        let Some(Ok(basic)) = self.basic.get_untracked() else { return };
        let Some(hash) = basic.hash.clone() else { return };
        let (first, second): (Edits, Edits) = self
            .edits
            .get_untracked()
            .into_iter()
            .partition(|(key, _)| basic.specs.contains_key(key));
        self.is_pending.set(true);
        self.strip.set(None);
        let page = page();
        spawn_local(async move {
            let outcome = async {
                let (mut hash, mut waits) = (hash, false);
                for (path, edits) in [(paths::CONFIG, first), (paths::CONFIG_ADVANCED, second)] {
                    if edits.is_empty() {
                        continue;
                    }
                    let keys: Vec<String> = edits.keys().cloned().collect();
                    let body = wire::written(&SaveConfig { edits, hash: hash.clone() });
                    let answer = api::request(Method::PUT, path, Some(body), None).await;
                    let saved = api::understood::<SavedConfig>(answer)?;
                    hash = saved.hash;
                    waits |= saved.restart_required;
                    // What is saved is no edit any more, even if the second list is refused.
                    let _ =
                        self.edits.try_update(|edits| edits.retain(|key, _| !keys.contains(key)));
                }
                Ok(waits)
            };
            let outcome: Result<bool, Problem> = outcome.await;
            if self.is_pending.try_set(false).is_some() {
                return; // the view is gone
            }
            match outcome {
                Ok(waits) => {
                    let said = if waits { words::SAVED_WAITS } else { words::SAVED };
                    page.say.done(said.to_owned());
                    // Other views show what a launch would do now.
                    page.live.read_basics();
                }
                Err(problem) => self.refused(&problem),
            }
            self.read_now().await;
            crate::focus::rescue("[data-testid=settings-filter]");
        });
    }

    fn refused(self, problem: &Problem) {
        if problem.is(ErrorCode::ReauthRequired) {
            self.asks.set(true);
            return;
        }
        if problem.is(ErrorCode::Stale) {
            self.strip.set(Some(words::STALE.to_owned()));
            return;
        }
        let said = problem.words();
        let of_keys = self.edits.with_untracked(|edits| reasons(&said, edits));
        self.wrong.set(of_keys);
        self.strip.set(Some(said));
    }
}
