//! Readiness of this machine.
//!
//! It is read once after the start, and again when the user asks.

use crate::model::problem::Problem;
use crate::reactive::effect;
use crate::{api, focus};
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::keepers::Keeper;
use svc_shared::internal::strays::Stray;
use svc_shared::internal::{Check, Doctor};
use svc_shared::status::CheckStatus;

/// What was found.
#[derive(Clone, Copy)]
pub struct Ready {
    /// The last answer.
    pub found: RwSignal<Option<Result<Doctor, Problem>>>,
    /// The checks run.
    pub is_asking: RwSignal<bool>,
    /// What they are to be asked once more about when they have run.
    is_outdated: StoredValue<bool>,
    /// Processes without a live bridge, as long as the checks complain of them.
    pub strays: RwSignal<Vec<Stray>>,
    /// Processes that hold terminals, for whoever looks at Readiness.
    pub keepers: RwSignal<Vec<Keeper>>,
}

/// The check that processes without a live bridge are the matter of.
pub const STRAYS: &str = "strays";

/// The check that the processes that hold terminals are the matter of.
pub const KEEPERS: &str = "keepers";

/// The check that folders without a person's trust are the matter of.
pub const TRUST: &str = "workspace-trust";

impl Ready {
    /// Nothing asked yet.
    pub fn new() -> Self {
        Self {
            found: RwSignal::new(None),
            is_asking: RwSignal::new(false),
            is_outdated: StoredValue::new(false),
            strays: RwSignal::new(Vec::new()),
            keepers: RwSignal::new(Vec::new()),
        }
    }

    /// Runs the checks, unless they run already.
    pub fn ask(self) {
        if self.is_asking.get_untracked() {
            return;
        }
        self.is_asking.set(true);
        spawn_local(async move {
            let mut is_anew = self.is_outdated.get_value();
            let mut looks_for_strays = is_anew;
            let mut found = None;
            loop {
                // Without an answer, what was known stays: a kill of what is gone is refused.
                if looks_for_strays && let Ok(strays) = api::get("/api/strays").await {
                    self.strays.set(strays);
                }
                let is_complete = found.is_some();
                if is_complete {
                    self.found.set(found.take());
                }
                if is_anew {
                    self.rescue_focus();
                }
                if is_complete {
                    is_anew = self.is_outdated.get_value();
                    if !is_anew {
                        break;
                    }
                }
                self.is_outdated.set_value(false);
                let answer = api::get::<Doctor>("/api/doctor").await;
                looks_for_strays = answer.as_ref().is_ok_and(|doctor| {
                    let mut checks = doctor.checks.iter();
                    checks.any(|c| c.name == STRAYS && !c.status.is(&CheckStatus::Ok))
                });
                if !looks_for_strays {
                    self.strays.set(Vec::new());
                }
                found = Some(answer);
            }
            self.is_asking.set(false);
        });
    }

    /// Reads which processes hold terminals, each time the checks have run.
    pub fn follow_keepers(self) {
        effect(move || {
            if self.found.with(Option::is_some) {
                spawn_local(async move {
                    // Without an answer, what was known stays: a kill of what is gone is refused.
                    if let Ok(keepers) = api::get("/api/keepers").await {
                        self.keepers.set(keepers);
                        focus::rescue("[data-testid=doctor-again]");
                    }
                });
            }
        });
    }

    /// Reads readiness again after an action.
    ///
    /// The list of stray processes is read first, because the action changed it.
    pub fn ask_anew(self) {
        self.is_outdated.set_value(true);
        self.ask();
    }

    /// The button that was pressed goes with its process.
    fn rescue_focus(self) {
        focus::rescue(match self.strays.with_untracked(Vec::is_empty) {
            true => "[data-testid=doctor-again]",
            false => "[data-testid=act-end-stray]",
        });
    }

    /// Checks with this verdict that hinder work. Tracked.
    ///
    /// A decision that is left to the person, such as whom to trust, hinders nothing by itself.
    pub fn count(self, status: CheckStatus) -> usize {
        self.count_besides(status, "")
    }

    /// The same without one check, of which a view tells by itself. Tracked.
    pub fn count_besides(self, status: CheckStatus, told: &str) -> usize {
        self.found.with(|found| match found {
            Some(Ok(doctor)) => {
                let counts = |c: &&Check| c.status.is(&status) && !is_decision(c) && c.name != told;
                doctor.checks.iter().filter(counts).count()
            }
            _ => 0,
        })
    }
}

/// Whether a warning only waits for a person's decision.
pub fn is_decision(check: &Check) -> bool {
    check.name == TRUST && check.status.is(&CheckStatus::Warn)
}
