//! A request to give up, asked for between two pieces of work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells long work that somebody asked for its end. Clones share the request.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error when somebody asked.
    ///
    /// # Errors
    /// Somebody asked. Its kind is not `Interrupted`, which copying would try again.
    pub fn check(&self) -> io::Result<()> {
        if self.is_asked() {
            return Err(io::Error::other("a signal asked for the end"));
        }
        Ok(())
    }
}
