//! Running the service: what it says about itself, its first run, its checks and its leftovers.

mod about;
pub(crate) mod audit;
pub mod doctor;
mod figures;
mod history;
pub mod legacy;
pub(crate) mod metrics;
pub mod setup;
mod temporaries;
mod ui_prefs;

pub use about::VERSION;
pub use audit::{Actor, acting_as};
pub use figures::Figures;
