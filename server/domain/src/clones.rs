//! What may be cloned from where, and what git says while it clones.

pub mod address;
pub mod progress;
pub mod redirect;
pub mod source;
