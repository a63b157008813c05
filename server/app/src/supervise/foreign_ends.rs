//! Announces ends of bridges that other processes recorded.
//!
//! A command has nobody to tell. The service reads its write, and the row of the announcement
//! makes sure that each end is told once, whoever else saw it.

use crate::bridges::transition::Transitions;
use crate::tasks::Tasks;
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// Between two tries to announce an end.
const PAUSE: Duration = Duration::from_secs(5);

/// Announces such ends until the service ends.
pub(super) async fn run(transitions: Arc<Transitions>, tasks: Tasks) {
    let copies = &transitions.registry.copies;
    let mut changes = copies.changes();
    let mut owed = Vec::new();
    loop {
        owed.extend(copies.take_foreign_ends());
        let mut failed = Vec::new();
        for (bridge, event) in owed {
            if let Err(error) = transitions.announce_end(&bridge, event).await {
                warn!(bridge.id = %bridge.id, error = %error, "an end is not announced yet, and is \
                    tried again");
                failed.push((bridge, event));
            }
        }
        owed = failed;
        tokio::select! {
            () = tasks.shutdown().cancelled() => return,
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(PAUSE), if !owed.is_empty() => {}
        }
    }
}
