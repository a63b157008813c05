//! Fetches one archive: over https, within a time and a size, without credentials.

use super::DepsError;
use crate::VERSION;
use crate::outbound::trusting_this_machine;
use crate::tasks::blocking;
use reqwest::{Client, redirect};
use rustls::ClientConfig;
use std::error::Error;
use std::time::Duration;

/// From the first name lookup to the last byte.
const LIMIT: Duration = Duration::from_secs(60);
/// Largest archive.
pub(super) const LARGEST: usize = 64 * 1024 * 1024;
/// Most redirects that are followed.
const REDIRECTS: usize = 5;

/// The bytes behind an address.
///
/// # Errors
/// No complete answer of an allowed size came in time.
pub(super) async fn fetch(url: &str) -> Result<Vec<u8>, DepsError> {
    let tls = blocking(trusting_this_machine).await;
    let tls = tls.map_err(|error| DepsError::Download(error.message))?;
    fetch_by(url, tls.map_err(DepsError::Download)?).await
}

/// The same, for servers that this configuration trusts.
pub(super) async fn fetch_by(url: &str, tls: ClientConfig) -> Result<Vec<u8>, DepsError> {
    let client = Client::builder()
        .user_agent(format!("svc/{VERSION}"))
        .https_only(true)
        .referer(false)
        .redirect(redirect::Policy::limited(REDIRECTS))
        .timeout(LIMIT)
        .use_preconfigured_tls(tls)
        .build()
        .map_err(|error| failed(&error))?;
    let answer = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
    let mut answer = answer.map_err(|error| failed(&error))?;
    let too_large = || DepsError::Download(format!("it is larger than {} MiB", LARGEST >> 20));
    if answer.content_length().is_some_and(|length| length > LARGEST as u64) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
        if bytes.len().saturating_add(chunk.len()) > LARGEST {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The causes of an error in one line.
fn failed(error: &reqwest::Error) -> DepsError {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    DepsError::Download(svc_domain::log_escape::escape(&text).into_owned())
}

#[cfg(test)]
mod tests;
