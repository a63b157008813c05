//! What became of the last notifications of one target or device.
//!
//! Those of a target are in the store too: how one stands is written before the attempt and after
//! it, so that it is known after a restart. A store that cannot be written holds up no
//! notification.

use crate::auth::sha256_hex;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_shared::internal::notifications::{DeliveryState, NotificationDelivery};
use svc_store::Store;
use tokio::time::timeout;
use tracing::debug;

/// Most notifications of a target that are kept to be shown.
const KEPT: u32 = 20;

/// Longest time that a notification waits for its record.
const LONGEST_WRITE: Duration = Duration::from_millis(500);

/// Where they are kept beside memory.
struct Recorded {
    /// Digest of the entry of the configuration, which is secret.
    key: String,
    store: Store,
    /// Whether this process is the service: a command writes nothing.
    writes: bool,
}

/// The last notifications, the newest first.
#[derive(Default)]
pub(super) struct Kept {
    recorded: Option<Recorded>,
    all: Mutex<VecDeque<NotificationDelivery>>,
}

impl Kept {
    /// Of an entry of the configuration, as it is written there.
    pub fn recorded(entry: &str, store: &Store, writes: bool) -> Self {
        let key = sha256_hex(entry.as_bytes());
        let recorded = Recorded { key, store: store.clone(), writes };
        Self { recorded: Some(recorded), all: Mutex::default() }
    }

    /// The name of the target in the store, if it is there.
    pub fn key(&self) -> Option<String> {
        self.recorded.as_ref().map(|recorded| recorded.key.clone())
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<NotificationDelivery>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    pub fn list(&self) -> Vec<NotificationDelivery> {
        self.all().iter().cloned().collect()
    }

    /// How one stands; `None` for one that is not known any more.
    pub fn state(&self, delivery: &str) -> Option<DeliveryState> {
        self.all().iter().find(|one| one.delivery == delivery).map(|one| one.state)
    }

    /// Takes over what the store knows.
    pub async fn load(&self) {
        let Some(Recorded { key, store, .. }) = &self.recorded else { return };
        match store.deliveries(key, KEPT).await {
            Ok(all) => *self.all() = all.into(),
            Err(error) => debug!(%error, "earlier notifications cannot be read"),
        }
    }

    /// Adds one; the same one again takes its own place.
    pub async fn add(&self, one: NotificationDelivery) {
        self.write(&one).await;
        let mut all = self.all();
        all.retain(|other| other.delivery != one.delivery);
        all.push_front(one);
        all.truncate(KEPT as usize);
    }

    /// Notes how one stands now.
    pub async fn stands(
        &self,
        delivery: &str,
        state: DeliveryState,
        status: Option<u16>,
        reason: Option<String>,
    ) {
        let changed = {
            let mut all = self.all();
            let Some(one) = all.iter_mut().find(|one| one.delivery == delivery) else { return };
            (one.state, one.status, one.reason) = (state, status, reason);
            one.clone()
        };
        self.write(&changed).await;
    }

    async fn write(&self, one: &NotificationDelivery) {
        let Some(recorded) = self.recorded.as_ref().filter(|recorded| recorded.writes) else {
            return;
        };
        let kept = recorded.store.keep_delivery(&recorded.key, one, KEPT);
        match timeout(LONGEST_WRITE, kept).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                debug!(%error, "how a notification stands is not known after a restart");
            }
            Err(_) => debug!("the database is slow: how a notification stands is not recorded"),
        }
    }
}
