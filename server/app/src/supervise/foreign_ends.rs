//! Announces ends of bridges that other processes recorded.
//!
//! A command has nobody to tell. The service reads its write, and the row of the announcement
//! makes sure that each end is told once, whoever else saw it.

use crate::bridges::transition::Transitions;
use crate::tasks::Tasks;
use std::sync::Arc;
use tracing::warn;

/// Announces such ends until the service ends.
pub(super) async fn run(transitions: Arc<Transitions>, tasks: Tasks) {
    let copies = &transitions.registry.copies;
    let mut changes = copies.changes();
    loop {
        for (bridge, event) in copies.take_foreign_ends() {
            if let Err(error) = transitions.announce_end(&bridge, event).await {
                warn!(bridge.id = %bridge.id, error = %error, "an end was not announced");
            }
        }
        tokio::select! {
            () = tasks.shutdown().cancelled() => return,
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}
