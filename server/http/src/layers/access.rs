//! The access log: one line per request, without query, body or credentials.

use poem::http::{Method, StatusCode};
use std::time::Duration;
use svc_domain::log_escape;

/// Longest path written, in characters.
const PATH: usize = 256;

/// What the line says.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) peer: &'a str,
    pub(crate) status: StatusCode,
    pub(crate) took: Duration,
}

/// Writes the line. Reads are `debug`: a page makes many and changes nothing.
pub(crate) fn log(line: &Line<'_>) {
    let path: String = line.path.chars().take(PATH).collect();
    let path = log_escape::escape(&path);
    let Line { request_id, method, peer, status, .. } = line;
    let duration_ms = u64::try_from(line.took.as_millis()).unwrap_or(u64::MAX);
    let status = status.as_u16();
    let method = log_escape::escape(method.as_str());
    if matches!(&*method, "GET" | "HEAD" | "OPTIONS") && status < 500 {
        tracing::debug!(request_id, peer, duration_ms, "{method} {path} {status}");
    } else {
        tracing::info!(request_id, peer, duration_ms, "{method} {path} {status}");
    }
}
