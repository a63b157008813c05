//! "Something changed in this directory", for many subscribers.
//!
//! One native file watcher serves all subscribers. A subscriber never misses a change for good:
//! whenever the native watch cannot be trusted, the subscriber is told to read everything again, by
//! a timer if need be. A native watch cannot be trusted while it is being set up, while the directory
//! is missing, when the system has no watches left, on a file system that does not report remote
//! writes, and after the kernel's queue has overflowed.
//!
//! The subscriber finds out itself what the change was. Opening and reading files wakes nobody.

mod fallback;
mod hub;
mod mailbox;
mod watch;

pub use fallback::{Pace, reports_changes};
pub use hub::{Subscription, Watcher};
pub use mailbox::Changes;
