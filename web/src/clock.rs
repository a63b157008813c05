//! The clock of the page.
//!
//! It has two signals, so that only texts that count seconds change every second.

use crate::browser;
use leptos::prelude::*;
use std::time::Duration;

/// Seconds between steps of the slow signal: ages in minutes may lag this much.
const SLOW_EVERY_MS: i64 = 15_000;

/// The time, as the server has it.
#[derive(Clone, Copy)]
pub struct Clock {
    offset: RwSignal<i64>,
    fast: RwSignal<i64>,
    slow: RwSignal<i64>,
}

impl Clock {
    /// Starts ticking. While the tab is hidden, nothing changes.
    pub fn start() -> Self {
        let now = browser::device_now();
        let clock =
            Self { offset: RwSignal::new(0), fast: RwSignal::new(now), slow: RwSignal::new(now) };
        set_interval(
            move || {
                if !browser::is_hidden() {
                    clock.tick();
                }
            },
            Duration::from_secs(1),
        );
        clock
    }

    /// Shows the present at once.
    pub fn tick(self) {
        let now = browser::device_now() + self.offset.get_untracked();
        self.fast.set(now);
        if (now - self.slow.get_untracked()).abs() >= SLOW_EVERY_MS {
            self.slow.set(now);
        }
    }

    /// The server said what time it is.
    pub fn correct(self, server_now: i64) {
        let offset = server_now - browser::device_now();
        // Less than two seconds is the way of the message.
        if (offset - self.offset.get_untracked()).abs() > 2_000 {
            self.offset.set(offset);
            self.tick();
        }
    }

    /// How far this device's clock is from the server's, milliseconds.
    pub fn skew(self) -> i64 {
        self.offset.get()
    }

    /// Now, tracked every second.
    pub fn seconds(self) -> i64 {
        self.fast.get()
    }

    /// Now, tracked as finely as an age since `at` is shown.
    pub fn for_age(self, at: i64) -> i64 {
        let slow = self.slow.get();
        if crate::model::time::counts_seconds(self.fast.get_untracked() - at) {
            self.fast.get()
        } else {
            // A row that comes in between two slow steps must not lie in the future.
            slow.max(at)
        }
    }

    /// Now, without tracking.
    pub fn now(self) -> i64 {
        self.fast.get_untracked()
    }
}
