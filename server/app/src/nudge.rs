//! Tells the service of the same state directory what another process did.

use crate::tasks::blocking;
use serde::Serialize;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_domain::redact::redact_text;
use svc_shared::api::jobs::StopAgentResult;
use tracing::debug;

/// Slow look at everything, should all wake-ups have been lost.
pub(crate) const SAFETY_TICK: Duration = Duration::from_secs(5);

/// Waits this long, but no longer than to the next slow look.
///
/// Without a time it waits for ever.
///
/// What is due at a time of day is looked at again meanwhile, because the clock may be set.
pub(crate) async fn at_most_a_tick(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait.min(SAFETY_TICK)).await,
        None => std::future::pending().await,
    }
}

/// The socket of a service, for nudges.
pub(crate) fn socket(state_dir: &Path) -> PathBuf {
    state_dir.join("run").join("notify.sock")
}

/// Tells a running server, if there is one, that the registry has changed.
/// Never waits.
pub(crate) fn nudge(state_dir: &Path) {
    send(state_dir, b"changed");
}

/// Tells a running server how a command's stop of a background job ended.
/// The server then announces it. Never waits.
pub(crate) fn hand_over_settled(state_dir: &Path, result: &StopAgentResult) {
    match serde_json::to_vec(result) {
        Ok(message) => send(state_dir, &message),
        Err(error) => debug!(error = %error, "the end of a job cannot be told to the service"),
    }
}

fn send(state_dir: &Path, message: &[u8]) {
    let Ok(sender) = UnixDatagram::unbound() else { return };
    let _ = sender.set_nonblocking(true);
    let _ = sender.send_to(message, socket(state_dir)); // nobody serves: fine
}

/// Answers a command at its own socket.
///
/// Never waits; a command that is gone misses nothing.
pub(crate) async fn answer<T: Serialize>(command: PathBuf, answer: &T, asked_for: &'static str) {
    let message = serde_json::to_vec(answer);
    let sent = blocking(move || {
        let sender = UnixDatagram::unbound()?;
        sender.set_nonblocking(true)?;
        sender.send_to(&message?, command)
    });
    if let Ok(Err(error)) = sent.await {
        debug!(error = %error, "a command that asked for {asked_for} was not answered");
    }
}

/// The result in a message of [`hand_over_settled`].
pub(crate) fn settled(message: &[u8]) -> Option<StopAgentResult> {
    let result: StopAgentResult = serde_json::from_slice(message).ok()?;
    // The state directory is private, but what leaves the service is masked here all the same.
    Some(StopAgentResult { detail: result.detail.as_deref().map(redact_text), ..result })
}
