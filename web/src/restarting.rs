//! The restart of the service that was asked for on this page.

use crate::api;
use crate::model::problem::Problem;
use crate::page::Page;
use crate::text::restarting as words;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::paths;

/// How far it is. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Restarting {
    /// When it was asked for; none while none is under way.
    ///
    /// In milliseconds of the server's clock.
    pub since: RwSignal<Option<i64>>,
    /// Why the service did not begin it.
    pub problem: RwSignal<Option<Problem>>,
    /// Nobody knows whether the request arrived.
    is_unanswered: RwSignal<bool>,
}

impl Restarting {
    /// None is under way.
    pub fn new() -> Self {
        Self {
            since: RwSignal::new(None),
            problem: RwSignal::new(None),
            is_unanswered: RwSignal::new(false),
        }
    }

    /// Asks for it.
    pub fn begin(self, page: Page) {
        if self.since.get_untracked().is_some() {
            return;
        }
        if page.live.is_offline.get_untracked() {
            self.problem.set(Some(Problem::NoAnswer));
            return;
        }
        self.is_unanswered.set(false);
        self.problem.set(None);
        self.since.set(Some(untrack(|| page.clock.seconds())));
        spawn_local(async move {
            let asked = api::request(Method::POST, paths::SERVICE_RESTART, None, None).await;
            match asked {
                Ok(_) => {}
                // It may have begun: then another start of the service answers, else the same one.
                Err(Problem::NoAnswer) => {
                    self.is_unanswered.set(true);
                    // The line may have come back before.
                    page.live.look_again();
                }
                Err(problem) => {
                    self.since.set(None);
                    self.problem.set(Some(problem));
                }
            }
        });
    }

    /// The service that was to be restarted has answered again.
    ///
    /// Where nobody answered the request, it never arrived.
    pub fn did_not_begin(self) {
        if self.since.with_untracked(Option::is_some) && self.is_unanswered.get_untracked() {
            self.since.set(None);
            self.is_unanswered.set(false);
            self.problem.set(Some(Problem::NoAnswer));
        }
    }

    /// Ends it when another start of the service has answered.
    ///
    /// False when none was under way.
    pub fn settle(self, page: Page) -> bool {
        let was = self.since.get_untracked().is_some();
        if was {
            self.since.set(None);
            page.say.done(words::IS_BACK.to_owned());
        }
        was
    }
}
