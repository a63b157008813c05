//! Running the service.
//! What it says about itself, its first run, its checks and its leftovers.

mod access;
pub(crate) mod accounts;
pub(crate) mod audit;
pub mod backup;
mod config;
pub mod deps;
pub mod doctor;
mod figures;
mod history;
pub mod legacy;
pub(crate) mod metrics;
pub(crate) mod report;
pub(crate) mod reserve;
pub mod restart;
pub mod setup;
pub(crate) mod status;
pub(crate) mod support;
pub(crate) mod temporaries;
mod ui_prefs;
pub mod upgrade;

pub use access::AccessReport;
pub use accounts::Accounts;
pub use audit::{Actor, acting_as, acting_as_now};
pub(crate) use config::reload_request;
pub use config::{
    ConfigEditor, ConfigFile, ConfigList, ConfigSurface, FileChange, Reloaded, Written, ask_reload,
};
pub use figures::{Figures, HostedFigures};
pub use history::History;
pub use metrics::Metrics;
pub use report::Reports;
pub use status::{Status, VERSION};
pub use support::{OLDER_LOG, SERVICE_LOG, Support, SupportBundle};
pub use ui_prefs::Preferences;
