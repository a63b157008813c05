//! Notifications of the service: where they go, when they wait, and what they say.

pub mod address;
mod parts;
pub mod quiet;
pub mod text;
