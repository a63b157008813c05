//! Notifications of the service: the bodies of `/api/notifications`.

use crate::Timestamp;
use crate::internal::push::PushDevice;
use crate::status::words;
use serde::{Deserialize, Serialize};

words! {
    /// What became of a notification at one target.
    DeliveryState {
        /// It waits for its turn.
        Waiting = "waiting",
        /// It was sent, and the service has not answered yet.
        Sent = "sent",
        /// The service took it.
        Accepted = "accepted",
        /// The service did not take it, or was not reached.
        Failed = "failed",
        /// The service took it back, because the question was answered.
        Withdrawn = "withdrawn",
    }
}

/// One notification at one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationDelivery {
    /// Names the notification, the same at all targets.
    pub delivery: String,
    /// What it is about.
    pub event: String,
    /// Its first line.
    pub title: String,
    /// When it was made.
    pub at: Timestamp,
    /// How it stands.
    pub state: DeliveryState,
    /// What the service answered: a status of HTTP, or a code of SMTP.
    pub status: Option<u16>,
    /// Why it failed.
    pub reason: Option<String>,
}

/// An entry of `notifications.urls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationTarget {
    /// Its place in the list, from 1.
    pub entry: usize,
    /// The service, as people call it; empty for an entry that is disabled.
    pub service: String,
    /// Scheme, host and port; the rest is secret.
    pub target: String,
    /// Why the entry is disabled.
    pub problem: Option<String>,
    /// The last notifications, the newest first.
    pub deliveries: Vec<NotificationDelivery>,
}

/// Answer of `GET /api/notifications`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationReport {
    /// Whether events are told at all.
    pub enabled: bool,
    /// The events that are told.
    pub events: Vec<String>,
    /// The quiet hours, in the zone of the service.
    pub quiet_hours: Option<String>,
    /// Whether it is quiet now.
    pub is_quiet: bool,
    /// How many events wait for the end of the quiet hours.
    pub held: usize,
    /// Every entry, in the order of the list.
    pub targets: Vec<NotificationTarget>,
    /// Devices can be notified while the page is closed.
    pub push_enabled: bool,
    /// These devices, the one that asks first.
    pub devices: Vec<PushDevice>,
}

/// Body of `POST /api/notifications/send-test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestNotification {
    /// Place in `notifications.urls`, from 1; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<usize>,
}

/// How a test of one target ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedTarget {
    /// Its place in the list, from 1.
    pub entry: usize,
    /// The service, as people call it.
    pub service: String,
    /// Scheme, host and port.
    pub target: String,
    /// How the test ended.
    pub outcome: NotificationDelivery,
}

/// Answer of `POST /api/notifications/send-test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationTests {
    /// In the order of the list.
    pub tested: Vec<TestedTarget>,
}
