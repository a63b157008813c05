//! Every text of the page, in English.
//!
//! Texts are whole sentences: no other file joins pieces of them.

pub mod access;
pub mod agent_config;
pub mod agent_sign_in;
pub mod bulk;
pub mod cause;
pub mod changes;
pub mod conversation;
pub mod direct;
pub mod gallery;
pub mod inbox;
pub mod instructions;
pub mod job;
pub mod keepers;
pub mod keys;
pub mod launch;
pub mod log;
pub mod maintenance;
pub mod new_project;
pub mod notifications;
pub mod notify;
pub mod page;
pub mod past;
pub mod planned;
pub mod prefs;
pub mod push;
pub mod ready;
pub mod report;
pub mod restart;
pub mod restarting;
pub mod restore;
pub mod session;
pub mod settings;
pub mod spending;
pub mod status;
pub mod support;
pub mod terminal;
pub mod usage;
pub mod webhooks;
