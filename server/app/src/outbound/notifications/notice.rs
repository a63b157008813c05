//! One notification, the same for all targets.

use svc_domain::notification::text::Text;
use svc_shared::Timestamp;
use svc_shared::internal::notifications::{DeliveryState, NotificationDelivery};

/// What is told, and how urgently.
pub(super) struct Notice {
    /// Unique per notification.
    pub delivery: String,
    /// What it is about.
    pub event: &'static str,
    /// Title and body.
    pub text: Text,
    /// Somebody is needed.
    pub is_urgent: bool,
    /// It is taken back when the question is answered.
    pub is_question: bool,
    /// When it was made.
    pub at: Timestamp,
}

impl Notice {
    /// What is kept of it at a target.
    pub fn delivery_at(&self, state: DeliveryState) -> NotificationDelivery {
        NotificationDelivery {
            delivery: self.delivery.clone(),
            event: self.event.to_owned(),
            title: self.text.title.clone(),
            at: self.at,
            state,
            status: None,
            reason: None,
        }
    }
}
