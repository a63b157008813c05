//! One target: its queue and its worker.

use super::TestDelivery;
use super::message::Message;
use super::rule::Rule;
use super::sender::{NotSent, Sender};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use url::Url;

/// Most events that wait for a target.
///
/// When full, the oldest is dropped and counted.
const MOST: usize = 1_000;
/// How long a queue is emptied when the service ends (`http-api` §6.1).
const DRAIN: Duration = Duration::from_secs(2);

/// A configured URL. Has no debug form: the URL may hold secrets.
pub(super) struct Target {
    /// Place in `webhooks.urls`, from 1.
    entry: usize,
    /// As it stands in the configuration. Never shown.
    raw: String,
    /// Scheme, host and port.
    shown: String,
    sender: Sender,
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Message>>,
    /// How many were dropped since the worker last looked.
    dropped: u64,
}

impl Target {
    /// `None` where the entry is no http or https URL.
    pub fn new(entry: usize, raw: &str, rule: Rule, timeout: Duration) -> Option<Self> {
        let url = Url::parse(raw).ok()?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        // User, path and query may be secret: a chat's webhook has its secret in the path.
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let shown = format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default());
        let (queue, news) = (Mutex::default(), Notify::new());
        let sender = Sender::new(url, rule, timeout);
        Some(Self { entry, raw: raw.to_owned(), shown, sender, queue, news })
    }

    /// Whether a person means this target: its place, or its URL.
    pub fn is_named(&self, which: &str) -> bool {
        which == self.raw || which.parse() == Ok(self.entry)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. Never waits.
    pub fn offer(&self, message: &Arc<Message>) {
        let is_first_drop = {
            let mut queue = self.queue();
            let is_full = queue.waiting.len() >= MOST;
            if is_full {
                queue.waiting.pop_front();
                queue.dropped = queue.dropped.saturating_add(1);
            }
            queue.waiting.push_back(Arc::clone(message));
            is_full && queue.dropped == 1
        };
        if is_first_drop {
            warn!(
                "webhook {} ({}) is too slow: {MOST} events wait for it, and the oldest are \
                 dropped",
                self.entry, self.shown
            );
        }
        self.news.notify_one();
    }

    fn take(&self) -> Option<(Arc<Message>, u64)> {
        let mut queue = self.queue();
        let message = queue.waiting.pop_front()?;
        Some((message, std::mem::take(&mut queue.dropped)))
    }

    /// Delivers one event after the other, until the service ends.
    pub async fn run(&self, shutdown: &CancellationToken) {
        let over = async {
            shutdown.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::pin!(over);
        loop {
            let Some((message, dropped)) = self.take() else {
                tokio::select! {
                    biased; // what came before the end is tried
                    () = self.news.notified() => continue,
                    () = shutdown.cancelled() => return,
                }
            };
            if dropped > 0 {
                warn!(
                    dropped,
                    "webhook {} ({}) was too slow: {dropped} events were dropped",
                    self.entry,
                    self.shown
                );
            }
            tokio::select! {
                sent = self.sender.post(&message) => self.report(&message, &sent),
                () = &mut over => {
                    let left = self.queue().waiting.len() + 1;
                    warn!(
                        "webhook {} ({}): the service ends, {left} events were not delivered",
                        self.entry, self.shown
                    );
                    return;
                }
            }
        }
    }

    fn report(&self, message: &Message, sent: &Result<u16, NotSent>) {
        let (entry, shown, event) = (self.entry, &self.shown, message.event);
        match sent {
            Ok(status @ 200..300) => {
                debug!("webhook {entry} ({shown}) answered {status} to `{event}`");
            }
            Ok(status) => warn!(
                "webhook {entry} ({shown}) answered {status} to `{event}`; it is not sent \
                 again"
            ),
            Err(error) => warn!(
                error = %error,
                "webhook {entry} ({shown}) did not take `{event}`; it is not sent again"
            ),
        }
    }

    /// Posts a test event past the queue.
    pub async fn test(&self, message: &Message) -> TestDelivery {
        let sent = self.sender.post(message).await;
        TestDelivery {
            entry: self.entry,
            target: self.shown.clone(),
            delivery: message.delivery.clone(),
            status: sent.as_ref().ok().copied(),
            error: sent.err().map(|error| error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::Timestamp;

    fn target(url: &str) -> Option<Target> {
        let rule = Rule { block_private: false, own_port: 1, own_address: None };
        Target::new(1, url, rule, Duration::from_secs(1))
    }

    #[test]
    fn only_scheme_host_and_port_of_a_target_are_shown() {
        let shown = |url| target(url).unwrap().shown;
        assert_eq!(
            shown("https://me:CANARY@hooks.example/CANARY?k=CANARY"),
            "https://hooks.example"
        );
        assert_eq!(shown("http://[::1]:81/x"), "http://[::1]:81");
        assert!(target("file:///etc").is_none() && target("nothing").is_none());
    }

    #[test]
    fn h50_a_full_queue_drops_the_oldest_and_counts() {
        let target = target("http://hooks.example").unwrap();
        let sent =
            |n: i64| Arc::new(Message::test(Timestamp::from_millis(n * 1000), None).unwrap());
        for n in 0..1_003 {
            target.offer(&sent(n));
        }
        let (first, dropped) = target.take().unwrap();
        assert_eq!((first.seconds, dropped), (3, 3));
        let (second, dropped) = target.take().unwrap();
        assert_eq!((second.seconds, dropped), (4, 0));
        assert_eq!(target.queue().waiting.len(), 998);
    }
}
