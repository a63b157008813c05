//! What all measures share: the plan of a run, its figures and its output.

use crate::machine;
use crate::report::Figure;
use crate::world::Programs;
use std::io::Write as _;

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
        say(&figure.row());
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

/// Prints a line for the reader. A reader that went away is no reason to fail.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
