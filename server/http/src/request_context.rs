//! What is known before a request is answered, and what every reply carries.
//!
//! Headers, the coding, the line in the log. Refusals and defects are replies, too.

use crate::accept::ConnectionFacts;
use crate::error::Refusal;
use crate::layers::guard::{accepts_html, is_programmatic};
use crate::layers::headers::{self, Policy};
use crate::layers::{access, compress, request_id};
use crate::{plain, reply};
use futures_util::FutureExt as _;
use poem::http::{HeaderValue, Method, StatusCode, header};
use poem::{Body, Request, Response};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use tokio::time::Instant;

/// One request, for the log and the headers.
pub(crate) struct RequestContext {
    pub(crate) id: String,
    pub(crate) nonce: Option<String>,
    started: Instant,
    pub(crate) method: Method,
    pub(crate) path: String,
    peer: String,
    accepts_html: bool,
    pub(crate) is_https: bool,
    codings: Vec<compress::Coding>,
}

impl RequestContext {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            id: request_id::request_id(),
            nonce: request_id::nonce(),
            started: Instant::now(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            peer: request
                .data::<ConnectionFacts>()
                .map(|facts| facts.peer.to_string())
                .unwrap_or_default(),
            accepts_html: accepts_html(request.headers()),
            is_https: false,
            codings: compress::accepted(request.headers()),
        }
    }

    /// Does the work and turns its outcome into a reply.
    ///
    /// `local` is the path without the configured prefix.
    pub(crate) async fn finish(
        &self,
        work: impl Future<Output = Result<Response, Refusal>>,
        local: &str,
    ) -> Response {
        let answered = AssertUnwindSafe(work).catch_unwind().await;
        let outcome = answered.unwrap_or_else(|panic| Err(Refusal::internal(&panic_text(&*panic))));
        let response = outcome.unwrap_or_else(|refusal| self.refuse(refusal, local));
        let mut response = compress::apply(response, &self.codings);
        let policy = response.extensions().get::<Policy>().copied().unwrap_or(Policy::Strict);
        let nonce = self.nonce.as_deref();
        headers::apply(response.headers_mut(), policy, nonce, &self.id, self.is_https);
        access::log(&access::Line {
            request_id: &self.id,
            method: &self.method,
            path: &self.path,
            peer: &self.peer,
            status: response.status(),
            took: self.started.elapsed(),
        });
        if self.method == Method::HEAD { without_body(response) } else { response }
    }

    fn refuse(&self, refusal: Refusal, local: &str) -> Response {
        let is_api = is_programmatic(local);
        if refusal.status() == StatusCode::NOT_FOUND && self.accepts_html && !is_api {
            return plain::notice(
                StatusCode::NOT_FOUND,
                "Not found",
                "There is nothing under this address.",
                self.nonce.as_deref(),
            );
        }
        refusal.into_json()
    }
}

/// The same head without the body, and with the length the body would have had.
fn without_body(mut response: Response) -> Response {
    let (length, is_exact) = reply::size(&mut response);
    if is_exact && response.status() != StatusCode::NOT_MODIFIED {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.set_body(Body::empty());
    response
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    // A panic message may hold what was being handled (H73).
    svc_domain::redact::redact_text(&text.unwrap_or_else(|| "a panic without words".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h73_a_panic_is_told_in_redacted_words() {
        let panic: Box<dyn std::any::Any + Send> = Box::new(String::from("lost it"));
        assert_eq!(panic_text(&*panic), "lost it");
    }
}
