//! Posts of events: the bodies of `/api/webhooks`.

use crate::Timestamp;
use crate::status::words;
use serde::{Deserialize, Serialize};

words! {
    /// How a post to one target stands.
    PostState {
        /// It waits for its turn, or for another attempt.
        Waiting = "waiting",
        /// The target took it.
        Delivered = "delivered",
        /// It was given up.
        Failed = "failed",
    }
}

/// One event at one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookPost {
    /// The id that every target is told.
    pub delivery: String,
    /// Its name.
    pub event: String,
    /// When it happened.
    pub at: Timestamp,
    /// How it stands.
    pub state: PostState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried again.
    pub next_at: Option<Timestamp>,
    /// What the target answered.
    pub status: Option<u16>,
    /// Why it was not taken.
    pub reason: Option<String>,
}

/// An entry of `webhooks.urls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookTarget {
    /// Its place in the list, from 1.
    pub entry: usize,
    /// Scheme, host and port; the rest is secret.
    pub target: String,
    /// How many posts wait.
    pub waiting: u64,
    /// How many were given up and can be tried again.
    pub failed: u64,
    /// The last ones, the newest first.
    pub posts: Vec<WebhookPost>,
}

/// Answer of `GET /api/webhooks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookReport {
    /// Whether events are posted at all.
    pub enabled: bool,
    /// Whether posts are signed.
    pub signed: bool,
    /// Whether posts are kept until they are taken (`webhooks.outbox`).
    pub outbox: bool,
    /// The events that are posted.
    pub events: Vec<String>,
    /// Every usable entry, in the order of the list.
    pub targets: Vec<WebhookTarget>,
}

/// Body of `POST /api/webhooks/send-test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestWebhook {
    /// Place in `webhooks.urls`, from 1; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<usize>,
}

/// How a test post to one target ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedWebhook {
    /// Place in `webhooks.urls`, from 1.
    pub entry: usize,
    /// Scheme, host and port; the rest of a URL may be secret.
    pub target: String,
    /// Id of the delivery, as the target was told it.
    pub delivery: String,
    /// What the target answered.
    pub status: Option<u16>,
    /// Why it was not delivered.
    pub error: Option<String>,
}

impl TestedWebhook {
    /// Whether the target accepted it.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Answer of `POST /api/webhooks/send-test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookTests {
    /// In the order of the list.
    pub tested: Vec<TestedWebhook>,
}

/// Body of `POST /api/webhooks/replay`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplayWebhooks {
    /// Place in `webhooks.urls`, from 1; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<usize>,
    /// Post everything again that came after this delivery.
    ///
    /// Without it what was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Answer of `POST /api/webhooks/replay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedWebhooks {
    /// How many posts are tried again.
    pub replayed: u64,
}
