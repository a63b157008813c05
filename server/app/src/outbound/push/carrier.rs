//! Hands one message to a push service (RFC 8030).
//!
//! It is encrypted for the browser (RFC 8291).

use super::endpoint;
use super::key::VapidKey;
use super::message::Message;
use crate::AppError;
use crate::outbound::sender::{NotSent, Reply, Request, Sender};
use crate::tasks::blocking;
use bytes::Bytes;
use reqwest::Method;
use std::path::PathBuf;
use std::sync::Arc;
use svc_domain::log_escape::escape;
use svc_domain::redact::redact_text;
use svc_ports::Clock;
use svc_shared::internal::push::PushKeys;
use svc_store::{PushRow, Store};
use tokio::sync::OnceCell;
use tracing::{debug, info, warn};
use url::Url;

/// What an attempt led to.
pub(super) struct Outcome {
    pub status: Option<u16>,
    /// Why it was not taken.
    pub failure: Option<String>,
}

impl Outcome {
    fn failed(status: Option<u16>, why: String) -> Self {
        Self { status, failure: Some(why) }
    }
}

fn unusable() -> String {
    "what is kept of this device cannot be used; switch its notifications off and on again".into()
}

/// What every attempt needs.
pub(super) struct Carrier {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub state_dir: PathBuf,
    pub key: OnceCell<VapidKey>,
}

impl Carrier {
    /// The key of this installation, made at the first use.
    pub async fn key(&self) -> Result<&VapidKey, AppError> {
        self.key
            .get_or_try_init(|| async {
                let place = self.state_dir.clone();
                let made = blocking(move || VapidKey::of(&place)).await?;
                made.map_err(|error| AppError::busy(error.to_string()))
            })
            .await
    }

    /// Sends one message, and notes on the device what became of it.
    pub async fn send(&self, sender: Option<&Sender>, row: &PushRow, message: &Message) -> Outcome {
        let outcome = self.send_now(sender, row, message).await;
        let host = endpoint::shown(&row.endpoint);
        if matches!(outcome.status, Some(404 | 410)) {
            self.forget(row, "its browser or push service ended the subscription").await;
            return outcome;
        }
        match &outcome.failure {
            None => debug!("{host} took `{}` for the device `{}`", message.event, row.label),
            Some(why) => warn!(
                "{host} did not take `{}` for the device `{}`: {why}; it is not sent again",
                message.event, row.label
            ),
        }
        let now = self.clock.now();
        let noted = self.store.push_delivered(&row.id, outcome.failure.as_deref(), now).await;
        if let Err(error) = noted {
            debug!(error = %error, "what became of a notification was not noted");
        }
        outcome
    }

    async fn send_now(&self, sender: Option<&Sender>, row: &PushRow, message: &Message) -> Outcome {
        let (url, request) = match self.request(row, message).await {
            Ok(made) => made,
            Err(why) => return Outcome::failed(None, why),
        };
        let Some(sender) = sender else { return Outcome::failed(None, unusable()) };
        let fit = |text: &str| redact_text(&escape(&endpoint::masked(&url, text)));
        match sender.send(request).await {
            Ok(Reply { status: status @ 200..300, .. }) => {
                Outcome { status: Some(status), failure: None }
            }
            Ok(reply) => {
                let said = reply.explanation().map(|said| format!(": {said}"));
                let text = format!("it answered {}{}", reply.status, said.unwrap_or_default());
                Outcome::failed(Some(reply.status), fit(&text))
            }
            Err(error @ NotSent::Refused(_)) => Outcome::failed(None, error.to_string()),
            Err(error) => Outcome::failed(None, fit(&error.to_string())),
        }
    }

    async fn request(&self, row: &PushRow, message: &Message) -> Result<(Url, Request), String> {
        let key = self.key().await.map_err(|error| error.message)?;
        let url = Url::parse(&row.endpoint).map_err(|_| unusable())?;
        let keys = PushKeys { p256dh: row.p256dh.clone(), auth: row.auth.clone() };
        let public = endpoint::public_key(&keys).ok_or_else(unusable)?;
        let secret = endpoint::secret(&keys).ok_or_else(unusable)?;
        let body = web_push_native::encrypt(message.payload.clone(), &public, &secret);
        let body = body.map_err(|_| unusable())?;
        let origin = url.origin().ascii_serialization();
        let proof = key.authorization(&origin, row.contact.as_deref(), self.clock.now());
        let headers = vec![
            ("Authorization", proof),
            ("Content-Encoding", "aes128gcm".to_owned()),
            ("Content-Type", "application/octet-stream".to_owned()),
            ("TTL", message.ttl.to_string()),
            ("Urgency", message.urgency.to_owned()),
            ("Topic", message.topic.clone()),
        ];
        let request =
            Request { method: Method::POST, url: url.clone(), headers, body: Bytes::from(body) };
        Ok((url, request))
    }

    /// Forgets a device that cannot be notified any more.
    pub async fn forget(&self, row: &PushRow, why: &str) {
        match self.store.remove_dead_push_subscription(row).await {
            Ok(true) => info!("the device `{}` is not notified any more: {why}", row.label),
            Ok(false) => {}
            Err(error) => warn!(
                error = %error,
                "the device `{}` could not be removed from those that are notified", row.label
            ),
        }
    }
}
