//! The sessions that a restart of the machine ended and that can be restored.
//!
//! They are read only when a record says that there may be some.

use crate::api;
use crate::browser;
use crate::model::problem::Problem;
use crate::reactive::{effect, memo};
use crate::store::Store;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::restore::{RestoreCandidate, RestoreOffer};
use svc_shared::paths::RESTORE;

/// Where this tab keeps which offer was put off.
const LATER: &str = "svc.restore.later";

/// What was found.
#[derive(Clone, Copy)]
pub struct Restores {
    /// The last answer; `None` before the first.
    pub found: RwSignal<Option<Result<Vec<RestoreCandidate>, Problem>>>,
    /// The offer that a person has put off in this tab.
    later: RwSignal<String>,
}

impl Restores {
    /// Nothing asked yet.
    pub fn new() -> Self {
        Self {
            found: RwSignal::new(None),
            later: RwSignal::new(browser::drafted(LATER).unwrap_or_default()),
        }
    }

    /// Reads the offer whenever the records say that it may be another one.
    pub fn follow(self, store: Store) {
        let ended = memo(move || store.ended_with_machine());
        let step = memo(move || store.restore.with(|job| job.as_ref().map(|j| j.state.clone())));
        effect(move || {
            step.track();
            if store.is_loaded.get() {
                match ended.with(Vec::is_empty) {
                    true => self.found.set(Some(Ok(Vec::new()))),
                    false => self.ask(),
                }
            }
        });
    }

    /// Reads the offer.
    pub fn ask(self) {
        spawn_local(async move {
            let found = api::get::<RestoreOffer>(RESTORE).await;
            self.found.set(Some(found.map(|offer| offer.candidates)));
        });
    }

    /// What is offered on Home. Tracked.
    pub fn offered(self) -> usize {
        let ids = self.ids();
        if ids.is_empty() || ids == self.later.get() {
            return 0;
        }
        ids.split(' ').count()
    }

    /// Hides the offer in this tab until it is another one.
    pub fn put_off(self) {
        let ids = untrack(|| self.ids());
        browser::draft(LATER, Some(&ids));
        self.later.set(ids);
    }

    fn ids(self) -> String {
        self.found.with(|found| match found {
            Some(Ok(all)) => {
                let ids: Vec<&str> = all.iter().map(|one| one.instance_id.as_str()).collect();
                ids.join(" ")
            }
            Some(Err(_)) | None => String::new(),
        })
    }
}
