//! One target of notifications: its queue and its worker.
//!
//! It also keeps what became of each notification.

use super::mail::Mailer;
use super::notice::Notice;
use super::services;
use crate::outbound::kept::Kept;
use crate::outbound::queue::{DRAIN, MOST, Queue};
use crate::outbound::rule::Terms;
use crate::outbound::sender::{NotSent, Reply, Sender};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_domain::log_escape::escape;
use svc_domain::notification::address::{Address, Recipient};
use svc_domain::redact::redact_text;
use svc_shared::internal::notifications::{
    DeliveryState, NotificationDelivery, NotificationTarget, TestedTarget,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// What a worker is to do.
pub(super) enum Errand {
    /// Show this.
    Tell(Arc<Notice>),
    /// Take this one back.
    Withdraw(Arc<Notice>),
}

/// An entry of `notifications.urls`. Has no debug form: nearly all of it is secret.
pub(super) struct Target {
    entry: usize,
    address: Address,
    carrier: Carrier,
    queue: Queue<Errand>,
    kept: Kept,
    /// How the service names what it took, by delivery.
    handles: Mutex<HashMap<String, String>>,
}

enum Carrier {
    Web(Box<Sender>),
    Mail(Mailer),
}

/// What an attempt led to.
struct Attempt {
    status: Option<u16>,
    failure: Option<String>,
    handle: Option<String>,
}

impl Target {
    /// `None` for a place that nothing carries to.
    pub fn new(entry: usize, address: Address, terms: Terms, kept: Kept) -> Option<Self> {
        let carrier = match &address.place {
            Recipient::Mail(mail) => Carrier::Mail(Mailer::new(mail.clone(), terms)),
            place => Carrier::Web(Box::new(Sender::new(services::server(place)?, terms))),
        };
        let (queue, handles) = (Queue::default(), Mutex::default());
        Some(Self { entry, address, carrier, queue, kept, handles })
    }

    /// Its place in the list, from 1.
    pub fn entry(&self) -> usize {
        self.entry
    }

    /// What became of its last notifications.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is shown of it.
    pub fn report(&self) -> NotificationTarget {
        NotificationTarget {
            entry: self.entry,
            service: self.address.service.to_owned(),
            target: self.address.shown.clone(),
            problem: None,
            deliveries: self.kept.list(),
        }
    }

    /// Adds a notification, which is recorded first.
    pub async fn tell(&self, notice: &Arc<Notice>) {
        self.kept.add(notice.delivery_at(DeliveryState::Waiting)).await;
        if self.queue.offer(Errand::Tell(Arc::clone(notice))) {
            warn!(
                "notification target {} ({}) is too slow: {MOST} notifications wait for it, and \
                 the oldest are dropped",
                self.entry, self.address.shown
            );
        }
    }

    /// Takes a notification back, where the service can.
    pub async fn withdraw(&self, notice: &Arc<Notice>) {
        let is_meant = |errand: &Errand| matches!(errand, Errand::Tell(other) if other.delivery == notice.delivery);
        if self.queue.take_out(is_meant).is_some() {
            self.kept.stands(&notice.delivery, DeliveryState::Withdrawn, None, None).await;
        } else {
            // After what is under way.
            self.queue.offer(Errand::Withdraw(Arc::clone(notice)));
        }
    }

    /// Delivers one after the other, until the service ends.
    pub async fn run(&self, shutdown: &CancellationToken) {
        let over = async {
            shutdown.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::pin!(over);
        while let Some((errand, dropped)) = self.queue.next(shutdown).await {
            if dropped > 0 {
                warn!(
                    dropped,
                    "notification target {} ({}) was too slow: {dropped} notifications were \
                     dropped",
                    self.entry,
                    self.address.shown
                );
            }
            tokio::select! {
                () = self.carry_out(&errand) => {}
                () = &mut over => {
                    let left = self.queue.len() + 1;
                    warn!(
                        "notification target {} ({}): the service ends, {left} notifications \
                         were not delivered",
                        self.entry, self.address.shown
                    );
                    return;
                }
            }
        }
    }

    async fn carry_out(&self, errand: &Errand) {
        match errand {
            Errand::Tell(notice) => {
                self.kept.stands(&notice.delivery, DeliveryState::Sent, None, None).await;
                let attempt = self.attempt(notice).await;
                let state = attempt.state();
                let reason = attempt.failure.clone();
                self.kept.stands(&notice.delivery, state, attempt.status, reason).await;
                // After the report, so that whoever follows the log finds it there.
                self.log(notice.event, &attempt);
                if let Some(handle) = attempt.handle.filter(|_| notice.is_question) {
                    self.handles().insert(notice.delivery.clone(), handle);
                }
            }
            Errand::Withdraw(notice) => self.take_back(notice).await,
        }
    }

    async fn take_back(&self, notice: &Notice) {
        let Carrier::Web(sender) = &self.carrier else { return };
        let Some(handle) = self.handles().remove(&notice.delivery) else { return };
        let request = services::withdraw(&self.address.place, &handle, &notice.delivery);
        let Some(request) = request else { return };
        match sender.send(request).await {
            Ok(Reply { status: 200..300, .. }) => {
                self.kept.stands(&notice.delivery, DeliveryState::Withdrawn, None, None).await;
            }
            Ok(Reply { status, .. }) => debug!(
                "notification target {} ({}) answered {status} and did not take a notification \
                 back",
                self.entry, self.address.shown
            ),
            Err(error) => debug!(
                error = %error,
                "notification target {} ({}) did not take a notification back",
                self.entry, self.address.shown
            ),
        }
    }

    /// Tries once, past the queue.
    pub async fn test(&self, notice: &Notice) -> TestedTarget {
        let attempt = self.attempt(notice).await;
        let outcome = NotificationDelivery {
            state: attempt.state(),
            status: attempt.status,
            reason: attempt.failure,
            ..notice.delivery_at(DeliveryState::Sent)
        };
        self.kept.add(outcome.clone()).await;
        TestedTarget {
            entry: self.entry,
            service: self.address.service.to_owned(),
            target: self.address.shown.clone(),
            outcome,
        }
    }

    async fn attempt(&self, notice: &Notice) -> Attempt {
        let sent = match &self.carrier {
            Carrier::Mail(mailer) => match Box::pin(mailer.send(notice)).await {
                Ok(status) => Ok(Reply { status, body: Vec::new() }),
                Err(error) => Err(error),
            },
            Carrier::Web(sender) => match services::tell(&self.address.place, notice) {
                Some(request) => sender.send(request).await,
                None => Err(NotSent::Failed("the entry leads nowhere".to_owned())),
            },
        };
        match sent {
            Ok(reply @ Reply { status: 200..300, .. }) => Attempt {
                status: Some(reply.status),
                failure: None,
                handle: services::handle(&self.address.place, &reply),
            },
            Ok(reply) => {
                let said = reply.explanation().map(|said| format!(": {said}"));
                let text = format!("it answered {}{}", reply.status, said.unwrap_or_default());
                Attempt { status: Some(reply.status), failure: Some(self.fit(&text)), handle: None }
            }
            Err(error) => {
                let text = self.fit(&error.to_string());
                Attempt { status: None, failure: Some(text), handle: None }
            }
        }
    }

    /// Words of others, without our secrets and in one line.
    fn fit(&self, text: &str) -> String {
        redact_text(&escape(&self.address.masked(text)))
    }

    fn log(&self, event: &str, attempt: &Attempt) {
        let (entry, shown) = (self.entry, &self.address.shown);
        match &attempt.failure {
            None => debug!("notification target {entry} ({shown}) took `{event}`"),
            Some(why) => warn!(
                "notification target {entry} ({shown}) did not take `{event}`: {why}; it is not \
                 sent again"
            ),
        }
    }
}

impl Attempt {
    fn state(&self) -> DeliveryState {
        if self.failure.is_none() { DeliveryState::Accepted } else { DeliveryState::Failed }
    }
}
