//! The client of the account's own service: lists and removes environments.
//!
//! HTTPS to one host, without redirects. The token is in one header that no text shows.

use crate::failpoint;
use crate::ops::VERSION;
use crate::outbound::trusting_this_machine;
use crate::tasks::blocking;
use crate::{AppError, Class};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Method, redirect};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;
use svc_agent::home::AgentHome;
use svc_config::Secret;
use svc_domain::environments::{Listed, is_plain_id};
use svc_domain::log_escape::escape;
use svc_domain::redact::redact_text;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;

/// Where the account's service is.
const BASE: &str = "https://api.anthropic.com";
/// The form of the list that the agent asks for (agent 2.1.197).
const VERSION_HEADER: &str = "2023-06-01";
const BETA: &str = "environments-2025-11-01";
/// For one request and its answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Most pages of a list (`command-line` §2.5).
const MOST_PAGES: usize = 10_000;
const PER_PAGE: usize = 100;
/// Most bytes of one answer.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Credentials are read up to here.
const FILE_CAP: u64 = 1024 * 1024;
/// Most characters of an answer's own words.
const WORDS: usize = 200;

/// What removes an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// It can be brought back.
    Archive,
    /// With the work that waits for it.
    Delete,
}

/// How the account proves itself. Has no debug form.
pub(super) struct Account {
    token: Secret,
    organization: Option<String>,
}

impl Account {
    /// Of the login that the agent made, for its organization. Blocks.
    ///
    /// # Errors
    /// There is none, or it has ended.
    pub fn of_agent(
        home: &AgentHome,
        organization: Option<String>,
        now: Timestamp,
    ) -> Result<Self, AppError> {
        const SIGN_IN: &str = "sign the agent in (`claude auth login`) and try again";
        let credentials = read(&home.credentials_file()).map_err(|_| {
            unavailable(format!("there are no credentials of the agent to ask with; {SIGN_IN}"))
        })?;
        let token = credentials.pointer("/claudeAiOauth/accessToken").and_then(Value::as_str);
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Err(unavailable(format!(
                "the agent's credentials hold no login of a subscription; {SIGN_IN}"
            )));
        };
        let ends = credentials.pointer("/claudeAiOauth/expiresAt").and_then(Value::as_i64);
        if ends.is_some_and(|at| at <= now.as_millis()) {
            return Err(unavailable(format!("the agent's login has expired; {SIGN_IN}")));
        }
        Ok(Self { token: Secret::new(token.to_owned()), organization })
    }
}

fn read(path: &Path) -> std::io::Result<Value> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_CAP).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The account's service.
pub(super) struct Remote {
    client: Client,
    base: String,
    token: Secret,
}

impl Remote {
    /// Makes the client; nothing is sent yet.
    ///
    /// # Errors
    /// This machine cannot verify certificates, or the credentials cannot be sent.
    pub async fn new(account: Account) -> Result<Self, AppError> {
        let unfit = |_| unavailable("the agent's credentials cannot be sent; sign it in again");
        let mut headers = HeaderMap::new();
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {}", account.token.expose())).map_err(unfit)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION_HEADER));
        headers.insert("anthropic-beta", HeaderValue::from_static(BETA));
        if let Some(organization) = &account.organization {
            let mut value = HeaderValue::from_str(organization).map_err(unfit)?;
            value.set_sensitive(true);
            headers.insert("x-organization-uuid", value);
        }
        let other = failpoint::setting("environments.api");
        let client = Client::builder()
            .user_agent(format!("svc/{VERSION}"))
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .https_only(other.is_none())
            .timeout(LIMIT);
        let client = match &other {
            // A test answers itself, without a certificate.
            Some(_) => client,
            None => client.use_preconfigured_tls(
                blocking(trusting_this_machine).await?.map_err(unavailable)?,
            ),
        };
        let client = client
            .build()
            .map_err(|error| unavailable("no connection can be made").because(error))?;
        let base = other.unwrap_or_else(|| BASE.to_owned());
        Ok(Self { client, base, token: account.token })
    }

    /// Every environment of the account.
    ///
    /// # Errors
    /// The service does not answer, or not with a list.
    pub async fn list(&self) -> Result<Vec<Listed>, AppError> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut query = vec![("limit", PER_PAGE.to_string())];
        for _ in 0..MOST_PAGES {
            let answer = self.send(Method::GET, "/v1/environment_providers", &query).await?;
            let page = ["environments", "data"].iter().find_map(|name| answer.get(*name));
            let Some(page) = page.and_then(Value::as_array) else {
                return Err(upstream(
                    "the account's service answered with something else than a list of \
                                     environments; update svc",
                ));
            };
            found.extend(page.iter().filter_map(listed));
            let last = answer.get("last_id").and_then(Value::as_str);
            let has_more = answer.get("has_more").and_then(Value::as_bool) == Some(true);
            match last {
                Some(last) if has_more && seen.insert(last.to_owned()) => {
                    query = vec![("limit", PER_PAGE.to_string()), ("after_id", last.to_owned())];
                }
                _ if has_more => {
                    return Err(upstream(
                        "the account's service gave the same page again; try later",
                    ));
                }
                _ => return Ok(found),
            }
        }
        Err(upstream("the account has more environments than can be listed"))
    }

    /// Removes one.
    ///
    /// # Errors
    /// The service refuses, or does not answer.
    pub async fn remove(&self, id: &str, how: Removal) -> Result<(), AppError> {
        if !is_plain_id(id) {
            return Err(upstream("the account's service gave an id that no request can name"));
        }
        let sent = match how {
            Removal::Archive => {
                self.send(Method::POST, &format!("/v1/environments/{id}/archive"), &[]).await
            }
            Removal::Delete => {
                self.send(Method::DELETE, &format!("/v1/environments/bridge/{id}"), &[]).await
            }
        };
        sent.map(drop)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Value, AppError> {
        let failed = |error: reqwest::Error| {
            let why = match (error.is_timeout(), error.is_connect()) {
                (true, _) => "gave no answer within 30 s",
                (_, true) => "cannot be reached",
                _ => "broke the connection off",
            };
            upstream(format!("the account's service {why}; try again later"))
                .because(error.without_url())
        };
        let request = self.client.request(method, format!("{}{path}", self.base)).query(query);
        let mut answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if bytes.len().saturating_add(chunk.len()) > MOST_BYTES {
                return Err(upstream("the account's service answered with too much"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let body: Option<Value> = serde_json::from_slice(&bytes).ok();
        if status.is_success() {
            return Ok(body.unwrap_or_default());
        }
        let said = body.as_ref().and_then(|body| body.pointer("/error/message")?.as_str());
        let said = said.map(|said| format!(": {}", self.masked(said))).unwrap_or_default();
        Err(upstream(format!("the account's service refused with {}{said}", status.as_u16())))
    }

    /// Words of the service, fit to be shown.
    fn masked(&self, said: &str) -> String {
        let text = said.replace(self.token.expose(), svc_domain::redact::MASK);
        escape(&redact_text(&text)).chars().take(WORDS).collect()
    }
}

/// One item of a list. What has no id or kind cannot be judged, and is left out.
fn listed(item: &Value) -> Option<Listed> {
    let text = |places: &[&str]| {
        let found = places.iter().find_map(|place| item.pointer(place)?.as_str());
        found.map(str::to_owned)
    };
    let state = text(&["/state", "/status"]).unwrap_or_default();
    Some(Listed {
        id: text(&["/environment_id", "/id"])?,
        kind: text(&["/kind", "/config/type"])?,
        name: text(&["/name"]).unwrap_or_default(),
        directory: text(&["/bridge_info/directory", "/config/directory", "/metadata/directory"]),
        machine: text(&[
            "/bridge_info/machine_name",
            "/config/machine_name",
            "/metadata/machine_name",
        ]),
        is_archived: state == "archived" || item.get("archived_at").is_some_and(Value::is_string),
    })
}

fn upstream(message: impl Into<String>) -> AppError {
    AppError::new(ErrorCode::AgentFailed, Class::Upstream, message)
}

fn unavailable(message: impl Into<String>) -> AppError {
    AppError::busy(message)
}
