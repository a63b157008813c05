//! The rules of the page: plain Rust, no browser, tested on the host.

pub mod agent_config;
pub mod basics;
pub mod bulk;
pub mod cause;
pub mod changed_words;
pub mod changes;
pub mod direct;
pub mod external;
pub mod find;
pub mod inbox;
pub mod job;
pub mod launch;
pub mod line_ends;
pub mod link;
pub mod log;
pub mod markdown;
pub mod message;
pub mod new_project;
pub mod notify;
pub mod offers;
pub mod order;
pub mod outcome;
pub mod pace;
pub mod palette;
pub mod past;
pub mod planned;
pub mod prefs;
pub mod problem;
pub mod projects;
pub mod push;
pub mod report;
pub mod restart;
pub mod restore;
pub mod route;
pub mod sections;
pub mod settings;
pub mod shown;
pub mod spending;
pub mod state;
pub mod status;
pub mod stream;
pub mod talk;
pub mod terminal;
pub mod time;
pub mod usage;
pub mod viewed;
pub mod window;
pub mod wire;

#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tokens;
