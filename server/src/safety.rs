//! Prevents core dumps and unredacted panic messages (H73).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use svc_domain::redact::redact_text;

/// Switches core dumps of this process off: they would hold every secret it knows.
///
/// Only the soft limit goes down, so that an agent or an operator may still raise it.
pub fn no_core_dumps() {
    let maximum = getrlimit(Resource::Core).maximum;
    // A kernel that refuses to lower a limit does not exist; nothing depends on it.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}

/// Reports panics through the log, redacted, and as one entry.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let words = redact_text(&words(panic));
        let trace = Backtrace::capture();
        match trace.status() {
            BacktraceStatus::Captured => {
                let stack_info = redact_text(&trace.to_string());
                tracing::error!(exc_info = words, stack_info, "a defect of svc at {place}");
            }
            _ => tracing::error!(exc_info = words, "a defect of svc at {place}"),
        }
    }));
}

fn words(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_dumps_are_off_and_may_be_raised_again_by_others() {
        let before = getrlimit(Resource::Core);
        no_core_dumps();
        let after = getrlimit(Resource::Core);
        assert_eq!(after.current, Some(0));
        assert_eq!(after.maximum, before.maximum);
    }
}
