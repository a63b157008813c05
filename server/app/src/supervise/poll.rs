//! Ticks at a distance that a person may change meanwhile.

use std::sync::Arc;
use std::time::Duration;
use svc_config::Config;
use tokio::time::{Instant, sleep_until};

/// Ticks at the distance of `claude.agents_json_poll_interval_seconds`.
///
/// A changed distance counts from the next tick on.
pub(super) struct AgentPoll {
    config: Arc<Config>,
    last: Option<Instant>,
}

impl AgentPoll {
    /// The first tick comes at once.
    pub fn new(config: &Arc<Config>) -> Self {
        Self { config: Arc::clone(config), last: None }
    }

    fn distance(&self) -> Duration {
        self.config.claude.agents_json_poll_interval
    }

    /// The next tick. Cancel-safe.
    pub async fn tick(&mut self) {
        if let Some(last) = self.last {
            sleep_until(last + self.distance()).await;
        }
        self.last = Some(Instant::now());
    }
}
