//! Rules for links.
//!
//! They say which connect links the page follows, and how its own addresses name an instance.

use crate::model::order;

/// Hosts of the remote client.
///
/// Links of bridges are read from process output, so no other host is followed (H72).
const CLIENT_HOSTS: [&str; 1] = ["claude.ai"];

/// The host of a connect link that may be followed; `None` for every other address.
///
/// Strict on purpose: `https`, an exact host without user, port or trailing dot, printable ASCII.
#[must_use]
pub fn client_host(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("https://")?;
    let plain = url.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    CLIENT_HOSTS.into_iter().find(|host| {
        plain
            && rest
                .strip_prefix(host)
                .is_some_and(|tail| tail.is_empty() || tail.starts_with(['/', '?', '#']))
    })
}

/// What a reference in an address means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The whole id.
    Exact(String),
    /// A prefix of this one id.
    Prefix(String),
    /// A prefix of several ids, sorted.
    Several(Vec<String>),
    /// Nothing.
    None,
}

/// Finds an instance by its id or a unique prefix of it.
pub fn find<'a>(reference: &str, ids: impl Iterator<Item = &'a str>) -> Found {
    if reference.is_empty() {
        return Found::None;
    }
    let hits = ids.filter(|id| id.starts_with(reference));
    let mut hits = order::sorted(hits.map(|id| (String::new(), id.to_owned())).collect());
    match (hits.pop(), hits.is_empty()) {
        (None, _) => Found::None,
        (Some(one), true) if one == reference => Found::Exact(one),
        (Some(one), true) => Found::Prefix(one),
        (Some(last), false) => {
            hits.push(last);
            Found::Several(hits)
        }
    }
}

/// Whether this page's own origin is one the server takes requests from.
///
/// Both sides are compared as the server does: case of scheme and host and a default port do
/// not matter.
#[must_use]
pub fn is_allowed_origin(own: &str, allowed: &[String]) -> bool {
    let own = normal_origin(own);
    allowed.iter().any(|origin| normal_origin(origin) == own)
}

fn normal_origin(raw: &str) -> String {
    let origin = raw.trim().trim_end_matches('/').to_ascii_lowercase();
    for (scheme, port) in [("http://", ":80"), ("https://", ":443")] {
        if origin.starts_with(scheme) {
            return origin.strip_suffix(port).unwrap_or(&origin).to_owned();
        }
    }
    origin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_of_the_remote_client_are_followed() {
        assert_eq!(client_host("https://claude.ai/code/session_1?x=y#z"), Some("claude.ai"));
        assert_eq!(client_host("https://claude.ai"), Some("claude.ai"));
        for bad in [
            "http://claude.ai/code",
            "https://evil.example/claude.ai",
            "https://claude.ai.evil.example/",
            "https://claude.ai@evil.example/",
            "https://claude.ai:8443/",
            "https://claude.ai./code",
            "https://CLAUDE.ai/code",
            "https://claude.ai\\@evil.example",
            "https://claude.ai/a b",
            "https://claude.ai/\u{202e}",
            " https://claude.ai/",
            "javascript:alert(1)",
            "",
        ] {
            assert_eq!(client_host(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_unique_prefix_finds_its_instance() {
        let ids = ["3a375c2e-1", "3a375c2f-1", "b0"];
        let find = |reference| find(reference, ids.into_iter());
        assert_eq!(find("b0"), Found::Exact("b0".into()));
        assert_eq!(find("3a375c2e"), Found::Prefix("3a375c2e-1".into()));
        assert_eq!(find("3a"), Found::Several(vec!["3a375c2e-1".into(), "3a375c2f-1".into()]));
        assert_eq!(find("ff"), Found::None);
        assert_eq!(find(""), Found::None);
    }

    #[test]
    fn the_own_origin_is_compared_without_default_port_and_case() {
        let allowed = ["http://localhost:7621".to_owned(), "https://Box:443/".into()];
        assert!(is_allowed_origin("http://localhost:7621", &allowed));
        assert!(is_allowed_origin("https://box", &allowed));
        assert!(!is_allowed_origin("http://box", &allowed));
        assert!(!is_allowed_origin("http://localhost:7622", &allowed));
    }
}
