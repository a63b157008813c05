//! Notices when the wall clock goes otherwise than the timers.
//! It was set, or the machine slept.

use crate::auth::lock;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use svc_ports::Clock;
use svc_shared::Timestamp;
use tokio::sync::watch;

/// How often both are compared, as long as anybody wants to know.
const TICK: Duration = Duration::from_secs(1);
/// A difference that is told.
const DRIFT_MILLIS: u128 = 250;

/// One comparison for all who wait for a point in time.
pub(super) struct Steps {
    clock: Arc<dyn Clock>,
    count: watch::Sender<u64>,
    is_running: Mutex<bool>,
}

impl Steps {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, count: watch::Sender::new(0), is_running: Mutex::default() }
    }

    /// Changes within about a second of every step from now on.
    pub(super) fn watch(self: &Arc<Self>) -> watch::Receiver<u64> {
        let mut is_running = lock(&self.is_running);
        let receiver = self.count.subscribe();
        if !*is_running {
            *is_running = true;
            let began = (self.clock.now(), Instant::now());
            tokio::spawn(Arc::clone(self).compare(began));
        }
        receiver
    }

    async fn compare(self: Arc<Self>, mut since: (Timestamp, Instant)) {
        loop {
            tokio::time::sleep(TICK).await;
            {
                let mut is_running = lock(&self.is_running);
                if self.count.receiver_count() == 0 {
                    *is_running = false;
                    return;
                }
            }
            let now = (self.clock.now(), Instant::now());
            let wall = i128::from(now.0.as_millis()) - i128::from(since.0.as_millis());
            let steady = now.1.duration_since(since.1).as_millis();
            if wall.abs_diff(i128::try_from(steady).unwrap_or(i128::MAX)) > DRIFT_MILLIS {
                since = now;
                self.count.send_modify(|count| *count += 1);
            }
        }
    }
}

/// Waits for a step; for ever where none is watched for.
pub(super) async fn stepped(steps: Option<&mut watch::Receiver<u64>>) {
    let is_over = match steps {
        Some(steps) => steps.changed().await.is_err(),
        None => true,
    };
    if is_over {
        std::future::pending::<()>().await;
    }
}
