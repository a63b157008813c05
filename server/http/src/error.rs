//! Refusals over HTTP: the only place that maps codes to statuses.

use crate::log_limit::LogLimit;
use poem::Response;
use poem::http::{HeaderValue, StatusCode, header};
use std::error::Error as _;
use std::sync::LazyLock;
use svc_app::{AppError, Class};
use svc_domain::log_escape;
use svc_shared::error::{ErrorBody, ErrorCode, ErrorDetail, SchemaProblem};

/// Longest echo of a value from a request, in characters (`http-api` §0.3).
const ECHO: usize = 80;

/// Failures that were logged lately: one that lasts fails every request (H88).
static LOGGED: LazyLock<LogLimit<String>> = LazyLock::new(LogLimit::default);

/// A reply that does not do what was asked.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: ErrorCode,
    detail: ErrorDetail,
    candidates: Option<Vec<String>>,
    error_id: Option<String>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: ErrorDetail::Text(detail.into()),
            candidates: None,
            error_id: None,
            headers: Vec::new(),
        }
    }

    /// Nothing is served under this path.
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, "Not Found")
    }

    /// The request is understood as HTTP and still malformed.
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidValue, detail)
    }

    /// A value is understood and not allowed.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::InvalidValue, detail)
    }

    /// Places that do not fit the schema.
    pub(crate) fn schema(problems: Vec<SchemaProblem>) -> Self {
        let mut refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::Schema, "");
        refusal.detail = ErrorDetail::Schema(problems);
        refusal
    }

    /// Over a limit; the rest of the request is not read, so the connection closes.
    pub(crate) fn too_large(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::new(status, ErrorCode::TooLarge, detail).closing()
    }

    /// A defect. The id is in the log beside the cause.
    pub(crate) fn internal(cause: &str) -> Self {
        let error_id = crate::layers::request_id::random_hex::<4>();
        tracing::error!(error_id, error = %log_escape::escape(cause), "a request failed: {cause}",
            cause = log_escape::escape(cause));
        let mut refusal =
            Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, "internal error");
        refusal.error_id = Some(error_id);
        refusal
    }

    #[must_use]
    pub(crate) fn with(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// The same, ending the connection.
    #[must_use]
    pub(crate) fn closing(self) -> Self {
        self.with(header::CONNECTION, "close")
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// A header it carries.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| *key == name)?;
        value.to_str().ok()
    }

    /// Puts its headers on a page that says the same.
    pub(crate) fn copy_headers(&self, response: &mut Response) {
        for (name, value) in &self.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }

    /// As JSON.
    pub(crate) fn into_json(self) -> Response {
        let body = ErrorBody {
            detail: self.detail,
            code: self.code.as_str().to_owned(),
            candidates: self.candidates,
            error_id: self.error_id,
        };
        let mut response = crate::reply::json(self.status, &body);
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        if matches!(self.status.as_u16(), 429 | 503) {
            response
                .headers_mut()
                .entry(header::RETRY_AFTER)
                .or_insert(HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<AppError> for Refusal {
    fn from(error: AppError) -> Self {
        let status = match error.class {
            Class::Invalid
                if matches!(
                    error.code,
                    ErrorCode::PathEscape | ErrorCode::ConfirmRequired | ErrorCode::AgentFailed
                ) =>
            {
                StatusCode::BAD_REQUEST
            }
            Class::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Class::NotFound => StatusCode::NOT_FOUND,
            Class::Forbidden => StatusCode::FORBIDDEN,
            Class::Conflict => StatusCode::CONFLICT,
            Class::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Class::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Class::Upstream => StatusCode::BAD_GATEWAY,
            Class::Storage => StatusCode::INSUFFICIENT_STORAGE,
            Class::Internal => return Self::internal(&chain(&error)),
        };
        let line = chain(&error);
        if status.is_server_error() && LOGGED.allows(line.clone()) {
            tracing::warn!(error = %log_escape::escape(&line),
                "refused a request with {status}: {}", log_escape::escape(&error.message));
        }
        let mut refusal = Self::new(status, error.code, error.message);
        if error.code == ErrorCode::Ambiguous {
            refusal.candidates = Some(error.candidates);
        }
        refusal
    }
}

impl From<Refusal> for poem::Error {
    fn from(refusal: Refusal) -> Self {
        Self::from_response(refusal.into_json())
    }
}

/// What the framework refuses by itself: nothing of its text leaves.
pub(crate) fn of_framework(error: poem::Error) -> Response {
    if error.is_from_response() {
        return error.into_response();
    }
    match error.status() {
        StatusCode::NOT_FOUND => Refusal::not_found(),
        status if status.is_client_error() => {
            Refusal::new(status, ErrorCode::InvalidValue, "the request is malformed")
        }
        _ => Refusal::internal(&error.to_string()),
    }
    .into_json()
}

/// A value of a request as it may be shown again: clipped, nothing invisible.
pub(crate) fn echo(raw: &str) -> String {
    let clipped: String = raw.chars().take(ECHO).collect();
    let mark = if clipped.len() < raw.len() { "…" } else { "" };
    format!("{}{mark}", log_escape::escape(&clipped))
}

fn chain(error: &AppError) -> String {
    let mut text = error.message.clone();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body(refusal: Refusal) -> (StatusCode, serde_json::Value) {
        let response = refusal.into_json();
        let status = response.status();
        let bytes = response.into_body().into_bytes().await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn h69_a_defect_tells_its_id_and_nothing_else() {
        let cause = std::io::Error::other("SQLITE_CORRUPT in /home/someone/svc.db");
        let (status, json) = body(AppError::internal(cause).into()).await;
        assert_eq!(status, 500);
        assert_eq!(json["detail"], "internal error");
        assert_eq!(json["code"], "internal");
        assert_eq!(json["error_id"].as_str().unwrap().len(), 8);
        assert_eq!(json.as_object().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn an_ambiguous_reference_names_its_candidates() {
        let mut error = AppError::new(ErrorCode::Ambiguous, Class::Conflict, "ambiguous 'a'");
        error.candidates = vec!["a1".into(), "a2".into()];
        let (status, json) = body(error.into()).await;
        assert_eq!((status.as_u16(), &json["candidates"]), (409, &serde_json::json!(["a1", "a2"])));
    }

    #[test]
    fn an_unavailable_service_says_when_to_come_back() {
        let response = Refusal::from(AppError::busy("busy")).into_json();
        assert_eq!(response.header("retry-after"), Some("1"));
    }

    #[test]
    fn an_echo_is_short_and_visible() {
        assert_eq!(echo("a\u{1b}[31mb"), "a\\x1b[31mb");
        assert_eq!(echo(&"x".repeat(500)).chars().count(), 81);
    }
}
