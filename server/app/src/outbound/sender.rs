//! One request to one target, within its deadline.
//!
//! A new connection each time: the addresses of the host are judged for every request, and the
//! connection goes to one of the judged addresses.

use super::message::Message;
use super::rule::{Refused, Rule, Terms};
use crate::addresses::For;
use crate::ops::VERSION;
use crate::tasks::blocking;
use bytes::Bytes;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Method, redirect};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use url::{Host, Url};

/// Most bytes of an answer that are read.
const MOST_READ: usize = 64 * 1024;
/// Longest explanation of a service that is kept, in characters.
const EXPLANATION: usize = 200;

/// Why a post was not delivered. Never holds the URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotSent {
    /// Its address may not be dialled.
    #[error("refused: {0}")]
    Refused(#[from] Refused),
    /// The deadline passed.
    #[error("no complete answer within {0} s (`webhooks.timeout_seconds`)")]
    TooSlow(f64),
    /// The connection failed; the text is the cause.
    #[error("{0}")]
    Failed(String),
}

/// One request. Has no debug form: it may hold secrets.
pub(super) struct Request {
    pub method: Method,
    /// On the host of the sender.
    pub url: Url,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

/// What was answered.
pub(super) struct Reply {
    pub status: u16,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

impl Reply {
    /// What a service says about why it refused.
    pub fn explanation(&self) -> Option<String> {
        let text = match serde_json::from_slice::<Value>(&self.body) {
            Ok(said) => ["description", "errorDescription", "error", "message"]
                .iter()
                .find_map(|name| said.get(name)?.as_str().map(str::to_owned))?,
            // Slack answers one word.
            Err(_) => {
                let text = std::str::from_utf8(&self.body).ok()?.trim();
                let is_word = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                (is_word && !text.is_empty()).then(|| text.to_owned())?
            }
        };
        Some(text.chars().take(EXPLANATION).collect())
    }
}

/// Sends to one target. Has no debug form: its URL may hold secrets.
pub(super) struct Sender {
    url: Url,
    terms: Terms,
    /// Made at the first request: the certificates of the machine are read for it.
    client: OnceCell<Client>,
}

/// Resolves the host of a target and judges every answer.
struct Judge {
    terms: Terms,
    port: u16,
}

impl Sender {
    /// For an http or https URL.
    pub fn new(url: Url, terms: Terms) -> Self {
        Self { url, terms, client: OnceCell::new() }
    }

    /// Posts once. Returns the status of the answer, whatever it is.
    pub async fn post(&self, message: &Message) -> Result<u16, NotSent> {
        let mut headers = vec![
            ("Content-Type", "application/json".to_owned()),
            ("X-Svc-Event", message.event.clone()),
            ("X-Svc-Delivery", message.delivery.clone()),
            ("X-Svc-Timestamp", message.seconds.to_string()),
        ];
        if let Some(signature) = &message.signature {
            headers.push(("X-Svc-Signature", signature.clone()));
        }
        let (url, body) = (self.url.clone(), message.body.clone());
        let request = Request { method: Method::POST, url, headers, body };
        Ok(self.send(request).await?.status)
    }

    /// Sends once. Returns the answer, whatever it is.
    pub async fn send(&self, request: Request) -> Result<Reply, NotSent> {
        let longest = self.terms.timeout();
        match timeout(longest, self.send_now(request)).await {
            Ok(done) => done,
            Err(_) => Err(NotSent::TooSlow(longest.as_secs_f64())),
        }
    }

    async fn send_now(&self, request: Request) -> Result<Reply, NotSent> {
        let port = self.url.port_or_known_default().unwrap_or_default();
        // A name is judged where it is resolved.
        match self.url.host() {
            Some(Host::Ipv4(address)) => self.terms.rule().judge(IpAddr::V4(address), port)?,
            Some(Host::Ipv6(address)) => self.terms.rule().judge(IpAddr::V6(address), port)?,
            Some(Host::Domain(_)) | None => {}
        }
        let client = self.client.get_or_try_init(|| self.client(port)).await?;
        let mut builder = client.request(request.method, request.url);
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        let answer = builder.body(request.body).send().await;
        let mut answer = answer.map_err(|error| failed(&error.without_url()))?;
        let (status, mut body) = (answer.status().as_u16(), Vec::new());
        while let Some(chunk) =
            answer.chunk().await.map_err(|error| failed(&error.without_url()))?
        {
            let left = MOST_READ.saturating_sub(body.len());
            body.extend(chunk.iter().take(left));
            if body.len() >= MOST_READ {
                break;
            }
        }
        Ok(Reply { status, body })
    }

    async fn client(&self, port: u16) -> Result<Client, NotSent> {
        let builder = Client::builder()
            .user_agent(format!("svc/{VERSION}"))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(Judge { terms: self.terms.clone(), port }));
        let builder = if self.url.scheme() == "https" {
            let tls = blocking(trusting_this_machine).await;
            let tls = tls.map_err(|error| NotSent::Failed(error.message))?;
            builder.use_preconfigured_tls(tls.map_err(NotSent::Failed)?)
        } else {
            builder
        };
        builder.build().map_err(|error| failed(&error.without_url()))
    }
}

impl Resolve for Judge {
    fn resolve(&self, name: Name) -> Resolving {
        let (rule, port) = (self.terms.rule(), self.port);
        Box::pin(async move {
            let found = judged(rule, name.as_str(), port).await?;
            let addresses = found.into_iter();
            let dialled = move |address| For::Webhook.dialled(SocketAddr::new(address, port));
            Ok(Box::new(addresses.map(dialled)) as Addrs)
        })
    }
}

/// The addresses of a name, all of them allowed.
pub(super) async fn judged(
    rule: Rule,
    name: &str,
    port: u16,
) -> Result<Vec<IpAddr>, Box<dyn Error + Send + Sync>> {
    let found = For::Webhook.resolve(name, port).await;
    let found = found.map_err(|error| format!("the name of its host has no address: {error}"))?;
    // One bad answer spoils all: which of them is dialled would be chance (H46).
    for address in &found {
        rule.judge(*address, port)?;
    }
    Ok(found)
}

/// TLS that trusts the authorities that this machine trusts.
pub(crate) fn trusting_this_machine() -> Result<ClientConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("this machine has no certificates of authorities, so no https server can be \
                    verified; install them (package ca-certificates) or set SSL_CERT_FILE"
            .to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The causes of an error in one line. Our own refusal says it all.
pub(super) fn failed(error: &(dyn Error + 'static)) -> NotSent {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return NotSent::Refused(*refused);
        }
        let text = cause.to_string();
        // Some causes repeat the next one.
        if let Some(last) = texts.last_mut().filter(|last| last.contains(&text)) {
            last.truncate(last.find(&text).unwrap_or(last.len()));
            *last = last.trim_end_matches([' ', ':']).to_owned();
        }
        texts.push(text);
        next = cause.source();
    }
    texts.retain(|text| !text.is_empty());
    NotSent::Failed(svc_domain::log_escape::escape(&texts.join(": ")).into_owned())
}
