//! The messages to Direct Sessions that the service has not taken yet.

use crate::browser;
use crate::model::message::Draft;
use leptos::prelude::*;
use std::collections::BTreeMap;

/// Storage key in this tab; the id of the session follows.
const KEPT: &str = "svc.message.";

/// The drafts by session.
///
/// They live as long as the page, so an answer finds its message in every view.
#[derive(Clone, Copy)]
pub struct Drafts(RwSignal<BTreeMap<String, Draft>>);

impl Drafts {
    /// Nothing is typed.
    pub fn new() -> Self {
        Self(RwSignal::new(BTreeMap::new()))
    }

    /// Begins with what this tab has kept.
    pub fn open(self, id: &str) {
        if self.0.with_untracked(|all| all.contains_key(id)) {
            return;
        }
        let text = browser::drafted(&format!("{KEPT}{id}")).unwrap_or_default();
        self.0.update(|all| drop(all.insert(id.to_owned(), Draft { text, sent: None })));
    }

    /// What stands in the box. Tracked.
    pub fn text(self, id: &str) -> String {
        self.0.with(|all| all.get(id).map(|draft| draft.text.clone()).unwrap_or_default())
    }

    /// Whether a message is on its way. Tracked.
    pub fn is_sending(self, id: &str) -> bool {
        self.0.with(|all| all.get(id).is_some_and(|draft| draft.sent.is_some()))
    }

    /// Takes what is typed.
    pub fn type_in(self, id: &str, text: String) {
        self.change(id, |draft| draft.text = text);
    }

    /// Takes what stands in the box on its way.
    pub fn begin(self, id: &str) -> Option<String> {
        self.change(id, Draft::begin)
    }

    /// Takes the answer to a message.
    pub fn end(self, id: &str, message: &str, is_taken: bool) {
        self.change(id, |draft| draft.end(message, is_taken));
    }

    fn change<T: Default>(self, id: &str, change: impl FnOnce(&mut Draft) -> T) -> T {
        let changed = self.0.try_update(|all| {
            let draft = all.entry(id.to_owned()).or_default();
            (change(draft), draft.untaken())
        });
        let Some((result, untaken)) = changed else { return T::default() };
        let kept = Some(untaken.as_str()).filter(|text| !text.is_empty());
        browser::draft(&format!("{KEPT}{id}"), kept);
        result
    }
}
