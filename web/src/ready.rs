//! Readiness of this machine, read once when the page is there and whenever a person asks.

use crate::api;
use crate::dom::prelude::*;
use crate::model::problem::Problem;
use crate::parts::reactive::Held;
use leptos::task::spawn_local;
use svc_shared::internal::Doctor;
use svc_shared::status::CheckStatus;

/// What was found.
#[derive(Clone, Copy)]
pub struct Ready {
    /// The last answer.
    pub found: Held<Option<Result<Doctor, Problem>>>,
    /// The checks run.
    pub is_asking: RwSignal<bool>,
}

impl Ready {
    /// Nothing asked yet.
    pub fn new() -> Self {
        Self { found: Held::new(None), is_asking: RwSignal::new(false) }
    }

    /// Runs the checks, unless they run already.
    pub fn ask(self) {
        if self.is_asking.get_untracked() {
            return;
        }
        self.is_asking.set(true);
        spawn_local(async move {
            let found = api::get::<Doctor>("/api/doctor").await;
            self.found.set(Some(found));
            self.is_asking.set(false);
        });
    }

    /// Checks with this verdict. Tracked.
    pub fn count(self, status: CheckStatus) -> usize {
        self.found.with(|found| match found {
            Some(Ok(doctor)) => doctor.checks.iter().filter(|c| c.status.is(&status)).count(),
            _ => 0,
        })
    }
}
