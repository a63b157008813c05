//! The views, one per address, and the dialogs that open over them.

pub mod about;
mod actions;
pub mod activity;
pub mod cause;
mod details;
pub mod doctor;
pub mod external;
mod external_row;
pub mod home;
mod job_row;
pub mod jobs;
pub mod launch;
mod log;
mod log_bar;
mod log_lines;
pub mod missing;
pub mod open;
pub mod project;
mod project_row;
pub mod projects;
mod row;
mod rows;
pub mod session;
mod session_row;
pub mod trust;
pub mod welcome;
