//! The measures: what is set up, what is asked for, and what it may cost.

mod credentials;
mod cycles;
mod idle;
mod lifecycle;
mod logs;
mod memory;
mod page;
mod prompt_agent;
mod requests;
mod start;
mod stream;

use crate::machine;
use crate::report::Figure;
use crate::world::Programs;
use anyhow::Result;

/// What all measures need to know.
pub struct Plan {
    pub programs: Programs,
    /// Everything once and small.
    pub short: bool,
}

impl Plan {
    /// A number for the full form and one for the short form.
    pub fn pick<T>(&self, full: T, short: T) -> T {
        if self.short { short } else { full }
    }
}

/// A measure.
pub type Measure = fn(&Plan) -> Result<Vec<Figure>>;

/// All of them, in the order of the table.
pub const MEASURES: &[(&str, Measure)] = &[
    ("start", start::measure),
    ("requests", requests::measure),
    ("credentials", credentials::measure),
    ("memory", memory::measure),
    ("idle", idle::measure),
    ("lifecycle", lifecycle::measure),
    ("prompt-agent", prompt_agent::measure),
    ("logs", logs::measure),
    ("stream", stream::measure),
    ("cycles", cycles::measure),
    ("page", page::measure),
];

/// Figures of one measure. Each gets the load average at the time it is added.
pub struct Found {
    figures: Vec<Figure>,
    /// Times of the short form mean nothing, so nothing is held against a budget.
    short: bool,
}

impl Found {
    pub fn of(plan: &Plan) -> Self {
        Self { figures: Vec::new(), short: plan.short }
    }

    /// Takes a figure and shows it: a run is long, and what is known is known.
    pub fn add(&mut self, figure: Figure) {
        let mut figure = Figure { load: machine::load(), ..figure };
        if self.short {
            figure.budgets.clear();
        }
        crate::say(&figure.row());
        self.figures.push(figure);
    }

    pub fn all(self) -> Vec<Figure> {
        self.figures
    }
}

/// Milliseconds.
pub fn millis(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
