//! What the keeper says: to its log, and to the service that starts it.

use std::io::{self, Write as _};

/// Says a line to the keeper's own log.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}"); // a full disk: the log is not worth the session
}

/// Makes a line for the service of an error.
pub(super) fn cannot<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("refused cannot {what}: {error}")
}
