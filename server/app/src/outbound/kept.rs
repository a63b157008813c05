//! What became of the last notifications of one target.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_shared::internal::notifications::{DeliveryState, NotificationDelivery};

/// Most notifications of a target that are kept to be shown.
const KEPT: usize = 20;

/// The last notifications, the newest first.
#[derive(Default)]
pub(super) struct Kept(Mutex<VecDeque<NotificationDelivery>>);

impl Kept {
    fn all(&self) -> MutexGuard<'_, VecDeque<NotificationDelivery>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one; the same one again takes its own place.
    pub fn add(&self, delivery: NotificationDelivery) {
        let mut all = self.all();
        all.retain(|one| one.delivery != delivery.delivery);
        all.push_front(delivery);
        all.truncate(KEPT);
    }

    /// Notes how one stands now.
    pub fn stands(
        &self,
        delivery: &str,
        state: DeliveryState,
        status: Option<u16>,
        reason: Option<String>,
    ) {
        if let Some(one) = self.all().iter_mut().find(|one| one.delivery == delivery) {
            (one.state, one.status, one.reason) = (state, status, reason);
        }
    }

    /// How one stands; `None` for one that is not known any more.
    pub fn state(&self, delivery: &str) -> Option<DeliveryState> {
        self.all().iter().find(|one| one.delivery == delivery).map(|one| one.state)
    }

    /// All of them.
    pub fn list(&self) -> Vec<NotificationDelivery> {
        self.all().iter().cloned().collect()
    }
}
