//! Starts launches that waited for the reset of a plan limit.

use crate::launch_plans::LaunchPlans;
use crate::nudge::{SAFETY_TICK, at_most_a_tick};
use crate::transcripts::Transcripts;
use std::sync::Arc;
use tokio::sync::watch;
use tracing::warn;

/// Runs until the service ends.
///
/// `writes` tells of every write of the database, whoever made it.
pub(super) async fn run(
    plans: Arc<LaunchPlans>,
    transcripts: Arc<Transcripts>,
    mut writes: watch::Receiver<u64>,
) {
    let mut limits = transcripts.signs.limits.changes();
    loop {
        writes.mark_unchanged();
        limits.mark_unchanged();
        let next = match Box::pin(plans.start_due()).await {
            Ok(next) => next,
            Err(error) => {
                warn!(%error, "no launch that waits is started now; it is tried again");
                Some(SAFETY_TICK)
            }
        };
        tokio::select! {
            () = transcripts.tasks.shutdown().cancelled() => return,
            changed = writes.changed() => if changed.is_err() { return },
            changed = limits.changed() => if changed.is_err() { return },
            () = at_most_a_tick(next) => {}
        }
    }
}
