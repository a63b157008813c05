//! Headers that every reply carries (`http-api` §5.9).

use poem::http::{HeaderMap, HeaderName, HeaderValue, header};

/// What a reply may run, decided by who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Everything but the page's document.
    Strict,
    /// The page's document: WebAssembly may be compiled.
    Page,
}

const FIXED: [(&str, &str); 6] = [
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    // Not `no-referrer`: browsers then send `Origin: null` with form posts, which is refused.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
];

/// Puts them on. Headers a handler chose stay, `Cache-Control` among them.
pub(crate) fn apply(
    headers: &mut HeaderMap,
    policy: Policy,
    nonce: Option<&str>,
    id: &str,
    is_https: bool,
) {
    if is_https {
        let value = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    for (name, value) in FIXED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&content_policy(policy, nonce)) {
        headers.insert(header::CONTENT_SECURITY_POLICY, value);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert("x-request-id", value);
    }
}

/// The headers of every reply, as lines of a head.
///
/// For replies to what never became a request.
pub(crate) fn constant() -> String {
    let policy = content_policy(Policy::Strict, None);
    let mut lines = format!("content-security-policy: {policy}\r\ncache-control: no-store\r\n");
    for (name, value) in FIXED {
        lines.extend([name, ": ", value, "\r\n"]);
    }
    lines
}

fn content_policy(policy: Policy, nonce: Option<&str>) -> String {
    let nonce = nonce.map(|nonce| format!(" 'nonce-{nonce}'")).unwrap_or_default();
    let wasm = match policy {
        Policy::Strict => "",
        // Neither nonce nor hash covers the compilation of WebAssembly.
        Policy::Page => " 'wasm-unsafe-eval'",
    };
    format!(
        "default-src 'self'; script-src 'self'{nonce}{wasm}; style-src 'self'{nonce}; \
         img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-ancestors 'none'; \
         base-uri 'self'; form-action 'self'; object-src 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(policy: Policy, nonce: Option<&str>) -> Vec<String> {
        content_policy(policy, nonce).split([' ', ';']).map(str::to_owned).collect()
    }

    #[test]
    fn only_the_page_may_compile_webassembly_and_nothing_may_evaluate_text() {
        assert!(sources(Policy::Page, Some("n")).contains(&"'wasm-unsafe-eval'".to_owned()));
        let strict = sources(Policy::Strict, Some("n"));
        assert!(!strict.contains(&"'wasm-unsafe-eval'".to_owned()));
        for policy in [Policy::Strict, Policy::Page] {
            let sources = sources(policy, Some("n"));
            for forbidden in ["'unsafe-inline'", "'unsafe-eval'", "ws:", "wss:", "*"] {
                assert!(!sources.iter().any(|source| source == forbidden), "{forbidden}");
            }
        }
    }

    #[test]
    fn a_reply_without_a_request_carries_what_every_reply_does() {
        let mut headers = HeaderMap::new();
        apply(&mut headers, Policy::Strict, None, "id", false);
        headers.remove("x-request-id");
        let mut full: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        let constant = constant();
        let mut bare: Vec<_> = constant.lines().collect();
        full.sort_unstable();
        bare.sort_unstable();
        assert_eq!(bare, full);
    }

    #[test]
    fn without_a_nonce_the_policy_is_stricter_not_looser() {
        let policy = content_policy(Policy::Strict, None);
        assert!(policy.contains("script-src 'self'; style-src 'self';"), "{policy}");
    }
}
