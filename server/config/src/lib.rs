//! The configuration: schema, loading, checking, showing.
//!
//! [`find()`] searches the file, [`load`] reads it together with the environment, [`show()`] lists
//! the values. The environment is always passed in: nothing here reads that of the process, and
//! nothing here writes. Calls block for as long as it takes to read a few small files.

mod config;
mod describe;
mod edit;
mod environment;
mod find;
mod front_matter;
mod held;
mod json_schema;
mod keys;
mod live;
mod load;
mod loaded;
mod nearest;
mod report;
pub mod schema;
mod secret;
mod setting;
mod show;
pub mod table;
mod tree;
mod value;
mod wanted;

pub use config::{
    Agent, Api, Auth, CeilingAction, Ceilings, Clones, ConfigValues, ConfigWrite, CookieSecure, Db,
    Hosted, InstanceDefaults, LogFormat, LogLevel, LoginShepherd, Logs, Mcp, Metrics,
    Notifications, Observability, Project, Reaper, Restart, ReverseProxy, ScopeUse, Tls,
    TlsProvision, Ui, Usage, UsageMode, Webhooks,
};
pub use describe::{describe, file_reason, section_of};
pub use edit::EditError;
pub use environment::{Environment, default_state_dir, is_scrubbed};
pub use find::{Candidate, FindError, Found, Step, candidates, find};
pub use front_matter::front_matter;
pub use held::Config;
pub use json_schema::json_schema;
pub use live::{Applied, is_named_in};
pub use load::{is_password_hash, judge_exposure, load, load_candidate, load_text};
pub use loaded::{Loaded, Origin};
pub use report::{ConfigErrors, Location, Problem, Warning, WarningKind};
pub use secret::{MASK, Secret};
pub use setting::Source;
pub use show::{Row, View, show};
pub use wanted::{OldName, Wanted, candidate, old_names, reconciled};
