//! One target: its queue and its worker.

use super::message::Message;
use super::queue::{DRAIN, MOST, Queue};
use super::rule::Terms;
use super::sender::{NotSent, Sender};
use crate::auth::sha256_hex;
use std::collections::VecDeque;
use std::fmt::{Display, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_shared::Timestamp;
use svc_shared::internal::webhooks::{PostState, TestedWebhook, WebhookPost, WebhookTarget};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use url::Url;

/// Most posts of a target that are shown.
const SHOWN: usize = 20;

/// A configured URL. Has no debug form: the URL may hold secrets.
pub(super) struct Target {
    /// Place in `webhooks.urls`, from 1.
    entry: usize,
    /// As it stands in the configuration. Never shown.
    raw: String,
    /// Its name in the store.
    key: String,
    /// Scheme, host and port.
    shown: String,
    sender: Sender,
    queue: Queue<Arc<Message>>,
    /// The last posts, the newest first, where there is no outbox.
    posts: Mutex<VecDeque<WebhookPost>>,
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "webhook {} ({})", self.entry, self.shown)
    }
}

impl Target {
    /// `None` where the entry is no http or https URL.
    pub fn new(entry: usize, raw: &str, terms: Terms) -> Option<Self> {
        let url = Url::parse(raw).ok()?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        // User, path and query may be secret: a chat's webhook has its secret in the path.
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let shown = format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default());
        let sender = Sender::new(url, terms);
        let (raw, key) = (raw.to_owned(), sha256_hex(raw.as_bytes()));
        let (queue, posts) = (Queue::default(), Mutex::default());
        Some(Self { entry, raw, key, shown, sender, queue, posts })
    }

    /// Whether a person means this target: its place, or its URL.
    pub fn is_named(&self, which: &str) -> bool {
        which == self.raw || which.parse() == Ok(self.entry)
    }

    /// Its name in the store: a digest, because the URL may be secret.
    pub fn key(&self) -> &str {
        &self.key
    }

    fn posts(&self) -> MutexGuard<'_, VecDeque<WebhookPost>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is shown of it.
    pub fn report(&self) -> WebhookTarget {
        let posts: Vec<WebhookPost> = self.posts().iter().cloned().collect();
        let waiting = posts.iter().filter(|post| post.state == PostState::Waiting).count();
        // More may wait than are shown.
        let waiting = waiting.max(self.queue.len());
        WebhookTarget {
            entry: self.entry,
            target: self.shown.clone(),
            waiting: u64::try_from(waiting).unwrap_or_default(),
            failed: 0,
            posts,
        }
    }

    fn settle(&self, message: &Message, sent: &Result<u16, NotSent>) {
        let mut posts = self.posts();
        let post = posts.iter_mut().find(|post| post.delivery == message.delivery);
        let Some(post) = post else { return };
        post.attempts = 1;
        post.status = sent.as_ref().ok().copied();
        (post.state, post.reason) = match sent {
            Ok(200..300) => (PostState::Delivered, None),
            Ok(status) => (PostState::Failed, Some(format!("it answered {status}"))),
            Err(error) => (PostState::Failed, Some(error.to_string())),
        };
    }

    /// Posts once.
    pub async fn post(&self, message: &Message) -> Result<u16, NotSent> {
        self.sender.post(message).await
    }

    /// Adds an event. Never waits.
    pub fn offer(&self, message: &Arc<Message>) {
        {
            let mut posts = self.posts();
            posts.push_front(WebhookPost {
                delivery: message.delivery.clone(),
                event: message.event.clone(),
                at: Timestamp::from_millis(message.seconds.saturating_mul(1000)),
                state: PostState::Waiting,
                attempts: 0,
                next_at: None,
                status: None,
                reason: None,
            });
            posts.truncate(SHOWN);
        }
        if self.queue.offer(Arc::clone(message)) {
            warn!(
                "webhook {} ({}) is too slow: {MOST} events wait for it, and the oldest are \
                 dropped",
                self.entry, self.shown
            );
        }
    }

    /// Delivers one event after the other, until the service ends.
    pub async fn run(&self, shutdown: &CancellationToken) {
        let over = async {
            shutdown.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::pin!(over);
        while let Some((message, dropped)) = self.queue.next(shutdown).await {
            if dropped > 0 {
                warn!(
                    dropped,
                    "webhook {} ({}) was too slow: {dropped} events were dropped",
                    self.entry,
                    self.shown
                );
            }
            tokio::select! {
                sent = self.sender.post(&message) => self.note(&message, &sent),
                () = &mut over => {
                    let left = self.queue.len() + 1;
                    warn!(
                        "webhook {} ({}): the service ends, {left} events were not delivered",
                        self.entry, self.shown
                    );
                    return;
                }
            }
        }
    }

    fn note(&self, message: &Message, sent: &Result<u16, NotSent>) {
        self.settle(message, sent);
        let (entry, shown, event) = (self.entry, &self.shown, &message.event);
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
    pub async fn test(&self, message: &Message) -> TestedWebhook {
        let sent = self.sender.post(message).await;
        TestedWebhook {
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
    use crate::outbound::rule::Rule;
    use std::time::Duration;

    fn target(url: &str) -> Option<Target> {
        let rule = Rule { no_private: None, own_port: 1, own_address: None };
        Target::new(1, url, Terms::new(move || (rule, Duration::from_secs(1))))
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
}
