//! Random names: of a request, of an error, and the nonce of a page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// `N` random bytes as lower-case hex.
///
/// All zeros if the system has no randomness to give: an id finds a log line and protects nothing.
pub(crate) fn random_hex<const N: usize>() -> String {
    let mut bytes = [0_u8; N];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = [0; N];
    }
    hex::encode(bytes)
}

/// Name of one request, 16 hex digits (`http-api` §0.4).
pub(crate) fn request_id() -> String {
    random_hex::<8>()
}

/// A fresh nonce: 16 random bytes, URL-safe base64.
///
/// `None` without randomness, and then the policy goes without one, which is stricter.
pub(crate) fn nonce() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}
