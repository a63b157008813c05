//! The HTTP side of opening a WebSocket. Host and Origin were checked before.

use crate::error::Refusal;
use poem::http::{HeaderMap, HeaderValue, StatusCode, header};
use poem::{Request, Response};
use svc_shared::error::ErrorCode;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Checks a handshake and returns the value of `Sec-WebSocket-Accept`.
///
/// # Errors
/// 426 for a request that is no handshake, 400 for a malformed one.
pub(super) fn check(request: &Request) -> Result<String, Refusal> {
    let headers = request.headers();
    let is_upgrade = has_word(headers, header::CONNECTION, "upgrade")
        && has_word(headers, header::UPGRADE, "websocket");
    if !is_upgrade {
        return Err(not_upgradable());
    }
    if single(headers, "sec-websocket-version") != Some("13") {
        return Err(Refusal::new(
            StatusCode::UPGRADE_REQUIRED,
            ErrorCode::InvalidValue,
            "this server speaks version 13 of the WebSocket protocol",
        )
        .with(header::SEC_WEBSOCKET_VERSION, "13")
        .with(header::UPGRADE, "websocket"));
    }
    match single(headers, "sec-websocket-key") {
        // 16 bytes in base64.
        Some(key) if key.len() == 24 => Ok(derive_accept_key(key.as_bytes())),
        Some(_) | None => {
            Err(Refusal::malformed("`Sec-WebSocket-Key` must stand once and hold 16 bytes"))
        }
    }
}

/// The reply that opens the socket. An offered subprotocol or extension is ignored.
pub(super) fn switch(accept: &str) -> Response {
    let mut response: Response = StatusCode::SWITCHING_PROTOCOLS.into();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

pub(super) fn too_many() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Busy,
        "too many sockets are open; close one and try again",
    )
    .with(header::RETRY_AFTER, "5")
}

pub(super) fn not_upgradable() -> Refusal {
    Refusal::new(
        StatusCode::UPGRADE_REQUIRED,
        ErrorCode::InvalidValue,
        "this path is a WebSocket; open it with a WebSocket handshake",
    )
    .with(header::UPGRADE, "websocket")
}

fn has_word(headers: &HeaderMap, name: header::HeaderName, word: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(word))
}

fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}
