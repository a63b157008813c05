//! One target: its queue and its worker.

use super::TestDelivery;
use super::message::Message;
use super::queue::{DRAIN, MOST, Queue};
use super::rule::Rule;
use super::sender::{NotSent, Sender};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use url::Url;

/// A configured URL. Has no debug form: the URL may hold secrets.
pub(super) struct Target {
    /// Place in `webhooks.urls`, from 1.
    entry: usize,
    /// As it stands in the configuration. Never shown.
    raw: String,
    /// Scheme, host and port.
    shown: String,
    sender: Sender,
    queue: Queue<Arc<Message>>,
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
        let sender = Sender::new(url, rule, timeout);
        Some(Self { entry, raw: raw.to_owned(), shown, sender, queue: Queue::default() })
    }

    /// Whether a person means this target: its place, or its URL.
    pub fn is_named(&self, which: &str) -> bool {
        which == self.raw || which.parse() == Ok(self.entry)
    }

    /// Adds an event. Never waits.
    pub fn offer(&self, message: &Arc<Message>) {
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
                sent = self.sender.post(&message) => self.report(&message, &sent),
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

    fn target(url: &str) -> Option<Target> {
        let rule = Rule { no_private: None, own_port: 1, own_address: None };
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
}
