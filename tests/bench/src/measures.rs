//! The measures: what is set up, what is asked for, and what it may cost.

mod conversations;
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
mod terminal;
mod tls;

use crate::plan::Plan;
use crate::report::Figure;
use anyhow::Result;

/// A measure.
pub type Measure = fn(&Plan) -> Result<Vec<Figure>>;

/// All of them, in the order of the table.
pub const MEASURES: &[(&str, Measure)] = &[
    ("start", start::measure),
    ("requests", requests::measure),
    ("tls", tls::measure),
    ("credentials", credentials::measure),
    ("memory", memory::measure),
    ("idle", idle::measure),
    ("lifecycle", lifecycle::measure),
    ("prompt-agent", prompt_agent::measure),
    ("logs", logs::measure),
    ("conversations", conversations::measure),
    ("stream", stream::measure),
    ("terminal", terminal::measure),
    ("cycles", cycles::measure),
    ("page", page::measure),
];
