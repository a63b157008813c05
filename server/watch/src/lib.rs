//! "Something changed in this directory": one native watcher, many listeners, portable fallback.
//!
//! A listener never misses a change for good: whenever the native watch cannot be trusted (not
//! armed yet, directory missing, out of watches, a file system that does not report remote writes,
//! an overflown kernel queue) it is told to look at everything again, on a timer if need be.
//! What the change was is for the listener to find out; opening and reading files wakes nobody.

mod fallback;
mod hub;
mod post;
mod slot;

pub use fallback::{Pace, reports_changes};
pub use hub::{Subscription, Watcher};
pub use slot::Changes;
