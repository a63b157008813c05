//! One device: its queue, its worker, and what became of its notifications.

use super::carrier::{Carrier, Outcome};
use super::message::Message;
use crate::outbound::kept::Kept;
use crate::outbound::queue::{DRAIN, MOST, Queue};
use crate::outbound::sender::Sender;
use svc_shared::Timestamp;
use svc_shared::internal::notifications::{DeliveryState, NotificationDelivery};
use svc_store::PushRow;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// A message on its way. Has no debug form: it knows the device.
pub(super) struct Errand {
    pub row: PushRow,
    pub message: Message,
    /// The notification that it shows or takes back.
    pub delivery: String,
    pub at: Timestamp,
    /// It takes the notification back.
    pub is_close: bool,
}

impl Errand {
    fn kept_as(&self, state: DeliveryState) -> NotificationDelivery {
        NotificationDelivery {
            delivery: self.delivery.clone(),
            event: self.message.event.to_owned(),
            title: self.message.title.clone(),
            at: self.at,
            state,
            status: None,
            reason: None,
        }
    }
}

/// A device. Has no debug form.
pub(super) struct Lane {
    /// `None` where the address is none.
    sender: Option<Sender>,
    queue: Queue<Errand>,
    kept: Kept,
    over: CancellationToken,
}

impl Lane {
    pub fn new(sender: Option<Sender>, over: CancellationToken) -> Self {
        Self { sender, queue: Queue::default(), kept: Kept::default(), over }
    }

    /// Its last notifications.
    pub fn deliveries(&self) -> Vec<NotificationDelivery> {
        self.kept.list()
    }

    /// Nothing more is sent to it.
    pub fn end(&self) {
        while self.queue.take().is_some() {}
        self.over.cancel();
    }

    /// What waits is tried for a moment, and nothing after it.
    pub fn finish(&self) {
        self.over.cancel();
    }

    /// Adds a message.
    pub async fn offer(&self, errand: Errand) {
        if errand.is_close {
            let is_meant = |other: &Errand| !other.is_close && other.delivery == errand.delivery;
            if self.queue.take_out(is_meant).is_some() {
                self.kept.stands(&errand.delivery, DeliveryState::Withdrawn, None, None).await;
                return;
            }
            if self.kept.state(&errand.delivery) == Some(DeliveryState::Failed) {
                return; // the device shows nothing
            }
        } else {
            self.kept.add(errand.kept_as(DeliveryState::Waiting)).await;
        }
        let label = errand.row.label.clone();
        if self.queue.offer(errand) {
            warn!(
                "the push service of the device `{label}` is too slow: {MOST} notifications wait \
                 for it, and the oldest are dropped"
            );
        }
    }

    /// Delivers one after the other, until the device or the service ends.
    pub async fn run(&self, carrier: &Carrier) {
        let over = async {
            self.over.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::pin!(over);
        while let Some((errand, dropped)) = self.queue.next(&self.over).await {
            if dropped > 0 {
                warn!(
                    dropped,
                    "the push service of the device `{}` was too slow: {dropped} notifications \
                     were dropped",
                    errand.row.label
                );
            }
            tokio::select! {
                () = self.carry_out(carrier, &errand) => {}
                () = &mut over => {
                    let left = self.queue.len() + 1;
                    warn!(
                        "the service ends, {left} notifications of the device `{}` were not \
                         delivered",
                        errand.row.label
                    );
                    return;
                }
            }
        }
    }

    async fn carry_out(&self, carrier: &Carrier, errand: &Errand) {
        if !errand.is_close {
            self.kept.stands(&errand.delivery, DeliveryState::Sent, None, None).await;
        }
        let outcome =
            Box::pin(carrier.send(self.sender.as_ref(), &errand.row, &errand.message)).await;
        match (errand.is_close, outcome.failure) {
            (true, None) => {
                self.kept.stands(&errand.delivery, DeliveryState::Withdrawn, None, None).await;
            }
            // What is shown stays; that it was accepted stays true.
            (true, Some(_)) => {}
            (false, failure) => {
                let state = state(failure.is_none());
                self.kept.stands(&errand.delivery, state, outcome.status, failure).await;
            }
        }
    }

    /// Tries once, past the queue.
    pub async fn test(&self, carrier: &Carrier, errand: &Errand) -> NotificationDelivery {
        let sent = Box::pin(carrier.send(self.sender.as_ref(), &errand.row, &errand.message)).await;
        let Outcome { status, failure } = sent;
        let state = state(failure.is_none());
        let outcome = NotificationDelivery { status, reason: failure, ..errand.kept_as(state) };
        self.kept.add(outcome.clone()).await;
        outcome
    }
}

fn state(is_accepted: bool) -> DeliveryState {
    if is_accepted { DeliveryState::Accepted } else { DeliveryState::Failed }
}
