//! Notifications of devices, while the page is closed: the bodies of `/api/push`.

use crate::Timestamp;
use crate::internal::notifications::NotificationDelivery;
use crate::status::words;
use serde::{Deserialize, Serialize};

words! {
    /// What a device can be told of.
    PushEvent {
        /// A session waits for an answer.
        PermissionNeeded = "permission-needed",
        /// A session ended unexpectedly.
        Crash = "crash",
        /// It did so too often and is not started again.
        Quarantine = "quarantine",
        /// A session is ready.
        Ready = "ready",
        /// A session was stopped on purpose.
        Stop = "stop",
        /// A session came to its end by itself.
        SessionEnd = "session-end",
        /// The remote link of a bridge stays down.
        ReconnectFailed = "reconnect-failed",
    }
}

impl PushEvent {
    /// What a device is told of that names nothing: whatever needs somebody.
    pub const USUAL: [Self; 3] = [Self::PermissionNeeded, Self::Crash, Self::Quarantine];
}

/// Answer of `GET /api/push/key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushKey {
    /// The service's public key (VAPID), base64url.
    pub public_key: String,
}

/// The keys of a subscription. Has no debug form: they are secret.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PushKeys {
    /// The browser's public key, base64url.
    pub p256dh: String,
    /// The browser's secret, base64url.
    pub auth: String,
}

/// Body of `POST /api/push/subscriptions`. Has no debug form: it is secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribePush {
    /// Where the maker of the browser takes notifications.
    pub endpoint: String,
    /// What they are encrypted with.
    pub keys: PushKeys,
    /// What people call the device; without it the name of the browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Words of [`PushEvent`]; without them the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
}

/// A device that is notified while the page is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushDevice {
    /// Names it.
    pub id: String,
    /// What people call it.
    pub label: String,
    /// Host of the service that takes its notifications; the rest is secret.
    pub host: String,
    /// What it is told of.
    pub events: Vec<String>,
    /// When it was switched on first.
    pub created: Timestamp,
    /// When a notification was accepted last.
    pub last_delivery_at: Option<Timestamp>,
    /// Why the last one failed; null after one that was accepted.
    pub last_error: Option<String>,
    /// It was switched on with the sign-in that asks.
    pub current: bool,
    /// The last notifications since the start of the service, the newest first.
    pub deliveries: Vec<NotificationDelivery>,
}

/// Answer of `DELETE /api/push/subscriptions/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedPush {
    /// The device.
    pub id: String,
    /// Always true.
    pub removed: bool,
}

/// Answer of `POST /api/push/subscriptions/{id}/test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedPush {
    /// The device.
    pub id: String,
    /// How the test ended.
    pub outcome: NotificationDelivery,
}
