//! Pure decisions: no I/O, no clock, no async.
pub mod admission;
pub mod argv;
pub mod bridge;
pub mod decide;
pub mod effect;
pub mod host;
pub mod identity;
pub mod log_escape;
pub mod observe;
pub mod origin;
pub mod posture;
pub mod prefix;
pub mod redact;
pub mod root_path;
pub mod slug;
